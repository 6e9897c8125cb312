"""How a run is shown while it goes on: a live block on a terminal, else a line now and then.

Both screens are told of progress by whoever drives the run, at most five times a second,
and do nothing in between: no thread, no signal handler, no change of the terminal. The
cursor stays visible and no mode is set, so a killed run leaves nothing to be restored.
"""

from __future__ import annotations

import os

from overnight.core.summary.words import visible
from overnight.watch.outlet import Outlet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from overnight.model.progress import Progress
    from overnight.ports import Screen
    from overnight.watch.block import Block


FIRST_LINE_AFTER_S = 1.0
LONGEST_PAUSE_S = 60.0


def open_screen(stream: TextIO) -> Screen:
    """A live block where the stream is a terminal that can show one, else plain lines."""
    if _can_be_drawn_on(stream) and _has_rich():
        return LiveScreen(stream)
    return PlainScreen(stream)


def _can_be_drawn_on(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def _has_rich() -> bool:
    from importlib.util import find_spec  # finding costs little, importing 70 ms: see show()

    return find_spec("rich") is not None


class PlainScreen:
    """A line after a second, then at doubling intervals up to a minute."""

    def __init__(self, stream: TextIO) -> None:
        self._outlet = Outlet(stream)
        self._pause_s = FIRST_LINE_AFTER_S
        self._last_at: float | None = None
        self._last_failure = ""

    def show(self, progress: Progress) -> None:
        """Write a line if it is time for one."""
        last_at = progress.started_at if self._last_at is None else self._last_at
        if progress.now < last_at:  # the clock was set back: count from here
            self._last_at = progress.now
        if progress.now - last_at < self._pause_s or not self._outlet.has_room():
            return
        self._last_at = progress.now
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._outlet.put(progress_line(progress) + "\n" + self._failure_line(progress))

    def say(self, line: str) -> None:
        """Write a notice."""
        self._outlet.keep(notice(line))

    def close(self) -> None:
        """Write what is still kept back."""
        self._outlet.put("")

    def _failure_line(self, progress: Progress) -> str:
        if progress.last_failure == self._last_failure:
            return ""
        self._last_failure = progress.last_failure
        return f"  last failure: {visible(progress.last_failure)}\n"


class LiveScreen:
    """One block of a few lines that is drawn over at each look; notices go above it."""

    def __init__(self, stream: TextIO) -> None:
        self._outlet = Outlet(stream)
        self._block: Block | None = None
        self._lines: list[str] = []  # of the block as it stands on the terminal
        self._widths: list[int] = []

    def show(self, progress: Progress) -> None:
        """Draw the block anew, unless the terminal is held up."""
        if not self._outlet.has_room():
            return
        if self._block is None:
            # Imported at the first look: a short run is over before it.
            from overnight.watch.block import Block

            self._block = Block(self._outlet.speaks_unicode)
        columns, rows = self._outlet.size()
        erase = self._erasure(columns)
        lines = self._block.lines(progress, columns - 1)[: max(1, rows - 1)]
        self._lines = [text for text, _ in lines]
        self._widths = [width for _, width in lines]
        self._outlet.put(erase + self._drawn())

    def say(self, line: str) -> None:
        """Write a notice above the block."""
        erase = self._erasure(self._outlet.size()[0])
        self._outlet.keep(erase + notice(line) + self._drawn())

    def close(self) -> None:
        """Take the block away."""
        erase = self._erasure(self._outlet.size()[0])
        self._lines, self._widths = [], []
        self._outlet.put(erase)

    def _drawn(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def _erasure(self, columns: int) -> str:
        if not self._lines:
            return ""
        # A line wider than the terminal has become since is wrapped onto several rows.
        rows = sum(max(1, -(-width // columns)) for width in self._widths)
        return f"\r\x1b[{rows}A\x1b[J"


def notice(line: str) -> str:
    """A notice as it may go to a terminal, ending its last line."""
    return "".join(visible(part) + "\n" for part in line.split("\n"))


def progress_line(progress: Progress) -> str:
    """How far a run is, in one line.

    >>> from overnight.model.progress import Progress
    >>> progress_line(Progress(1000, 117, 3, 0, 8, 0.0, 4.0, 30.0, 8, range_text="20 to 30 s"))
    '120 of 1,000 tasks, 3 failed, 8 running, 30/s, 20 to 30 s left'
    """
    parts = [count_text(progress)]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.skipped:
        parts.append(f"{progress.skipped:,} done before")
    if progress.running is not None:
        parts.append(f"{progress.running:,} running")
    if progress.retry_count:
        parts.append(retry_text(progress.retry_count))
    if progress.rate > 0:
        parts.append(rate_text(progress.rate))
    if progress.range_text:
        parts.append(f"{progress.range_text} left")
    if progress.barrier_line is not None:
        parts.append(f"waiting at the barrier in line {progress.barrier_line}")
    return ", ".join(parts)


def count_text(progress: Progress) -> str:
    """How many tasks have a fate, of how many where that is known."""
    if progress.total is None:
        return f"{progress.settled:,} tasks"
    return f"{progress.settled:,} of {progress.total:,} tasks"


def retry_text(count: int) -> str:
    """That tasks run again later, which explains slots that stand idle.

    >>> retry_text(1), retry_text(2)
    ('1 waits for a retry', '2 wait for a retry')
    """
    return f"{count:,} wait{'s' if count == 1 else ''} for a retry"


def rate_text(rate: float) -> str:
    """Tasks in a unit of time that makes it a number one can grasp.

    >>> rate_text(420.0), rate_text(2.5), rate_text(0.1), rate_text(0.001)
    ('420/s', '2.5/s', '6/min', '3.6/h')
    """
    for per_s, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * per_s >= 1 or unit == "h":
            break
    amount = rate * per_s
    return f"{amount:,.0f}/{unit}" if amount >= 9.95 else f"{amount:.2g}/{unit}"
