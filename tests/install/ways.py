"""Ways to have the program, and the proof that one of them works: a list of three lines, run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.harness_rows import read_rows
from tests.interpreters import Version, interpreters

ROOT = Path(__file__).parents[2]
OLDEST: Version = (3, 11)
STEERING = ("PYTHON", "VIRTUAL_ENV", "DISBATCH", "SLURM_")

LIST = """\
echo $DISBATCH_TASKID > first
(exit 3)
echo $DISBATCH_TASKID > last
"""


def pythons() -> list[Version]:
    """The oldest and the newest Python of this machine that the program takes."""
    usable = [version for version in interpreters() if version >= OLDEST]
    return sorted({usable[0], usable[-1]}) if usable else []


def plain_environment() -> dict[str, str]:
    """What a user's shell has: nothing that tells a Python where to look, this one's least."""
    here = os.path.dirname(sys.executable)
    path = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != here]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(STEERING)}
    return {**kept, "PATH": os.pathsep.join(path)}


def call(*command: str | Path) -> str:
    """Run a command of an installation; its output, or a failure that shows it."""
    done = subprocess.run(
        [str(word) for word in command],
        env=plain_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Environment:
    """A fresh environment with one of the machine's Pythons."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def command(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *what: str | Path) -> None:
        pip = (self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        call(*pip, *what)


def make_environment(folder: Path, version: Version) -> Environment:
    call(interpreters()[version], "-m", "venv", folder)
    return Environment(folder)


def copy_clone(folder: Path) -> Path:
    """What a clone has that running from it needs, elsewhere; returns its disBatch."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.copy(ROOT / "disBatch", folder))


def prove_disbatch(folder: Path, *command: str | Path) -> None:
    """Run the list as ``disBatch`` runs it: the failure of a task is no failure of the run."""
    _prove(folder, [*command, "-s", "localhost:2", "-p", "run", "Tasks"], 0)


def prove_overnight(folder: Path, *command: str | Path) -> None:
    """Run the list as ``overnight run`` does: exit status 1 when a task failed."""
    _prove(folder, [*command, "run", "--jobs", "2", "-p", "run", "Tasks"], 1)


def _prove(folder: Path, command: list[str | Path], status: int) -> None:
    folder.mkdir()
    (folder / "Tasks").write_text(LIST)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=plain_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, f"ended with {done.returncode}:\n{done.stderr}"
    rows = {row[1]: row[6] for row in read_rows(folder / "run_status.txt")}
    assert rows == {"0": "0", "1": "3", "2": "0"}
    assert (folder / "first").read_text() == "0\n"
    assert (folder / "last").read_text() == "2\n"
