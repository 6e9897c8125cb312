"""Slots over time: a lane for each slot, with what ran in it.

In a small run every task has a box of its own. In a large one, neighbours in a lane that
ended well and lie closer than a pixel become one. What failed is never merged with what
did not, is never narrower than the eye can find, and has a mark above the lanes beside.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from overnight.core.estimate import duration_text
from overnight.core.summary.words import command_text
from overnight.watch.layout import (
    HEADING_HEIGHT,
    LANE_HEIGHT_LIMIT,
    LANES_HEIGHT_LIMIT,
    LEFT,
    RIGHT,
)
from overnight.watch.palette import SIZES
from overnight.watch.scene import Box, Boxes, Label, Panel, text_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from overnight.watch.lanes import Lane, Stretch
    from overnight.watch.pauses import Span
    from overnight.watch.scene import Data, Rect
    from overnight.watch.timeaxis import TimeAxis

ALONE_LIMIT = 1500
"""Boxes with a tip and data of their own; a run with more tasks is drawn merged."""

MERGED_LIMIT = 12_000
"""Merged boxes above which neighbours further apart are merged too, up to GAP_LIMIT."""

GAP_LIMIT = 32.0
"""Pixels: a wider gap in a lane is always seen. A pause of all lanes is marked anyway."""

SEEN_WIDTH = 2.5
"""Pixels: the least width of what failed."""

IDLE_WIDTH = 5.0
"""Pixels: a pause of all slots from here on is marked."""

NAME_LIMIT = 17
"""Characters that fit to the left of the lanes."""

LINE_HEIGHT = 14.0

FOLD_WORDS = ("idle", "{}", "(not to", "scale)")
"""What stands in a folded pause, with how long it was."""

PEACEFUL = ("done", "per-engine")
"""Kinds of stretches that may be drawn together."""


class SlotsPanel:
    """Lanes from the top down, with what ran in them."""

    def __init__(
        self, lanes: list[Lane], gaps: list[Span], waits: list[Span], axis: TimeAxis,
        heading_top: float,
    ) -> None:
        self._lanes = lanes
        self._gaps = gaps
        self._waits = waits
        self._axis = axis
        self._heading_top = heading_top
        self.top = heading_top + HEADING_HEIGHT
        self._pitch = min(LANE_HEIGHT_LIMIT, LANES_HEIGHT_LIMIT / max(1, len(lanes)))
        self.height = self._pitch * max(1, len(lanes))
        # Lanes too low for a gap overlap a little: seams would lighten them all.
        self._box_height = self._pitch * 0.82 if self._pitch >= 4 else self._pitch + 0.25

    def draw(self) -> Panel:
        panel = Panel("slots")
        panel.shapes.append(Label((LEFT, self._heading_top + 20), self._heading(), "heading"))
        panel.shapes += self._tracks()
        count = sum(len(lane.stretches) for lane in self._lanes)
        panel.shapes += self._each() if count <= ALONE_LIMIT else self._merged()
        panel.shapes += self._pauses()
        panel.shapes += self._failures()
        panel.shapes += self._marks()
        panel.shapes += self._names()
        return panel

    def _heading(self) -> str:
        """What the lanes show, and what a strip means that is too low to say it."""
        has_room = self.height >= LINE_HEIGHT * len(FOLD_WORDS)
        is_unsaid = self._axis.folds and not has_room
        return "Slots over time" + (" (a grey strip is idle time, not to scale)" * bool(is_unsaid))

    def _row(self, number: int) -> float:
        return self.top + number * self._pitch

    def _tracks(self) -> list[Box]:
        """What shows where a slot idled: a track for each lane, or for each node of low ones."""
        if self._pitch >= 4:
            return [
                Box((LEFT, self._row(i), RIGHT - LEFT, self._box_height), "lane", _lane_data(lane))
                for i, lane in enumerate(self._lanes)
            ]
        return [
            Box((LEFT, self._row(first), RIGHT - LEFT, self._pitch * count), "lane", {"node": node})
            for node, first, count in self._nodes()
        ]

    def _nodes(self) -> list[tuple[str, int, int]]:
        """The nodes from the top down: name, number of the first lane, how many there are."""
        counts = Counter(lane.node for lane in self._lanes)  # lanes of a node lie together
        firsts = accumulate(counts.values(), initial=0)
        return [(node, first, counts[node]) for node, first in zip(counts, firsts, strict=False)]

    def _pauses(self) -> list[Box | Label]:
        shapes: list[Box | Label] = []
        for words, style, gaps in (
            ("idle", "idle", self._gaps), ("waiting for a retry", "wait", self._waits),
        ):
            for start, end in gaps:
                left, right = self._axis.x(start), self._axis.x(end)
                if right - left >= IDLE_WIDTH:
                    shapes += self._pause((start, end), left, right, words, style)
        return shapes

    def _pause(
        self, span: Span, left: float, right: float, words: str, style: str
    ) -> Iterable[Box | Label]:
        start, end = span
        is_folded = (start, end) in self._axis.folds
        took = duration_text(end - start)
        bottom = self.top + self.height - self._pitch + self._box_height
        yield Box(
            (left, self.top, right - left, bottom - self.top), "fold" if is_folded else style,
            {"from": f"{start:.3f}", "to": f"{end:.3f}", "seconds": f"{end - start:.3f}"},
            f"{words} {took}",
        )
        lines = self._pause_lines(words, took, right - left, is_folded)
        y = self.top + self.height / 2 + 4 - LINE_HEIGHT / 2 * (len(lines) - 1)
        for number, line in enumerate(lines):
            yield Label(((left + right) / 2, y + LINE_HEIGHT * number), line, "label", "middle")

    def _pause_lines(self, words: str, took: str, width: float, is_folded: bool) -> list[str]:
        """What stands in a strip; never more lines than the lanes are high."""
        if not is_folded:
            return fitting_lines([[f"{words} {took}"], [words, took]], width, self.height)
        whole = [line.format(took) for line in FOLD_WORDS]
        return fitting_lines([whole, whole[:2], [took]], width, self.height)

    def _each(self) -> list[Box]:
        """A box for each stretch that did not fail, set apart from its neighbours."""
        boxes = []
        for i, lane in enumerate(self._lanes):
            for stretch in lane.stretches:
                if stretch.kind in PEACEFUL:
                    left, right = self._extent(stretch)
                    width = right - left
                    rect = (left, self._row(i), width - 0.7 if width > 3 else width,
                            self._box_height)
                    boxes.append(self._box(rect, [stretch]))
        return boxes

    def _merged(self) -> list[Boxes]:
        """Few boxes a lane for all stretches that did not fail."""
        rows = [
            (i, kind, self._spans(lane, kind))
            for i, lane in enumerate(self._lanes) for kind in PEACEFUL
        ]
        tolerance = 0.5
        merged = [(i, kind, joined(spans, tolerance)) for i, kind, spans in rows]
        while tolerance < GAP_LIMIT and sum(len(spans) for *_, spans in merged) > MERGED_LIMIT:
            tolerance *= 2
            merged = [(i, kind, joined(spans, tolerance)) for i, kind, spans in merged]
        return [
            Boxes(
                [(left, self._row(i), right - left, self._box_height) for left, right in spans],
                "task done" if kind == "done" else kind, _lane_data(self._lanes[i]),
            )
            for i, kind, spans in merged if spans
        ]

    def _spans(self, lane: Lane, kind: str) -> list[Span]:
        return [self._extent(stretch) for stretch in lane.stretches if stretch.kind == kind]

    def _extent(self, stretch: Stretch) -> Span:
        left, right = self._axis.x(stretch.started_at), self._axis.x(stretch.ended_at)
        return (left, right) if right - left > 0.4 else (left, left + 0.4)

    def _failures(self) -> Sequence[Box | Boxes]:
        """What did not end well, each with data and a tip unless there are too many."""
        found = [
            (self._failure_rect(i, left, right), stretches)
            for i, lane in enumerate(self._lanes)
            for left, right, stretches in close_failures(
                [(*self._extent(s), s) for s in lane.stretches if s.kind not in PEACEFUL]
            )
        ]
        if len(found) <= ALONE_LIMIT:
            return [self._box(rect, stretches) for rect, stretches in found]
        rects_by_style: dict[str, list[Rect]] = {}
        for rect, stretches in found:
            rects_by_style.setdefault(_style(stretches[0]), []).append(rect)
        return [Boxes(rects, style) for style, rects in rects_by_style.items()]

    def _failure_rect(self, row: int, left: float, right: float) -> Rect:
        return (
            left, self._row(row), max(right - left, SEEN_WIDTH), max(self._box_height, 2.0)
        )

    def _box(self, rect: Rect, stretches: list[Stretch]) -> Box:
        first, count = stretches[0], len(stretches)
        data, tip = _data(first), _tip(first)
        if count > 1:
            data["count"] = count
            tip += f"\nand {count - 1:,} more beside it"
        return Box(rect, _style(first), data, tip)

    def _marks(self) -> list[Boxes]:
        """A tick above the lanes for each pixel in which something went wrong."""
        pixels = {
            round(self._axis.x(stretch.started_at))
            for lane in self._lanes for stretch in lane.stretches if stretch.kind not in PEACEFUL
        }
        rects = [(x - 1.0, self.top - 7, 2.0, 5.0) for x in sorted(pixels)]
        return [Boxes(rects, "mark failed")] if rects else []

    def _names(self) -> list[Label]:
        """The name of each lane where there is room, else of as many nodes as there is room for."""
        baseline = self._box_height / 2 + 4
        nodes = self._nodes()
        if self._pitch >= 12:
            return [
                _name(self._row(i) + baseline,
                      lane.name if len(nodes) == 1 else f"{lane.node} {lane.name}")
                for i, lane in enumerate(self._lanes)
            ]
        labels: list[Label] = []
        for node, first, count in nodes:
            y = self._row(first) + (count - 1) * self._pitch / 2 + baseline
            if not labels or y - labels[-1].at[1] >= 12:
                labels.append(_name(y, f"{node} ({count:,})"))
        return labels


def _name(y: float, text: str) -> Label:
    shown = text if len(text) <= NAME_LIMIT else "…" + text[1 - NAME_LIMIT :]
    return Label((LEFT - 8, y), shown, "label", "end")


def joined(spans: Iterable[Span], tolerance: float) -> list[Span]:
    """These spans, given by start, as one wherever they are closer than the tolerance."""
    runs: list[Span] = []
    for left, right in spans:
        if runs and left - runs[-1][1] < tolerance:
            runs[-1] = (runs[-1][0], max(right, runs[-1][1]))
        else:
            runs.append((left, right))
    return runs


def close_failures(
    extents: Iterable[tuple[float, float, Stretch]],
) -> list[tuple[float, float, list[Stretch]]]:
    """What failed in a lane; narrow neighbours of one kind that would cover each other as one."""
    groups: list[tuple[float, float, list[Stretch]]] = []
    for left, right, stretch in extents:
        if groups and right - left < SEEN_WIDTH:
            first, last, stretches = groups[-1]
            if left < max(last, first + SEEN_WIDTH) and stretches[0].kind == stretch.kind:
                stretches.append(stretch)
                groups[-1] = (first, max(last, right), stretches)
                continue
        groups.append((left, right, [stretch]))
    return groups


def _style(stretch: Stretch) -> str:
    if stretch.kind == "per-engine":
        return "per-engine"
    return {"done": "task done", "failed": "task failed", "cut-off": "task cut-off"}.get(
        stretch.kind, f"task failed {stretch.kind}"
    )


def _lane_data(lane: Lane) -> Data:
    return {"node": lane.node, "slot": lane.name}


def _data(stretch: Stretch) -> Data:
    report = stretch.report
    data: Data = {"task": report.task_id, "outcome": report.outcome.words()}
    if report.attempt > 1:
        data["attempt"] = report.attempt
    return data


def _tip(stretch: Stretch) -> str:
    report = stretch.report
    attempt = f", attempt {report.attempt}" if report.attempt > 1 else ""
    took = duration_text(report.elapsed_s)
    told = f"{stretch.place}{attempt}: {report.outcome.words()}, {took}"
    return f"{told}\n{command_text(stretch.command[:80])}"


def fitting_lines(choices: list[list[str]], width: float, height: float) -> list[str]:
    """The first of these that fits, one line below the other; none where none does."""
    for lines in choices:
        is_narrow = max(text_width(line, SIZES["label"]) for line in lines) < width - 2
        if is_narrow and LINE_HEIGHT * len(lines) <= height:
            return lines
    return []
