"""Ours: the installed commands as a user starts them, and what their files must say.

The status file is read and written here by rules of its own, on purpose: a fault in the
package's reader must not hide from the check that a result is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.load import Load
from harness.process import Command

PREFIX = "./ours"
STATUS_FILE = "ours_status.txt"
COLUMNS = 15


def dis_batch(root: Path) -> Path:
    """The command measured: of the environment, else the one installed beside the tree."""
    return Path(os.environ.get("OVERNIGHT_DISBATCH", root / ".venv/bin/disBatch"))


@dataclass(frozen=True, slots=True)
class Product:
    """The two installed commands."""

    dis_batch: Path

    @property
    def overnight(self) -> Path:
        return self.dis_batch.with_name("overnight")

    def run(self, slots: int, tasks: Path, *options: str) -> Command:
        """``disBatch`` on local slots, all records on, files in the current folder."""
        return Command(
            (str(self.dis_batch), "-s", f"localhost:{slots}", "-p", PREFIX, *options, str(tasks))
        )

    def own_run(self, slots: int, tasks: Path, *options: str) -> Command:
        """``overnight run``, for options that only it has."""
        jobs = ("--jobs", str(slots), "-p", PREFIX)
        return Command((str(self.overnight), "run", *jobs, *options, str(tasks)))

    def interpreter(self) -> Path:
        """The Python that runs the command, from its first line."""
        with open(self.dis_batch, "rb") as script:
            first_line = script.readline().decode()
        return Path(first_line.removeprefix("#!").strip())


@dataclass(frozen=True, slots=True)
class Row:
    """What the checks need of a row of the status file."""

    flags: str
    task_id: int
    exit_code: int


def rows(status_file: Path) -> Iterator[Row | None]:
    """The rows of a status file in its order; None for a line that is no whole row."""
    with open(status_file, "rb") as lines:
        for line in lines:
            fields = line.split(b"\t", COLUMNS - 1)
            if len(fields) == COLUMNS and line.endswith(b"\n"):
                yield Row(fields[0].decode(), int(fields[1]), int(fields[6]))
            else:
                yield None


def complaint(folder: Path, load: Load) -> str:
    """What is wrong with the record of a run in which every task had to exit with 0.

    '' when the status file holds exactly one row for each task and every exit code is 0.
    """
    status_file = folder / STATUS_FILE
    if not status_file.exists():
        return "no status file"
    seen = [0] * load.count
    for row in rows(status_file):
        if row is None:
            return "a torn row in the status file"
        if row.exit_code != 0 or not 0 <= row.task_id < load.count:
            return f"row of task {row.task_id} has exit code {row.exit_code}"
        seen[row.task_id] += 1
    wrong = sum(1 for count in seen if count != 1)
    return f"{wrong} of {load.count} tasks have not exactly one row" if wrong else ""


def earlier_rows(ids: Iterable[int], command: str) -> Iterator[str]:
    """Rows of an earlier run in which these tasks of a plain list were done."""
    for task_id in ids:
        yield (
            f"    \t{task_id}\t{task_id + 1}\t-1\tnode\t{40000 + task_id % 20000}\t0\t0.010\t"
            f"1700000000.000\t1700000000.010\t0\t''\t0\t''\t{command}\n"
        )


def write_earlier(path: Path, ids: Iterable[int], command: str) -> Path:
    """Write a status file as an earlier run would have left it."""
    with open(path, "w") as status_file:
        status_file.writelines(earlier_rows(ids, command))
    return path
