"""``make`` with a Python of one's choice: refused before anything is made, or said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.ways import ROOT

OLD_PYTHON = """#!/bin/sh
case "$1" in -V) echo "Python 3.9.2" ;; *) exit 1 ;; esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What make reads of the project, and a Python that is too old."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "old").write_text(OLD_PYTHON)
    (tmp_path / "old").chmod(0o755)
    return tmp_path


def make(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments], cwd=clone, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_python_that_is_too_old_is_refused_before_an_environment_is_made(clone: Path) -> None:
    made = make(clone, "demo", f"PYTHON={clone}/old")
    assert made.returncode != 0
    assert f"found: {clone}/old, Python 3.9.2" in made.stderr
    assert not (clone / ".venv").exists()


def test_an_environment_of_another_python_is_not_taken_for_the_one_asked_for(clone: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True, timeout=60
    )
    made = make(clone, "demo", f"PYTHON={clone}/old")
    assert made.returncode != 0
    assert ".venv was made with another Python than the one asked for" in made.stderr


def test_an_environment_of_the_same_python_will_do(clone: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True, timeout=60
    )
    assert make(clone, "same-python", f"PYTHON={sys.executable}").returncode == 0
