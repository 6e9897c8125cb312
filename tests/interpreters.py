"""The Pythons of this machine, wherever they lie."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Version = tuple[int, int]

_SAY_VERSION = "import sys; print(*sys.version_info[:2], sys.executable)"
_MINORS = range(20, 5, -1)


def _candidates() -> Iterator[str]:
    """Commands that may be a Python: what is on PATH, and what pyenv keeps."""
    for minor in _MINORS:
        if found := shutil.which(f"python3.{minor}"):
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/*/bin/python")))


def _ask(candidate: str) -> tuple[Version, Path] | None:
    """Version and real path of a Python; None for one that does not start."""
    try:
        answer = subprocess.run(
            [candidate, "-I", "-c", _SAY_VERSION],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        major, minor, path = answer.stdout.strip().split(" ", 2)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None  # a version manager's shim, or a Python without -I
    return (int(major), int(minor)), Path(path)


@cache
def interpreters() -> dict[Version, Path]:
    """One Python for each version found here, oldest version first."""
    found: dict[Version, Path] = {}
    for candidate in _candidates():
        if answer := _ask(candidate):
            found.setdefault(*answer)
    return dict(sorted(found.items()))


def find_interpreter(version: Version) -> Path | None:
    """A Python of this version."""
    return interpreters().get(version)
