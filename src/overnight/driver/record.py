"""The record of a run: the status file that counts, and the task log beside it.

Rows are written in one write a turn and made durable about every 100 ms, at once when
somebody waits. From the first fault on nothing is acknowledged and ``fault`` says why
nothing new may be started; the record is tried again every five seconds.
"""

from __future__ import annotations

import os

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded, TaskSkipped
from overnight.core.events import RecordFailed, RecordMended, RowsDurable
from overnight.driver import appendfile
from overnight.driver.flusher import Flusher
from overnight.errors import InvariantBroken, PrefixTaken
from overnight.formats import statusfile
from overnight.formats.tasklog import attempt_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.core.effects import Entry
    from overnight.core.events import Event
    from overnight.model.run import RunFiles

FLUSH_EVERY_S = 0.1
TRY_AGAIN_S = 5.0
SAY_AGAIN_S = 60.0
TAIL_BLOCK = 1 << 16
MOST_UNDURABLE = 64 << 20
"""Bytes that may wait to become durable before the record counts as stuck."""


class Record:
    """Writes entries, makes them durable, and survives a file system that is away."""

    def __init__(
        self, files: RunFiles, node: str, post: Callable[[Flushed], None], *,
        goes_on: bool = False, has_header: bool = False,
    ) -> None:
        """Open the files.

        Args:
            files: Where they lie.
            node: Name of this host, for barrier rows.
            post: How the flushing thread hands back its results.
            goes_on: The status file of an earlier run is continued, not begun.
            has_header: A new status file begins with the names of its columns.

        Raises:
            PrefixTaken: The status file exists and is not to be continued.
            OSError: They cannot be made.
        """
        self._node = node
        self._pid = os.getpid()
        self.fault = ""
        self._number = 0  # of the last entry given
        self._flushed_at = 0.0
        self._try_at = 0.0
        self._is_urgent = False
        self._status, self._tasks = _open(files, goes_on)
        if has_header and not self._status.end:
            self._status.append(statusfile.HEADER)
        self._flusher = Flusher(lambda end, number, fault: post(Flushed(end, number, fault)))

    def write(self, entries: Sequence[Entry], number: int) -> None:
        """Add entries; they are given to the file system by the next ``turn``.

        Args:
            entries: What is to be recorded, in order.
            number: How many entries there are then in all.
        """
        rows: list[bytes] = []
        lines: list[bytes] = []
        for entry in entries:
            self._render(entry, rows, lines)
        self._number = number
        self._status.append(b"".join(rows))
        self._tasks.append(b"".join(lines))

    def _render(self, entry: Entry, rows: list[bytes], lines: list[bytes]) -> None:
        if type(entry) is TaskEnded:
            if entry.settles:
                rows.append(statusfile.task_row(entry.task, entry.report, entry.node))
            lines.append(
                attempt_line(entry.task, entry.report, entry.node, entry.rank, entry.settles)
            )
        elif type(entry) is BarrierMet:
            rows.append(statusfile.barrier_row(
                entry.barrier, self._node, self._pid, entry.started_at,
                entry.finished_at - entry.started_at,
            ))
        elif type(entry) is CommandEnded:
            rows.append(statusfile.per_engine_row(entry.command, entry.report, entry.node))
        elif type(entry) is TaskSkipped:
            if entry.done.row is not None:
                rows.append(entry.done.row + b"\n")
        else:
            raise InvariantBroken(f"not an entry of a record: {entry!r}")

    def hasten(self) -> None:
        """Somebody waits: the next ``turn`` flushes without waiting for 100 ms."""
        self._is_urgent = True

    def turn(self, now: float) -> list[Event]:
        """Write what is there, ask for a flush when it is time.

        Returns:
            What the scheduler has to know: a fault that began or ended.
        """
        if self.fault:
            return self._try_again(now) if now >= self._try_at else []
        try:
            self._write_all()
        except OSError as error:
            return [self._fail(error, now)]
        return self._flush_when_due(now)

    def _write_all(self) -> None:
        self._status.write()
        self._tasks.write()

    def _flush_when_due(self, now: float) -> list[Event]:
        status = self._status
        if self._flusher.is_busy:
            if status.undurable_size > MOST_UNDURABLE:
                return [self._fail(TimeoutError("the file system takes no more"), now)]
            return []
        if not status.undurable_size:
            self._is_urgent = False
            return [RowsDurable(self._number)] if self._number else []
        if self._is_urgent or now - self._flushed_at >= FLUSH_EVERY_S:
            self._is_urgent = False
            self._flushed_at = now
            self._flusher.flush(status.fd, status.written_end, self._number)
        return []

    def next_turn_at(self) -> float | None:
        """When ``turn`` wants to be called though nothing has happened."""
        if self.fault:
            return self._try_at
        if self._status.undurable_size and not self._flusher.is_busy:
            return self._flushed_at + FLUSH_EVERY_S
        return None

    def flushed(self, flushed: Flushed, now: float) -> list[Event]:
        """A flush is over: what it was asked for is durable, or has to be written again."""
        if flushed.fault is not None:
            return [self._fail(flushed.fault, now)]
        if self.fault:
            return []
        self._status.became_durable(flushed.end)
        self._tasks.became_durable(self._tasks.written_end)
        return [RowsDurable(flushed.number)]

    def _fail(self, error: OSError, now: float) -> Event:
        self._try_at = now + TRY_AGAIN_S
        self.fault = f"{error.strerror or error}"
        return RecordFailed(self.fault)

    def _try_again(self, now: float) -> list[Event]:
        self._try_at = now + TRY_AGAIN_S
        if self._flusher.is_busy:
            return []
        try:
            self._status.reopen()
            self._tasks.reopen()
            self._write_all()
        except OSError as error:
            self.fault = f"{error.strerror or error}"
            return []
        self.fault = ""
        self._is_urgent = True
        return [RecordMended()]

    def close(self) -> None:
        """Close the files."""
        self._flusher.close()
        self._status.close()
        self._tasks.close()


class Flushed:
    """What the flushing thread says: up to where, which entry, and the fault if it failed."""

    __slots__ = ("end", "fault", "number")

    def __init__(self, end: int, number: int, fault: OSError | None) -> None:
        self.end = end
        self.number = number
        self.fault = fault


def _open(
    files: RunFiles, goes_on: bool
) -> tuple[appendfile.AppendFile, appendfile.AppendFile]:
    if goes_on:
        status = appendfile.continue_file(files.status)
        status.append(statusfile.closing(_unfinished_line(files.status)))
    else:
        try:
            status = appendfile.create(files.status)
        except FileExistsError as error:
            raise PrefixTaken(
                "the status file of an earlier run lies there", where=files.status,
                kept="nothing was started, the file is untouched",
                do=f"go on with that run by adding -r {files.status}, or choose another"
                   " prefix with -p",
            ) from error
    tasks = appendfile.continue_file(files.tasks)
    if _unfinished_line(files.tasks):
        tasks.append(b"\n")
    return status, tasks


def _unfinished_line(path: str) -> bytes:
    """What stands behind the last line feed of a file: a line that a crash cut."""
    with open(path, "rb") as file:
        start = file.seek(0, os.SEEK_END)
        tail = b""
        while start and b"\n" not in tail:
            step = min(start, TAIL_BLOCK)
            start = file.seek(start - step)
            tail = file.read(step) + tail
        return tail.rpartition(b"\n")[2]
