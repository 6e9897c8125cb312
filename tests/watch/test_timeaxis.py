"""Where a moment is in a picture, and what never takes up its room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.watch.pauses import gaps_between, long_pauses, whole_of
from overnight.watch.timeaxis import FOLD_WIDTH, TimeAxis

if TYPE_CHECKING:
    from collections.abc import Iterator

MIDNIGHT = 1_700_006_400.0
"""15 November 2023, 0:00 UTC."""


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader who lives in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def labels(axis: TimeAxis) -> list[str]:
    return [text for _, text in axis.ticks()]


def test_time_runs_evenly_from_left_to_right() -> None:
    axis = TimeAxis((100.0, 200.0), 50.0, 1050.0, [])
    assert [axis.x(at) for at in (100.0, 125.0, 200.0)] == [50.0, 300.0, 1050.0]


def test_a_folded_pause_takes_a_narrow_strip() -> None:
    axis = TimeAxis((0.0, 1020.0), 0.0, 100.0 + FOLD_WIDTH, [(10.0, 1010.0)])
    assert axis.x(10.0) == pytest.approx(50.0)
    assert axis.x(1010.0) == pytest.approx(50.0 + FOLD_WIDTH)
    assert axis.x(1020.0) == pytest.approx(100.0 + FOLD_WIDTH)


@given(st.floats(0, 1020))
def test_pixels_lead_back_to_moments(at: float) -> None:
    axis = TimeAxis((0.0, 1020.0), 0.0, 500.0, [(10.0, 1010.0)])
    assert axis.at(axis.x(at)) == pytest.approx(at, abs=1e-6)


def test_a_run_of_no_length_can_be_drawn() -> None:
    axis = TimeAxis((5.0, 5.0), 0.0, 100.0, [])
    assert axis.x(5.0) == 0.0
    assert labels(axis) == ["0"]


@pytest.mark.parametrize("length_s", [0.01, 0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("pause_s", [5.0, 400.0, 90_000.0])
def test_no_two_ticks_have_one_label_also_behind_a_fold(
    utc: None, length_s: float, pause_s: float
) -> None:
    first = MIDNIGHT + 0.25
    axis = TimeAxis((first, first + 2 * length_s + pause_s), 0.0, 1200.0,
                    [(first + length_s, first + length_s + pause_s)])
    assert len(labels(axis)) > 4
    assert len(set(labels(axis))) == len(labels(axis))


def test_a_short_run_is_labelled_by_seconds_since_its_start() -> None:
    axis = TimeAxis((7.3, 7.3 + 95), 0.0, 500.0, [])
    assert labels(axis) == ["0", "30 s", "1 min", "1 min 30 s"]


@pytest.mark.usefixtures("utc")
def test_a_long_run_is_labelled_by_the_clock_and_a_new_day_by_its_date() -> None:
    axis = TimeAxis((MIDNIGHT - 5000, MIDNIGHT + 4000), 0.0, 600.0, [])
    assert labels(axis) == [
        "14 Nov 23:00", "23:30", "15 Nov 00:00", "00:30", "01:00",
    ]


@pytest.mark.usefixtures("utc")
def test_labels_inside_a_folded_pause_are_left_out() -> None:
    days = 20 * 86400.0
    axis = TimeAxis((MIDNIGHT, MIDNIGHT + days + 1200), 0.0, 900.0,
                    [(MIDNIGHT + 600, MIDNIGHT + days + 600)])
    texts = labels(axis)
    assert texts[0] == "15 Nov 00:00"
    assert "5 Dec 00:10" in texts
    assert len(texts) < 15


def test_gaps_are_what_no_span_covers() -> None:
    assert gaps_between([(5, 6), (0, 2), (1, 3), (8, 9)]) == [(3, 5), (6, 8)]


@pytest.mark.parametrize(("pause_s", "is_long"), [(59, False), (61, True)])
def test_a_pause_of_three_times_the_work_is_long(pause_s: float, is_long: bool) -> None:
    spans = [(0.0, 10.0), (10.0 + pause_s, 20.0 + pause_s)]
    assert bool(long_pauses(gaps_between(spans), whole_of(spans))) is is_long


def test_the_whole_runs_to_the_last_end_whatever_started_last() -> None:
    assert whole_of([(5, 6), (0, 9), (8, 8.5)]) == (0, 9)
