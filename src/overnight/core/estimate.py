"""How long a run may still take: a range, or nothing.

What is known are the durations of tasks that ended and the ages of those that run. The
ages matter: early in a run the tasks that have ended are the short ones, and an average
over them promises too much. So the durations are read as a survival curve in which a
running task counts as "at least this long" (the product-limit estimate of Kaplan and
Meier). The range aims to hold the truth nine times in ten when the tasks to come are like
those seen, in any order. It cannot know of long tasks before the first of them ends or
runs on, nor that the second half of a list is heavier, nor that a barrier will leave slots
idle. How often it held in simulated runs stands in tests/core/test_estimate.py.
"""

from __future__ import annotations

from bisect import bisect_right
from math import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLE_LIMIT = 256
"""Durations kept: enough for the shape, and a look costs well under a millisecond."""

KNOWN_FROM = 4
"""Ended tasks below which nothing is said."""

SPREAD = 1.9
"""Standard deviations to either side: 1.64 would be nine in ten if the deviation were
known and the sums normal; it is estimated, and durations are skewed."""

HARDLY = 0.1
"""One in ten."""


class Durations:
    """Durations of the tasks that ended, in bounded memory.

    Every ``stride``-th is kept; when the sample is full, every other one goes and the
    stride doubles. So the sample stays spread evenly over the run.
    """

    __slots__ = ("_until_next", "count", "sample", "stride", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self.sample: list[float] = []
        self.stride = 1
        self._until_next = 1

    def add(self, elapsed_s: float) -> None:
        """Count one ended task."""
        self.count += 1
        self.total_s += elapsed_s
        self._until_next -= 1
        if not self._until_next:
            self._keep(elapsed_s)

    def _keep(self, elapsed_s: float) -> None:
        self.sample.append(elapsed_s)
        if len(self.sample) >= SAMPLE_LIMIT:
            del self.sample[::2]
            self.stride *= 2
        self._until_next = self.stride


class _Survival:
    """The share of tasks that take longer than t: a step curve with an open end.

    ``times`` ascend; ``shares[i]`` holds from ``times[i]`` to ``times[i + 1]``;
    ``areas[i]`` and ``moments[i]`` are the integrals of S and of t*S from ``times[i]`` on.

    What lies beyond the longest time seen is not known. The hopeful curve lets everything
    end there. The gloomy one lets what has outlived the rest - and one task in so many as
    have ended, even if none has - go on for ``wait`` more on average.
    """

    __slots__ = ("areas", "moments", "shares", "times", "wait")

    def __init__(self, seen: Durations, ages: list[float], gloomy: bool) -> None:
        self.times = [0.0]
        self.shares = [1.0]
        weight = seen.count / len(seen.sample)
        marks = [(elapsed, weight, True) for elapsed in seen.sample]
        marks += [(age, 1.0, False) for age in ages]
        self._step_down(marks)
        longest = marks[-1][0]
        self.wait = max(longest, (seen.total_s + sum(ages)) / seen.count) if gloomy else 0.0
        self.times.append(longest)
        self.shares.append(max(self.shares[-1], 1 / (seen.count + 1)))
        self._integrate()

    def _step_down(self, marks: list[tuple[float, float, bool]]) -> None:
        # At a tie the ended task goes first: one that still runs has outlived it.
        marks.sort(key=lambda mark: (mark[0], not mark[2]))
        at_risk = sum(weight for _, weight, _ in marks)
        share = 1.0
        for time, weight, is_end in marks:
            if is_end:
                share *= max(0.0, 1.0 - weight / at_risk)
                self.times.append(time)
                self.shares.append(share)
            at_risk -= weight

    def _integrate(self) -> None:
        size = len(self.times)
        longest, beyond = self.times[-1], self.shares[-1] * self.wait
        self.areas = [beyond] * size
        self.moments = [beyond * (longest + self.wait)] * size
        for i in range(size - 2, -1, -1):
            start, end, share = self.times[i], self.times[i + 1], self.shares[i]
            self.areas[i] = self.areas[i + 1] + share * (end - start)
            self.moments[i] = self.moments[i + 1] + share * (end * end - start * start) / 2

    def rest(self, age: float) -> tuple[float, float]:
        """Mean and variance of what is left of a task of this age (0: of a whole task)."""
        i = bisect_right(self.times, age) - 1
        share = self.shares[i]
        if i == len(self.times) - 1:
            return self.wait, self.wait * self.wait
        if share <= 0.0:
            return 0.0, 0.0
        end = self.times[i + 1]
        area = self.areas[i + 1] + share * (end - age)
        moment = self.moments[i + 1] + share * (end * end - age * age) / 2
        mean = area / share
        return mean, max(0.0, 2 * (moment - age * area) / share - mean * mean)

    def longest_of(self, count: int) -> float:
        """A duration that the longest of so many tasks hardly exceeds."""
        for time, share in zip(self.times, self.shares, strict=True):
            if share * count <= HARDLY:
                return time
        return self.times[-1] + self.wait * log(self.shares[-1] * count / HARDLY)

    def work(self, left: int, ages: list[float], known: int) -> tuple[float, float]:
        """Mean of all that is to be done, in task seconds, and the margin around it."""
        mean, variance = self.rest(0.0)
        work = left * mean
        spread = left * variance * (1 + left / known)  # of the sum, and of the mean itself
        for age in ages:
            rest, rest_variance = self.rest(age)
            work += rest
            spread += rest_variance
        return work, SPREAD * spread**0.5 * (1 + 2 / known)


def time_left(
    seen: Durations, left: int, ages: Iterable[float], slots: int, busy: float = 1.0
) -> tuple[float, float] | None:
    """Seconds until the last task ends: the least and the most to be expected.

    Args:
        seen: Durations of the tasks that ended.
        left: Tasks not started.
        ages: Seconds for which each running task has run.
        slots: Open slots.
        busy: Share of the slots' time, of late, in which a task ran, up to 1. Where tasks
            are shorter than the work of starting them it is far below 1.

    Returns:
        None when too little is known.

    A look costs about half a millisecond, with a thousand running tasks five.
    """
    if seen.count < KNOWN_FROM or slots < 1:
        return None
    running = [max(0.0, age) for age in ages]  # a clock may have been set back
    parallel = slots * min(1.0, max(busy, 0.01))
    return (
        _least(_Survival(seen, running, gloomy=False), seen.count, left, running, parallel),
        _most(_Survival(seen, running, gloomy=True), seen.count, left, running, parallel),
    )


def _least(
    hopeful: _Survival, known: int, left: int, ages: list[float], parallel: float
) -> float:
    work, margin = hopeful.work(left, ages, known)
    return max(0.0, work - margin) / max(0.01, min(parallel, left + len(ages)))


def _most(gloomy: _Survival, known: int, left: int, ages: list[float], parallel: float) -> float:
    live = left + len(ages)
    if not live:
        return 0.0
    work, margin = gloomy.work(left, ages, known)
    # When the last task has started, the others idle beside the longest that runs.
    alone = 1 - 1 / max(1.0, min(parallel, live))
    return (work + margin) / parallel + alone * gloomy.longest_of(min(live, int(parallel) + 1))


def range_text(span: tuple[float, float] | None) -> str:
    """The range in words, rounded outwards; empty when nothing is known.

    >>> range_text((130.0, 290.0))
    '2 to 5 min'
    >>> range_text(None)
    ''
    """
    if span is None:
        return ""
    low, high = span
    for limit, unit_s, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if high <= limit:
            return _range(low, high, unit_s, unit)
    return _range(low, high, 86400, "days")


def _range(low: float, high: float, unit_s: int, unit: str) -> str:
    first, last = int(low // unit_s), -int(-high // unit_s)
    if last - first <= 1 and first:
        return f"about {last} {unit}"
    return f"{first} to {last} {unit}" if first else f"up to {max(1, last)} {unit}"


def duration_text(seconds: float) -> str:
    """A duration as a person says it, with two units at most.

    >>> duration_text(0.0042), duration_text(12.34), duration_text(4000)
    ('4 ms', '12.3 s', '1 h 7 min')
    """
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for first_s, first, second_s, second in (
        (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"),
    ):
        if whole >= first_s:
            rest = round((whole % first_s) / second_s) * second_s
            if rest == first_s:
                whole, rest = whole + first_s, 0
            tail = f" {rest // second_s} {second}" if rest else ""
            return f"{whole // first_s} {first}{tail}"
    return f"{whole} s"
