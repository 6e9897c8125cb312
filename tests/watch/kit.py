"""Verbs for tests of what is told about a run: tasks that ended, told in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overnight.formats.statusfile import barrier_row, per_engine_row, skipped_row, task_row
from overnight.formats.tasklog import attempt_line
from overnight.model.outcome import Exited
from overnight.model.report import SNIPPET_END, Leak, Report
from overnight.model.task import NO_REPEAT, Barrier, PerEngine, Task

if TYPE_CHECKING:
    from pathlib import Path

    from overnight.model.outcome import Outcome

NIGHT = 1_700_000_000.0
"""A moment: the start of the runs in these tests, Unix seconds."""


def leak(text: bytes) -> Leak:
    """What is kept of output nobody redirected."""
    head, rest = text[:SNIPPET_END], text[SNIPPET_END:]
    return Leak(len(text), head, rest[-SNIPPET_END:])


def task(id: int = 0, command: bytes = b"true", line: int = -1, repeat: int = NO_REPEAT) -> Task:
    """A task that stands in line ``id + 1`` unless told otherwise."""
    return Task(id, id + 1 if line < 0 else line, repeat, command)


def report(
    id: int = 0, outcome: Outcome | None = None, *, after_s: float = 0.0, elapsed_s: float = 1.0,
    out: bytes = b"", err: bytes = b"", attempt: int = 1, rss_kib: int = 0, cpu_s: float = 0.0,
    left_running: int = 0,
) -> Report:
    """A report of a task that started ``after_s`` into the night and, by default, succeeded."""
    return Report(
        id, attempt, outcome or Exited(0), 4711, NIGHT + after_s, elapsed_s, leak(out), leak(err),
        cpu_s, rss_kib, 0, False, left_running,
    )


class Records:
    """The status file and the task log of a run, written as a run writes them.

    Times are seconds into the night. A task is appended in the order told; the files hold
    everything told so far whenever they are asked for.
    """

    def __init__(self, folder: Path, name: str = "Tasks_7f", has_log: bool = True) -> None:
        self._status = folder / f"{name}_status.txt"
        self._log = folder / f"{name}_tasks.jsonl"
        self._rows: list[bytes] = []
        self._lines: list[bytes] = []
        self._has_log = has_log
        if has_log:
            self._log.touch()

    @property
    def status(self) -> Path:
        with self._status.open("ab") as status:
            status.writelines(self._rows)
        self._rows.clear()
        return self._status

    @property
    def log(self) -> Path:
        if self._has_log:
            with self._log.open("ab") as log:
                log.writelines(self._lines)
            self._lines.clear()
        return self._log

    @property
    def paths(self) -> list[str]:
        """What a report is asked for."""
        _ = self.log
        return [str(self.status)]

    def task(
        self, id: int, start_s: float, elapsed_s: float, outcome: Outcome | None = None, *,
        slot: int = 0, node: str = "n1", attempt: int = 1, settles: bool = True,
        err: bytes = b"", command: bytes = b"true", rss_kib: int = 4096,
    ) -> Records:
        """One attempt; a row only if it settles its task."""
        told = report(
            id, outcome, after_s=start_s, elapsed_s=elapsed_s, err=err, attempt=attempt,
            rss_kib=rss_kib, cpu_s=elapsed_s / 2,
        )
        told.slot = slot
        what = task(id, command)
        if settles:
            self.append(task_row(what, told, node))
        if self._has_log:
            self._lines.append(attempt_line(what, told, node, 0, settles))
        return self

    def barrier(self, id: int, met_s: float, checks: bool = False) -> Records:
        """A barrier that was waited at for a second."""
        text = b"#DISBATCH BARRIER" + b" CHECK" * checks
        barrier = Barrier(id, id + 1, text, None, checks)
        return self.append(barrier_row(barrier, "head", 99, NIGHT + met_s - 1, 1.0))

    def command(self, number: int, start_s: float, code: int = 0, node: str = "n1") -> Records:
        """A per-engine command of one second."""
        told = report(number, Exited(code), after_s=start_s)
        what = PerEngine(True, number, number + 1, b"stage in")
        return self.append(per_engine_row(what, told, node))

    def skipped(self, id: int, code: int = 0) -> Records:
        """A task that an earlier run had settled."""
        row = task_row(task(id), report(id, Exited(code), after_s=-86400), "n1")
        return self.append(skipped_row(row))

    def append(self, raw: bytes) -> Records:
        """Bytes at the end of the status file."""
        self._rows.append(raw)
        return self
