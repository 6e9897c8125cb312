"""The range for what is left, held against simulated runs whose end is known."""

from __future__ import annotations

import heapq
from random import Random
from typing import TYPE_CHECKING

import pytest

from overnight.core.estimate import (
    KNOWN_FROM,
    SAMPLE_LIMIT,
    Durations,
    duration_text,
    range_text,
    time_left,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Draw = Callable[[Random], float]

LOOKS = (0.05, 0.1, 0.3, 0.6, 0.9)
"""Shares of the tasks after whose end a simulated run is looked at."""

SHAPES = ((20, 1), (60, 4), (200, 4), (200, 32), (1000, 8), (2000, 100))
"""Tasks and slots of the simulated runs."""

KINDS: dict[str, Draw] = {
    "constant": lambda random: 10.0,
    "uniform": lambda random: random.uniform(1, 20),
    "normal": lambda random: max(0.1, random.gauss(30, 5)),
    "exponential": lambda random: random.expovariate(0.1),
    "lognormal": lambda random: random.lognormvariate(2, 1),
    "one in ten is sixty times longer": lambda random: 1.0 if random.random() < 0.9 else 60.0,
}

HELD = {
    "constant": 1.0,
    "uniform": 0.95,
    "normal": 0.95,
    "exponential": 0.9,
    "lognormal": 0.8,
    "one in ten is sixty times longer": 0.4,
}
"""At least this share of the ranges holds the truth, over all shapes and looks. Measured
with 40 runs of each: 1.00, 0.98, 0.99, 0.96, 0.86 and 0.50. In the last kind the long tasks
show only when the first of them ends, and no rule could know of them before."""


def simulate(draw: Draw, count: int, slots: int, seed: int) -> list[tuple[float, float]]:
    """Start and end of each task of a run, in order of ends."""
    random = Random(seed)
    free_at = [0.0] * slots
    spans = []
    for _ in range(count):
        started = heapq.heappop(free_at)
        spans.append((started, started + draw(random)))
        heapq.heappush(free_at, spans[-1][1])
    return sorted(spans, key=lambda span: span[1])


def looks(spans: list[tuple[float, float]], slots: int) -> Iterator[tuple[float, float, float]]:
    """What the estimate says at each look, and what was true: least, most, truth."""
    end = spans[-1][1]
    for share in LOOKS:
        now = spans[max(KNOWN_FROM, int(share * len(spans))) - 1][1]
        seen = Durations()
        for started, ended in spans:
            if ended <= now:
                seen.add(ended - started)
        ages = [now - started for started, ended in spans if started <= now < ended]
        left = len(spans) - seen.count - len(ages)
        busy = (seen.total_s + sum(ages)) / (slots * now)
        span = time_left(seen, left, ages, slots, busy)
        if span is not None and now < end:
            yield (*span, end - now)


@pytest.mark.parametrize("kind", KINDS)
def test_the_range_holds_the_truth_in_most_runs(kind: str) -> None:
    held = [
        least * 0.99 <= truth <= most * 1.01
        for count, slots in SHAPES
        for seed in range(8)
        for least, most, truth in looks(simulate(KINDS[kind], count, slots, seed), slots)
    ]
    assert sum(held) / len(held) >= HELD[kind]


def test_the_range_is_narrow_once_much_is_known() -> None:
    spans = simulate(KINDS["uniform"], 1000, 8, seed=1)
    for least, most, _ in list(looks(spans, 8))[2:]:
        assert most <= 1.5 * least


def test_nothing_is_said_before_enough_tasks_have_ended() -> None:
    seen = Durations()
    for _ in range(KNOWN_FROM - 1):
        seen.add(1.0)
        assert time_left(seen, 10, [], slots=1) is None
    seen.add(1.0)
    assert time_left(seen, 10, [], slots=1) is not None


def test_nothing_is_said_while_there_is_no_slot() -> None:
    assert time_left(durations([1.0] * 10), 10, [], slots=0) is None


def test_at_the_end_nothing_is_left() -> None:
    assert time_left(durations([1.0] * 10), 0, [], slots=4) == (0.0, 0.0)


def durations(elapsed: list[float]) -> Durations:
    seen = Durations()
    for elapsed_s in elapsed:
        seen.add(elapsed_s)
    return seen


def test_running_tasks_that_have_outlived_all_others_raise_the_upper_bound() -> None:
    seen = durations([1.0] * 10)
    young = time_left(seen, 100, [0.5] * 4, slots=4)
    old = time_left(seen, 100, [50.0] * 4, slots=4)
    assert young is not None
    assert old is not None
    assert old[1] > 5 * young[1]


def test_slots_that_idle_between_short_tasks_are_allowed_for() -> None:
    seen = durations([0.001] * 1000)
    span = time_left(seen, 1000, [], slots=10, busy=0.1)
    assert span is not None
    assert span[0] <= 1.0 <= span[1]


def test_a_clock_that_was_set_back_does_no_harm() -> None:
    assert time_left(durations([1.0] * 10), 5, [-3.0], slots=2) is not None


def test_the_sample_stays_small_and_spread_over_the_whole_run() -> None:
    seen = durations([float(n) for n in range(100_000)])
    assert seen.count == 100_000
    assert len(seen.sample) <= SAMPLE_LIMIT
    assert seen.sample[0] < 2_000
    assert seen.sample[-1] > 98_000


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (None, ""),
        ((0.0, 0.4), "up to 1 s"),
        ((3.2, 9.1), "3 to 10 s"),
        ((60.0, 61.0), "about 61 s"),
        ((100.0, 290.0), "1 to 5 min"),
        ((3000.0, 7200.0), "50 to 120 min"),
        ((3600.0, 9000.0), "1 to 3 h"),
        ((90000.0, 700000.0), "1 to 9 days"),
    ],
)
def test_a_range_is_rounded_outwards(span: tuple[float, float] | None, text: str) -> None:
    assert range_text(span) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"), (0, "0 ms"), (0.0042, "4 ms"), (0.9999, "1.0 s"), (59.96, "1 min"),
        (61, "1 min 1 s"), (3599.6, "1 h"), (4000, "1 h 7 min"), (86399, "24 h"), (86400, "1 d"),
        (200000, "2 d 8 h"),
    ],
)
def test_a_duration_is_said_in_two_units_at_most(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
