"""What the utility script promises: it finds its run and its Python, and hands on what it got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from overnight.formats.utilscript import script_text

NASTY = ["run", "my run", "it's", 'a"b', "$HOME", "`id`", "new\nline", "-n", "caf\u00e9", "a;b&c"]


def call(
    tmp_path: Path, name: str, *arguments: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Call the script from a copy, as batch systems do, with a package that says what it gets."""
    package = tmp_path / f"lib {name}"
    (package / "overnight" / "cli").mkdir(parents=True)
    for folder in (package / "overnight", package / "overnight" / "cli"):
        (folder / "__init__.py").touch()
    (package / "overnight" / "cli" / "utility.py").write_text(
        "import json\ndef main(arguments):\n    print(json.dumps(arguments))\n    return 7\n"
    )
    script = tmp_path / "copied"
    script.write_text(script_text(f"{tmp_path}/{name}", python, str(package)))
    return subprocess.run(
        ["bash", script, *arguments], capture_output=True, text=True, timeout=30, check=False,
        cwd="/", env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )


@pytest.mark.parametrize("name", NASTY)
def test_it_hands_its_run_and_its_arguments_on_whatever_they_are_called(tmp_path, name):


    bare = Path(os.path.realpath(sys.executable))
    done = call(tmp_path, name, "-s", "localhost:2", "a b", name, python=str(bare))
    assert done.stderr == ""
    assert json.loads(done.stdout) == [f"{tmp_path}/{name}", "-s", "localhost:2", "a b", name]
    assert done.returncode == 7


@pytest.mark.parametrize("name", NASTY)
def test_a_python_that_is_not_here_is_named(tmp_path, name):
    done = call(tmp_path, name, python=f"{tmp_path}/{name}/python")
    assert done.returncode == 1
    assert done.stderr == f"The Python of this run is not here: {tmp_path}/{name}/python\n"
