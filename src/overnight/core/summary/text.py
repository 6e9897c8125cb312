"""The summary as plain text for a person, and as plain values for a program."""

from __future__ import annotations

from overnight.core.estimate import duration_text
from overnight.core.summary.words import clip, memory_text, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from overnight.core.summary.causes import Cause, Named
    from overnight.core.summary.tally import Summary

CAUSES_TOLD = 12
"""Causes that the text at a run's end names; more would not be read at breakfast."""

SCREEN_LINES = 15
"""Of a longer text the first line, with the counts, may have left the screen."""


def summary_text(
    summary: Summary,
    rerun: str = "",
    clock: Callable[[float], str] | None = None,
    width: int = 80,
    colour: bool = False,
    report: str = "",
) -> str:
    """The summary for a person at breakfast: lines of at most ``width`` columns.

    Args:
        summary: What is told.
        rerun: Command that runs the failed tasks again; it is never cut, so that it can be
            copied whole, and left out when nothing failed.
        clock: Says a Unix time as the reader's clock has it.
        width: Columns, at least 40.
        colour: Whether the terminal may be asked for bold and red.
        report: Command that tells of all causes, where only the commonest are to be told here.
    """
    page = _Page(max(40, width), colour)
    page.head(headline(summary), is_bad=bool(summary.failed or summary.cut_off))
    for name, value in measures(summary, clock):
        page.line(f"  {name:<10} {value}")
    _write_notables(page, "The slowest", summary.slowest.ranked, duration_text)
    _write_notables(page, "The most memory", summary.large, memory_text)
    _write_causes(page, summary, report)
    if rerun and (summary.failed or summary.cut_off):
        page.gap_and_head("Run the failed ones again")
        page.whole(f"  {rerun}")
    return page.text()


def headline(summary: Summary) -> str:
    """The counts in one line."""
    parts = [f"{summary.done:,} done"]
    parts += [
        f"{count:,} {what}"
        for count, what in (
            (summary.failed, "failed"), (summary.cut_off if summary.left is None else 0, "cut off"),
            (summary.skipped, "done before"), (summary.left or 0, left_words(summary.cut_off)),
        )
        if count
    ]
    total = summary.settled + (summary.without_row or 0)
    return f"{total:,} task{'' if total == 1 else 's'}: {', '.join(parts)}"


def left_words(cut_off: int) -> str:
    """What stands behind the number of tasks that are left.

    >>> left_words(0), left_words(2)
    ('left', 'left (2 of them cut off)')
    """
    return f"left ({cut_off:,} of them cut off)" if cut_off else "left"


def ends_with_counts(text: str, summary: Summary) -> str:
    """The text of a summary; the counts stand at its end once more where it is long.

    Args:
        text: It begins with the headline.
        summary: What it tells of.
    """
    text = text.rstrip("\n")
    return f"{text}\n\n{headline(summary)}" if text.count("\n") >= SCREEN_LINES else text


def measures(
    summary: Summary, clock: Callable[[float], str] | None
) -> Iterator[tuple[str, str]]:
    """Names and values of what there is to say beyond the counts."""
    if summary.has_run:
        yield "took", _wall_words(summary)
        if clock:
            first, last = summary.first_started_at, summary.last_finished_at
            yield "from", f"{clock(first)} to {clock(last)}"
        yield "task time", _task_time_words(summary)
    if summary.cpu_s:
        yield "CPU time", duration_text(summary.cpu_s)
    if summary.retried:
        yield "retried", f"{summary.retried:,} needed more than one attempt"
    if summary.skipped_failed:
        yield "before", f"{summary.skipped_failed:,} of those run before had failed"
    if summary.per_engine_failed:
        yield "engines", f"{summary.per_engine_failed:,} per-engine commands failed"
    if summary.released:
        yield "released", f"{summary.released:,} processes were left running by tasks that ended"


def _wall_words(summary: Summary) -> str:
    took = duration_text(summary.wall_s)
    return f"{took} and a pause of {duration_text(summary.pause_s)}" if summary.pause_s else took


def _task_time_words(summary: Summary) -> str:
    total_s = summary.task_s
    if summary.wall_s <= 0.0:
        return duration_text(total_s)
    return f"{duration_text(total_s)}, on average {total_s / summary.wall_s:.1f} at once"


def _write_notables(
    page: _Page, title: str, ranked: Sequence[tuple[float, Named]], words: Callable[[float], str]
) -> None:
    if not ranked:
        return
    page.gap_and_head(title)
    rows = [(words(measure), named.place, named.command) for measure, named in ranked]
    broad = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for measure, place, command in rows:
        page.line(f"  {measure:>{broad[0]}}  {place:<{broad[1]}}  {command}")


def _write_causes(page: _Page, summary: Summary, report: str) -> None:
    causes = summary.causes.by_count()
    if not causes:
        return
    page.gap_and_head("Failed or cut off, by cause" if summary.cut_off else "Failed, by cause")
    told = causes[:CAUSES_TOLD] if report else causes
    for cause in told:
        _write_cause(page, cause, says_node=len(summary.nodes) > 1)
    rest = causes[len(told):]
    if rest:
        count = sum(cause.count for cause in rest)
        words = "1 rarer cause" if len(rest) == 1 else f"{len(rest)} rarer causes"
        page.line(f"  {count:,} x of {words}, told by", is_bad=True)
        page.whole(f"    {report}")


def _write_cause(page: _Page, cause: Cause, says_node: bool) -> None:
    where = where_text(cause) if says_node else ""
    page.line(f"  {cause.count:,} x {cause.ending}{where}", is_bad=True)
    if cause.words:
        page.line(f"      {cause.words}")
    for named in cause.examples:
        page.line(f"    {named.place}: {named.command}")
    if cause.count > len(cause.examples):
        page.line(f"    and {cause.count - len(cause.examples):,} more")


def where_text(cause: Cause) -> str:
    """Where the failures of a cause were, if all were in one place."""
    if not cause.node:
        return ""
    return f", {'all ' if cause.count > 1 else ''}on {cause.node}"


class _Page:
    """Lines clipped to a width, with or without colour; no foreign text gets past it raw."""

    def __init__(self, width: int, colour: bool) -> None:
        self._width = width
        self._colour = colour
        self._lines: list[str] = []

    def line(self, text: str, is_bad: bool = False) -> None:
        self._lines.append(self._fitted(text, "31" if is_bad else ""))

    def whole(self, text: str) -> None:
        self._lines.append(text)

    def head(self, text: str, is_bad: bool = False) -> None:
        self._lines.append(self._fitted(text, "1;31" if is_bad else "1"))

    def gap_and_head(self, text: str) -> None:
        self._lines.append("")
        self.head(text)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _fitted(self, text: str, paint: str) -> str:
        shown = clip(visible(text), self._width)
        return f"\x1b[{paint}m{shown}\x1b[0m" if self._colour and paint else shown


def summary_facts(summary: Summary) -> dict[str, Any]:
    """The summary as plain values, for JSON: seconds, KiB, Unix times."""
    return {
        "done": summary.done,
        "failed": summary.failed,
        "cut_off": summary.cut_off,
        "skipped": summary.skipped,
        "skipped_failed": summary.skipped_failed,
        "left": summary.left,
        "per_engine_failed": summary.per_engine_failed,
        "retried": summary.retried,
        "released": summary.released,
        "started_at": summary.first_started_at,
        "finished_at": summary.last_finished_at,
        "wall_s": round(summary.wall_s, 3),
        "pause_s": round(summary.pause_s, 3),
        "task_s": round(summary.task_s, 3),
        "cpu_s": round(summary.cpu_s, 3),
        "slowest": [_notable_facts("elapsed_s", *entry) for entry in summary.slowest.ranked],
        "largest": [_notable_facts("max_rss_kib", *entry) for entry in summary.largest.ranked],
        "causes": [_cause_facts(cause) for cause in summary.causes.by_count()],
    }


def _notable_facts(name: str, measure: float, named: Named) -> dict[str, Any]:
    return {"task": named.task_id, name: measure, "place": named.place, "command": named.command}


def _cause_facts(cause: Cause) -> dict[str, Any]:
    return {
        "ending": cause.ending,
        "words": cause.words,
        "count": cause.count,
        "node": cause.node,
        "examples": [
            {"task": named.task_id, "place": named.place, "command": named.command}
            for named in cause.examples
        ],
    }
