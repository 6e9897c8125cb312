"""A run as a picture: slots over time, throughput, durations."""

from __future__ import annotations

from collections import Counter

from overnight.core.estimate import duration_text
from overnight.core.summary import headline
from overnight.core.summary.words import command_text
from overnight.watch.charts import durations, throughput
from overnight.watch.lanes import KINDS, lanes_of
from overnight.watch.layout import (
    AXIS_HEIGHT,
    CHART_HEIGHT,
    HEAD_HEIGHT,
    HEADING_HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    Stack,
)
from overnight.watch.palette import SIZES
from overnight.watch.pauses import long_pauses, whole_of
from overnight.watch.scene import Box, Label, Panel, Rule, Scene, text_width
from overnight.watch.slots import SlotsPanel
from overnight.watch.timeaxis import TimeAxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.core.summary import Summary
    from overnight.watch.history import History
    from overnight.watch.lanes import Stretch
    from overnight.watch.pauses import Span


def draw(history: History, summary: Summary, title: str) -> Scene:
    """The picture of a run; as SVG below 1 MB, also of a hundred thousand tasks."""
    lanes = lanes_of(history)
    attempts = [s for lane in lanes for s in lane.stretches if s.kind in KINDS]
    gaps, waits = history.gaps()
    axis = _time_axis(history, gaps)
    stack = Stack()
    head = _head(history, attempts, summary, title, stack.take(HEAD_HEIGHT))
    slots = SlotsPanel(lanes, gaps, waits, axis, stack.take(HEADING_HEIGHT))
    stack.take(slots.height)
    times = _times(axis, stack.take(AXIS_HEIGHT))
    throughput_top = stack.take(HEADING_HEIGHT + CHART_HEIGHT) + HEADING_HEIGHT
    stack.take(16.0)
    durations_top = stack.take(HEADING_HEIGHT + CHART_HEIGHT + AXIS_HEIGHT) + HEADING_HEIGHT
    panels = [
        head,
        slots.draw(),
        times,
        throughput(attempts, axis, throughput_top, _counted_as(history)),
        _barriers(history, axis, slots.top, throughput_top + CHART_HEIGHT),
        durations(attempts, durations_top, _counted_as(history)),
    ]
    return Scene(WIDTH, stack.height + 12.0, title, headline(summary), panels)


def _time_axis(history: History, gaps: list[Span]) -> TimeAxis:
    moments = history.spans() + [(met.finished_at, met.finished_at) for met in history.barriers]
    if not moments:
        return TimeAxis((0.0, 1.0), LEFT, RIGHT, [])
    whole = whole_of(moments)
    return TimeAxis(whole, LEFT, RIGHT, long_pauses(gaps, whole))


def _head(
    history: History, attempts: list[Stretch], summary: Summary, title: str, top: float
) -> Panel:
    panel = Panel("head")
    took = f", {duration_text(summary.wall_s)}" if summary.has_run else ""
    panel.shapes += [
        Label((LEFT, top + 30), title, "title"),
        Label((LEFT, top + 50), headline(summary) + took),
    ]
    what = f"{_counted_as(history)}:"
    panel.shapes.append(Label((LEFT, top + 70), what))
    x = LEFT + text_width(what, SIZES["label"]) + 8
    for kind, count in _legend(history, attempts):
        text = f"{kind.replace('-', ' ')} {count:,}"
        if kind == "barrier":
            panel.shapes.append(Rule((x + 5, top + 59), (x + 5, top + 73), "key barrier"))
        else:
            panel.shapes.append(Box((x, top + 61, 10, 10), f"key {kind}"))
        panel.shapes.append(Label((x + 15, top + 70), text))
        x += 15 + text_width(text, SIZES["label"]) + 22
    return panel


def _counted_as(history: History) -> str:
    """What the picture counts: attempts, where they are more than the tasks of its heading."""
    return "tasks" if len(history.attempts) == len(history.fates) else "attempts"


def _legend(history: History, attempts: list[Stretch]) -> list[tuple[str, int]]:
    counts = Counter(stretch.kind for stretch in attempts)
    counts["per-engine"] = len(history.commands)
    counts["barrier"] = len(history.barriers)
    kinds = (*KINDS, "per-engine", "barrier")
    return [(kind, counts[kind]) for kind in kinds if counts[kind] or kind == "done"]


def _times(axis: TimeAxis, top: float) -> Panel:
    panel = Panel("time")
    for x, text in axis.ticks():
        panel.shapes.append(Rule((x, top), (x, top + 4), "grid"))
        panel.shapes.append(Label((x, top + 16), text, "label", "middle"))
    return panel


def _barriers(history: History, axis: TimeAxis, top: float, bottom: float) -> Panel:
    """Vertical lines where barriers were met; those in one pixel are one line."""
    panel = Panel("barriers")
    last_x = labelled_to = LEFT - 100.0
    for met in sorted(history.barriers, key=lambda met: met.finished_at):
        x = axis.x(met.finished_at)
        if x - last_x < 1.0:
            continue
        last_x = x
        barrier = met.barrier
        style = "check barrier" if barrier.checks else "barrier"
        words = f"{'CHECK' if barrier.checks else 'barrier'}, line {barrier.line}"
        panel.shapes.append(
            Rule((x, top - 13), (x, bottom), style, {"line": barrier.line, "task": barrier.id},
                 f"{words}: {command_text(barrier.text)}")
        )
        half = text_width(words, SIZES["label"]) / 2
        if x - half > labelled_to:
            middle = min(max(x, LEFT + half), RIGHT - half)
            panel.shapes.append(Label((middle, top - 19), words, "label", "middle"))
            labelled_to = middle + half + 8
    return panel
