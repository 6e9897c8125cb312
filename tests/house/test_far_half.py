"""The far half is a closed set on Python 3.9 and the standard library.

It is what an engine consists of, and it lands on nodes whose Python is not ours to choose.
"""

from __future__ import annotations

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from overnight.driver.package import FAR_HALF, pack
from tests.house.source_tree import SOURCE, closure, imports_of, is_ours, modules
from tests.interpreters import find_interpreter

OLDEST = (3, 9)

# Those with an underscore are what the public ones wrap; they are there from 3.9 to the newest,
# and an engine that imports them alone starts several milliseconds earlier.
ALLOWED_FOREIGN = {
    "__future__", "_ctypes", "_posixsubprocess", "_signal", "_socket", "_thread", "base64",
    "binascii", "bisect", "collections", "collections.abc", "contextlib", "ctypes", "errno",
    "fcntl", "functools", "gc", "hashlib", "heapq", "itertools", "json", "math", "os", "re",
    "resource", "select", "selectors", "shutil", "signal", "socket", "ssl", "stat", "struct",
    "subprocess", "sys", "tempfile", "threading", "time", "zlib",
}  # fmt: skip

ENTRIES = ["overnight.engine.main", "overnight.engine.far"]
"""Here, and on other machines."""


def test_the_engine_file_holds_what_an_engine_reaches_and_nothing_else() -> None:
    assert sorted(FAR_HALF) == sorted(closure(ENTRIES))


@pytest.mark.parametrize("module", FAR_HALF)
def test_a_far_module_imports_only_far_modules_and_what_every_python_has(module: str) -> None:
    imported = imports_of(module)
    foreign = {name for name in imported if not is_ours(name)}
    assert foreign <= ALLOWED_FOREIGN, f"{module} imports {sorted(foreign - ALLOWED_FOREIGN)}"
    assert imported - foreign <= set(FAR_HALF)


def test_ruff_holds_every_far_module_to_the_oldest_python() -> None:
    with (SOURCE.parent / "pyproject.toml").open("rb") as file:
        targets = tomllib.load(file)["tool"]["ruff"]["per-file-target-version"]
    unheld = [
        path
        for path in (str(modules()[module].relative_to(SOURCE.parent)) for module in FAR_HALF)
        if not any(fnmatch(path, glob) for glob in targets) and not path.endswith("__init__.py")
    ]
    assert unheld == []
    assert set(targets.values()) == {"py39"}


@pytest.mark.needs("python3.9")
def test_the_oldest_python_takes_every_module_of_the_engine_file(tmp_path: Path) -> None:
    engine_file = str(tmp_path / "run_engine.pyz")
    pack(engine_file)
    script = f"import sys; sys.path.insert(0, {engine_file!r}); import {', '.join(FAR_HALF)}"
    tried = subprocess.run(
        [str(find_interpreter(OLDEST)), "-I", "-S", "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert tried.returncode == 0, tried.stderr
