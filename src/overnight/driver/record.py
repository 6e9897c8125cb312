"""The record of a run: the status file that counts, and the task log beside it.

Rows are written in one write a turn and made durable about every 100 ms, at once when
somebody waits. A thread flushes, so that the loop need not wait - except on file systems
that let a write wait for a flush of the same file (FUSE, some network ones): nothing may
be given out before the rows of what made it possible are written, so there the loop waits
with its write. Flushes that take long are asked for less often.

From the first fault on ``fault`` says why nothing new may be started. The record is tried
again every five seconds; the fault is over when everything that was not durable has been
written anew and flushed.
"""

from __future__ import annotations

import os

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded, TasksSkipped
from overnight.core.events import RecordFailed, RecordMended, RowsDurable
from overnight.driver import appendfile
from overnight.driver.flusher import Flusher, datasync
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
MOST_PAUSE_S = 2.0
"""After a flush that took long the next one waits as long, but no longer than this."""

TRY_AGAIN_S = 5.0
TAIL_BLOCK = 1 << 16
MOST_UNDURABLE = 64 << 20
"""Bytes that may be kept for want of a flush before the record counts as stuck."""

MOST_BEHIND = 4 << 20
"""Bytes that wait for a flush before rows are not read any further that come by themselves."""


class Record:
    """Writes entries, makes them durable, and survives a file system that is away.

    Attributes:
        fault: Why nothing can be recorded at present; empty when all is well.
        loss: Bytes of rows that were not there any more when a fault was mended.
    """

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
        self.loss = 0
        self._number = 0  # entries given
        self._durable_number = 0  # of them, those the scheduler knows to be durable
        self._flushed_at = 0.0
        self._flush_at = 0.0  # when the next flush is due
        self._try_at = 0.0
        self._is_urgent = False
        self._is_flushing = False  # asked for, and its result not yet taken in
        self._flush_mends = False  # the fault is over if the present flush succeeds
        self._flusher = Flusher(lambda end, number, fault: post(Flushed(end, number, fault)))
        try:
            self._status, self._tasks = _open(files, goes_on)
        except BaseException:
            self._flusher.close()
            raise
        if has_header and not self._status.end:
            self._status.append(statusfile.HEADER)

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
        elif type(entry) is TasksSkipped:
            rows.append(entry.done.rows)
        else:
            raise InvariantBroken(f"not an entry of a record: {entry!r}")

    def hasten(self) -> None:
        """Somebody waits: the next ``turn`` flushes without waiting for 100 ms."""
        self._is_urgent = True

    def turn(self, now: float) -> list[Event]:
        """Write what is there, ask for a flush when it is time.

        Returns:
            What the scheduler has to know: a fault that began, rows that are durable.
        """
        if self.fault:
            return self._try_again(now) if now >= self._try_at else []
        try:
            self._write_all()
        except OSError as error:
            return [self._fail(_words(error), now)]
        return self._flush_when_due(now)

    def _write_all(self) -> None:
        self._status.write()
        self._tasks.write()

    def _flush_when_due(self, now: float) -> list[Event]:
        if self._is_flushing:
            return self._fail_when_stuck(now)
        if not self._status.undurable_size:
            # Entries without a row, or none at all: nothing has to be waited for.
            self._is_urgent = False
            return self._newly_durable(self._number)
        if self._is_urgent or self.is_behind or now >= self._flush_at:
            self._flush(now)
        return []

    def _flush(self, now: float) -> None:
        """Flush the rows; lines of the task log follow when the system likes."""
        self._is_urgent = False
        self._is_flushing = True
        self._flushed_at = now
        self._flush_at = now + FLUSH_EVERY_S
        self._flusher.flush(self._status.fd, self._status.written_end, self._number)

    def _fail_when_stuck(self, now: float) -> list[Event]:
        if self._status.undurable_size + self._tasks.undurable_size <= MOST_UNDURABLE:
            return []
        self._flush_mends = True
        return [self._fail("the file system does not finish what it was given", now)]

    def _newly_durable(self, number: int) -> list[Event]:
        if number <= self._durable_number:
            return []
        self._durable_number = number
        return [RowsDurable(number)]

    @property
    def is_behind(self) -> bool:
        """So much waits to be flushed that nothing should be read that makes rows by itself."""
        return self._status.undurable_size > MOST_BEHIND

    def next_turn_at(self) -> float | None:
        """When ``turn`` wants to be called though nothing has happened."""
        if self.fault:
            return self._try_at
        if self._status.undurable_size and not self._is_flushing:
            return self._flush_at
        return None

    def flushed(self, flushed: Flushed, now: float) -> list[Event]:
        """A flush is over: what it was asked for is durable, or has to be written again."""
        self._is_flushing = False
        pause_s = min(now - self._flushed_at, MOST_PAUSE_S)
        self._flush_at = max(self._flush_at, now + pause_s)
        is_mended = self._flush_mends
        self._flush_mends = False
        if flushed.fault is not None:
            return [self._fail(_words(flushed.fault), now)]
        self._status.became_durable(flushed.end)
        self._tasks.became_durable(self._tasks.written_end)
        if self._status.is_displaced:
            return [self._fail(f"{self._status.path} was removed or replaced", now)]
        events = self._newly_durable(flushed.number)
        if is_mended:
            self.fault = ""
            events.append(RecordMended())
            self.loss, self._status.lost_size = self._status.lost_size, 0
        return events

    def _fail(self, reason: str, now: float) -> Event:
        self._try_at = now + TRY_AGAIN_S
        self.fault = reason
        return RecordFailed(reason)

    def _try_again(self, now: float) -> list[Event]:
        """Write everything anew that is not durable; its flush then says whether all is well."""
        self._try_at = now + TRY_AGAIN_S
        if self._is_flushing:
            return []
        try:
            self._status.reopen()
            self._tasks.reopen_or_begin()  # losing it costs detail; it must not stop the run
            self._write_all()
        except OSError as error:
            self.fault = _words(error)
            return []
        self._flush_mends = True
        self._flush(now)
        return []

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


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _open(
    files: RunFiles, goes_on: bool
) -> tuple[appendfile.AppendFile, appendfile.AppendFile]:
    status = _go_on(files.status) if goes_on else _begin(files.status)
    try:
        tasks = appendfile.continue_file(files.tasks)
        if _unfinished_line(files.tasks):
            tasks.append(b"\n")
    except OSError:
        status.close()
        if not goes_on:
            os.unlink(files.status)  # an empty one would keep the prefix taken
        raise
    return status, tasks


def _begin(path: str) -> appendfile.AppendFile:
    try:
        return appendfile.create(path)
    except FileExistsError as error:
        raise PrefixTaken(
            "the status file of an earlier run lies there", where=path,
            kept="nothing was started, the file is untouched",
            do=f"go on with that run by adding -r {path}, or choose another prefix with -p",
        ) from error


def _go_on(path: str) -> appendfile.AppendFile:
    status = appendfile.continue_file(path)
    # An earlier driver may have been killed between writing its last rows and making them
    # durable, and engines are told to forget what stands here.
    datasync(status.fd)
    status.append(statusfile.closing(_unfinished_line(path)))
    return status


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
