"""Promises of a summary that hold for any run."""

from __future__ import annotations

import pickle
from random import Random
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from hypothesis import given, settings
from hypothesis import strategies as st

from overnight.core.summary import Summary, summary_text
from overnight.core.summary.causes import CAUSE_LIMIT, EXAMPLE_LIMIT
from overnight.core.summary.tally import NOTABLE_LIMIT
from overnight.model.outcome import (
    Cancelled,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from tests.watch.kit import report, task

if TYPE_CHECKING:
    from overnight.model.outcome import Outcome

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Exited(0)),
    st.builds(Exited, st.integers(0, 255)),
    st.builds(Signalled, st.integers(-64, -1), st.booleans()),
    st.builds(NotStarted, st.integers(1, 200), st.text(max_size=20)),
    st.builds(TimedOut, st.integers(-15, 255), st.floats(0.1, 1e6)),
    st.builds(Cancelled, st.integers(-15, 255), st.text(max_size=20)),
    st.builds(Lost, st.text(max_size=20)),
)
ends = st.tuples(outcomes, st.floats(0, 1e6), st.integers(0, 10**9), st.binary(max_size=200))


def told(run: list[tuple[Outcome, float, int, bytes]]) -> Summary:
    summary = Summary()
    for id, (outcome, elapsed_s, rss_kib, text) in enumerate(run):
        told_of = report(
            id, outcome, after_s=id, elapsed_s=elapsed_s, rss_kib=rss_kib, err=text
        )
        summary.add(task(id, text), told_of, f"n{id % 3}")
    return summary


@given(st.lists(ends, max_size=60))
def test_the_counts_add_up(run: list[tuple[Outcome, float, int, bytes]]) -> None:
    summary = told(run)
    causes = summary.causes.by_count()
    assert summary.done + summary.failed + summary.cut_off == summary.settled == len(run)
    assert sum(cause.count for cause in causes) == summary.failed + summary.cut_off
    assert all(len(cause.examples) == min(cause.count, EXAMPLE_LIMIT) for cause in causes)


@given(st.lists(ends, max_size=60))
def test_the_notable_tasks_are_the_greatest_there_were(
    run: list[tuple[Outcome, float, int, bytes]],
) -> None:
    summary = told(run)
    longest = sorted((elapsed_s for _, elapsed_s, _, _ in run if elapsed_s), reverse=True)
    assert [measure for measure, _ in summary.slowest.ranked] == longest[:NOTABLE_LIMIT]


def columns_of(line: str) -> int:
    """Columns a terminal needs: two for a wide character, none for one above another."""
    return sum(
        0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in line
    )


@given(st.lists(ends, max_size=30), st.integers(40, 120))
def test_no_line_is_too_wide_and_nothing_reaches_the_terminal_raw(
    run: list[tuple[Outcome, float, int, bytes]], width: int
) -> None:
    lines = summary_text(told(run), width=width).split("\n")
    assert max(map(columns_of, lines)) <= width
    assert all(line.isprintable() for line in lines)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_a_summary_does_not_grow_with_the_run(seed: int) -> None:
    random = Random(seed)

    def size_after(count: int) -> int:
        summary = Summary()
        for id in range(count):
            words = random.randbytes(300)
            ended = report(id, Exited(id % 256), elapsed_s=id, rss_kib=id, err=words)
            summary.add(task(id, words * 10), ended, f"n{id}")
        assert len(summary.causes.by_count()) <= CAUSE_LIMIT
        return len(pickle.dumps(summary))

    assert size_after(4000) < 1.5 * size_after(1000)
