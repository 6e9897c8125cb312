"""Build the whole program as one file that any Python 3.11 or later runs.

    python tools/build_zipapp.py dist/overnight.pyz

The file is the command ``overnight``. rich lies in it as well, for the live block; the path of a
plain run does not touch it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "overnight"
OLDEST_PYTHON = (3, 11)

MAIN = f"""\
import sys

if sys.version_info < {OLDEST_PYTHON}:
    sys.stderr.write("overnight needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or later; "
                     "%s is Python %d.%d\\n" % ((sys.executable,) + sys.version_info[:2]))
    sys.exit(1)

from overnight.cli.main import overnight

sys.exit(overnight())
"""


NEEDS_ITS_MACHINE = ("cryptography",)
"""Compiled for one machine each: one file for all cannot hold them. Without it a run does not
listen, and says so; everything else works."""


def _dependencies() -> list[str]:
    """What the project asks for and is pure Python: rich."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted: list[str] = tomllib.load(file)["project"]["dependencies"]
    return [one for one in wanted if not one.startswith(NEEDS_ITS_MACHINE)]


def _install_dependencies(stage: Path) -> None:
    """Put what we depend on, all of it pure Python, beside the package."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pure = ["--no-compile", "--only-binary", ":all:", "--platform", "any", "--target", str(stage)]
    subprocess.run([*pip, *pure, *_dependencies()], check=True)
    shutil.rmtree(stage / "bin", ignore_errors=True)


def build(target: Path, with_rich: bool) -> None:
    """Write the zipapp to ``target``, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        stage = Path(folder) / "stage"
        shutil.copytree(
            SOURCE, stage / "overnight", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
        shutil.copy(ROOT / "LICENSE", stage)
        if with_rich:
            _install_dependencies(stage)
        (stage / "__main__.py").write_text(MAIN)
        fresh = Path(folder) / target.name
        zipapp.create_archive(stage, fresh, interpreter="/usr/bin/env python3", compressed=True)
        fresh.rename(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--without-rich", action="store_true", help="the standard library alone")
    arguments = parser.parse_args()
    build(arguments.target, with_rich=not arguments.without_rich)
    print(f"{arguments.target}: {arguments.target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
