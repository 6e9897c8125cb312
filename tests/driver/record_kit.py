"""A record in a folder, its flushes taken in when the test says so, and a clock of the test's."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded, TasksSkipped
from overnight.driver.record import Flushed, Record
from overnight.formats import statusfile
from overnight.model.outcome import Exited
from overnight.model.report import Report
from overnight.model.run import RunFiles
from overnight.model.task import NO_REPEAT, Barrier, DoneBefore, PerEngine, Task

NODE = "n1"
FLUSH_WITHIN_S = 60


def ended(id: int, code: int = 0, command: bytes = b"true", attempt: int = 1, settles=True):
    """An attempt of task ``id`` is over; its row, where it settles the task, is ``row_of``."""
    task = Task(id, id + 1, NO_REPEAT, command)
    report = Report(id, attempt, Exited(code), 77, 1000.0 + id, 0.25)
    return TaskEnded(task, report, NODE, rank=0, settles=settles, is_cut=False)


def row_of(entry: TaskEnded) -> bytes:
    return statusfile.task_row(entry.task, entry.report, entry.node)


def rows_of(entries) -> bytes:
    return b"".join(map(row_of, entries))


def command_ended(number: int) -> CommandEnded:
    command = PerEngine(True, number, 1, b"mkdir scratch")
    return CommandEnded(command, Report(number, 1, Exited(0), 78, 1000.0, 0.5), NODE, 0)


def barrier_met(id: int) -> BarrierMet:
    barrier = Barrier(id, id + 1, b"#DISBATCH BARRIER", None, checks=False)
    return BarrierMet(barrier, started_at=1000.0, finished_at=1002.5)


def skipped(id: int, row: bytes | None) -> TasksSkipped:
    return TasksSkipped(DoneBefore(id, id + 1, 1, 0, b"" if row is None else row + b"\n"))


def said(events) -> list[tuple]:
    """Events as plain values, to be compared."""
    return [(type(e).__name__, *(getattr(e, name) for name in e.__slots__)) for e in events]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size for a moment."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


class RecordBench:
    """A record, and what is given to it."""

    def __init__(self, folder: Path, **options) -> None:
        self.files = RunFiles(f"{folder}/run")
        self.results: SimpleQueue[Flushed] = SimpleQueue()
        self.now = 1000.0
        self.number = 0
        self.record = Record(self.files, NODE, self.results.put, **options)

    def write(self, *entries) -> None:
        """Give entries; the next turn writes them."""
        self.number += len(entries)
        self.record.write(entries, self.number)

    def turn(self, after_s: float = 0.0) -> list[tuple]:
        """A turn of the loop, so long after the last one."""
        self.now += after_s
        return said(self.record.turn(self.now))

    def result(self) -> Flushed:
        """Wait for the flush that is under way, and keep what it says from the record."""
        return self.results.get(timeout=FLUSH_WITHIN_S)

    def take(self, result: Flushed) -> list[tuple]:
        """Tell the record what a flush said."""
        return said(self.record.flushed(result, self.now))

    def take_flush(self) -> list[tuple]:
        """Wait for the flush that is under way and tell the record of it."""
        return self.take(self.result())

    def status(self) -> bytes:
        return Path(self.files.status).read_bytes()

    def task_log(self) -> bytes:
        return Path(self.files.tasks).read_bytes()

    def close(self) -> None:
        self.record.close()
