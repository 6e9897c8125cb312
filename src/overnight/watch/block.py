"""The live block, drawn with rich. The only module that imports it, and late."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from overnight.core.estimate import duration_text
from overnight.core.summary.words import visible
from overnight.watch.screen import count_text, rate_text, retry_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.progress import Progress

DONE, FAILED, QUIET = "green", "bold red", "dim"
BAR_LIMIT = 40
"""Columns of the bar at most; a longer one says no more."""


class Block:
    """What the block looks like; where it stands is the screen's business."""

    def __init__(self, speaks_unicode: bool) -> None:
        self._console = Console(file=StringIO(), force_terminal=True, highlight=False)
        self._full, self._rest = ("━", "─") if speaks_unicode else ("#", "-")

    def lines(self, progress: Progress, width: int) -> list[tuple[str, int]]:
        """The lines, each with its width in columns, none wider than ``width``."""
        drawn = []
        for text in self._texts(progress, width):
            text.truncate(max(1, width), overflow="ellipsis")
            drawn.append((self._rendered(text), cell_len(text.plain)))
        return drawn

    def _rendered(self, text: Text) -> str:
        self._console.width = cell_len(text.plain) + 1
        with self._console.capture() as capture:
            self._console.print(text, end="", no_wrap=True, overflow="ignore", crop=False)
        return capture.get()

    def _texts(self, progress: Progress, width: int) -> list[Text]:
        texts = [self._head(progress, width), _counts(progress)]
        if progress.barrier_line is not None:
            texts.append(Text(f"waiting at the barrier in line {progress.barrier_line}", QUIET))
        if progress.last_failure:
            texts.append(
                Text.assemble(("last failure: ", QUIET), visible(progress.last_failure))
            )
        return texts

    def _head(self, progress: Progress, width: int) -> Text:
        counts = f"{count_text(progress)}, {_clock_text(progress.elapsed_s)}"
        if not progress.total:
            return Text(counts)
        bar_width = min(BAR_LIMIT, width - len(counts) - 2)
        if bar_width < 5:
            return Text(counts)
        return Text.assemble(self._bar(progress, progress.total, bar_width), "  ", counts)

    def _bar(self, progress: Progress, total: int, width: int) -> Text:
        full = min(width, width * progress.settled // total)
        # A single failure among a million is not to vanish in rounding.
        failed = -(-width * progress.failed // total)
        failed = min(failed, max(full, 1) if progress.failed else 0)
        return Text.assemble(
            (self._full * max(0, full - failed), DONE),
            (self._full * failed, FAILED),
            (self._rest * (width - max(full, failed)), QUIET),
        )


def _clock_text(elapsed_s: float) -> str:
    """How long the run has been going on; a running clock shows no fractions."""
    return f"{elapsed_s:.0f} s" if elapsed_s < 59.5 else duration_text(elapsed_s)


def _counts(progress: Progress) -> Text:
    parts = [Text(f"{progress.done:,} done", DONE)]
    if progress.failed:
        parts.append(Text(f"{progress.failed:,} failed", FAILED))
    if progress.skipped:
        parts.append(Text(f"{progress.skipped:,} done before", QUIET))
    if progress.running is not None:
        parts.append(Text(f"{progress.running:,} running on {progress.slots:,} slots"))
    if progress.retry_count:
        parts.append(Text(retry_text(progress.retry_count)))
    if progress.rate > 0:
        parts.append(Text(rate_text(progress.rate)))
    if progress.range_text:
        parts.append(Text(f"{progress.range_text} left"))
    return Text("  ").join(parts)
