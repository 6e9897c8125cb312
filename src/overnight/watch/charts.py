"""Throughput over time, and how long tasks took: stacked columns by kind of ending."""

from __future__ import annotations

from collections import Counter
from math import floor, log10

from overnight.core.estimate import duration_text
from overnight.watch.lanes import KINDS
from overnight.watch.layout import CHART_HEIGHT, LEFT, RIGHT
from overnight.watch.scene import Boxes, Label, Panel, Rule
from overnight.watch.screen import rate_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overnight.watch.lanes import Stretch
    from overnight.watch.scene import Rect
    from overnight.watch.timeaxis import TimeAxis

    Bucket = dict[str, float]  # by kind of ending

BUCKET_LIMIT = 267
"""Buckets of throughput: four pixels each."""

RATE_FROM = 10
"""Tasks in the fullest bucket, if that is below a second, from which on a rate says anything."""

BUCKETS_A_DECADE = 8
SHORTEST_S = 0.001
"""Records have three decimals."""

_DURATIONS = (
    (0.001, "1 ms"), (0.01, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (60, "1 min"),
    (600, "10 min"), (3600, "1 h"), (36000, "10 h"), (86400, "1 d"), (864000, "10 d"),
)


def throughput(attempts: list[Stretch], axis: TimeAxis, top: float, what: str) -> Panel:
    """Tasks, or attempts, that ended in each stretch of time, as a rate."""
    count = min(BUCKET_LIMIT, max(20, len(attempts) // 4))  # a bucket of one task says little
    width = (RIGHT - LEFT) / count
    numbers = (int((axis.x(stretch.ended_at) - LEFT) / width) for stretch in attempts)
    buckets = _counted(attempts, numbers, count)
    lefts = [LEFT + number * width for number in range(count)]
    heading = f"Throughput: {what} that ended"
    words: Callable[[float], str] = rate_text
    if axis.even_s(width) < 1.0 and _highest(buckets) < RATE_FROM:
        heading += f" in each {_short_text(axis.even_s(width))}"
        words = _count_text
    else:
        _make_rates(buckets, [axis.at(left + width) - axis.at(left) for left in lefts])
    panel = _stacks("throughput", buckets, lefts, width - 0.6, top, words)
    panel.shapes.append(Label((LEFT, top - 12), heading, "heading"))
    return panel


def _make_rates(buckets: list[Bucket], seconds: list[float]) -> None:
    for bucket, seconds_each in zip(buckets, seconds, strict=True):
        for kind in bucket:
            bucket[kind] /= max(1e-9, seconds_each)


def _highest(buckets: list[Bucket]) -> float:
    return max(sum(bucket.values()) for bucket in buckets)


def _short_text(seconds: float) -> str:
    """A duration below a second, of which there may be very little.

    >>> _short_text(0.084), _short_text(0.0001)
    ('84 ms', '0.1 ms')
    """
    return f"{seconds * 1000:.2g} ms" if seconds < 0.0095 else duration_text(seconds)


def _count_text(count: float) -> str:
    """A number of tasks; nothing where it is no whole number of them."""
    return f"{count:,.0f}" if count == round(count) else ""


def durations(attempts: list[Stretch], top: float, what: str) -> Panel:
    """How many tasks, or attempts, took how long, on a logarithmic scale."""
    if not attempts:
        return Panel("durations")
    elapsed = [max(SHORTEST_S, stretch.report.elapsed_s) for stretch in attempts]
    numbers = [floor(log10(elapsed_s) * BUCKETS_A_DECADE) for elapsed_s in elapsed]
    first = min(numbers)
    count = max(max(numbers) - first + 1, BUCKETS_A_DECADE)
    buckets = _counted(attempts, (number - first for number in numbers), count)
    width = (RIGHT - LEFT) / count
    lefts = [LEFT + number * width for number in range(count)]
    panel = _stacks("durations", buckets, lefts, width - 1.5, top, _count_text)

    def x(seconds: float) -> float:
        return LEFT + (log10(seconds) * BUCKETS_A_DECADE - first) * width

    bottom = top + CHART_HEIGHT
    for seconds, text in _DURATIONS:
        if LEFT - 1 <= x(seconds) <= RIGHT + 1:
            panel.shapes.append(Rule((x(seconds), bottom), (x(seconds), bottom + 4), "grid"))
            panel.shapes.append(Label((x(seconds), bottom + 16), text, "label", "middle"))
    elapsed.sort()
    median = elapsed[len(elapsed) // 2]
    panel.shapes += [
        Label((LEFT, top - 12), _durations_heading(elapsed, what), "heading"),
        Rule((x(median), top), (x(median), bottom), "middle", {"seconds": f"{median:.3f}"}),
    ]
    return panel


def _durations_heading(elapsed: list[float], what: str) -> str:
    half, most, longest = (
        duration_text(elapsed[min(int(len(elapsed) * share), len(elapsed) - 1)])
        for share in (0.5, 0.95, 1.0)
    )
    return f"Durations of {what}: half within {half}, 95 % within {most}, all within {longest}"


def _counted(attempts: list[Stretch], numbers: Iterable[int], count: int) -> list[Bucket]:
    """How many attempts fall into the bucket of each number."""
    buckets = [dict.fromkeys(KINDS, 0.0) for _ in range(count)]
    kinds = (stretch.kind for stretch in attempts)
    for (number, kind), amount in Counter(zip(numbers, kinds, strict=True)).items():
        buckets[min(max(number, 0), count - 1)][kind] += amount
    return buckets


def _stacks(
    name: str, buckets: list[Bucket], lefts: list[float], width: float, top: float,
    words: Callable[[float], str],
) -> Panel:
    """Stacked columns with a scale at the left; no part of one is too low to see."""
    panel = Panel(name)
    most = _highest(buckets)
    scale = round_up(most) if most > 0 else 1.0
    bottom = top + CHART_HEIGHT
    for share in (0.0, 0.5, 1.0):
        y = bottom - CHART_HEIGHT * share
        text = words(scale * share)
        if text:
            panel.shapes.append(Rule((LEFT, y), (RIGHT, y), "grid"))
        if text and share:
            panel.shapes.append(Label((LEFT - 8, y + 4), text, "label", "end"))
    columns: dict[str, list[Rect]] = {}
    for left, bucket in zip(lefts, buckets, strict=True):
        y = bottom
        for kind, amount in bucket.items():
            if amount:
                height = max(CHART_HEIGHT * amount / scale, 0.8 if kind == "done" else 2.0)
                y -= height
                columns.setdefault(kind, []).append((left, y, width, height))
    panel.shapes += [Boxes(rects, f"column {kind}") for kind, rects in columns.items()]
    return panel


def round_up(amount: float) -> float:
    """The next number that makes a good end of a scale.

    >>> round_up(7.3), round_up(12), round_up(1000)
    (8.0, 20.0, 1000.0)
    """
    power = 10.0 ** floor(log10(amount))
    steps = (1, 2, 3, 4, 5, 6, 8)
    return next((step * power for step in steps if step * power >= amount * 0.999), 10 * power)
