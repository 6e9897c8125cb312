"""The rules of honesty: what counts, what is played again, who is withdrawn."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
from harness import figures
from harness.machine import CpuTime
from harness.rounds import Contest, Round, Sample, play, turns

QUIET = CpuTime(busy_s=1.0, idle_s=9.0, stolen_s=0.0)
ROBBED = CpuTime(busy_s=1.0, idle_s=7.0, stolen_s=2.0)


def sample(wall_s: float = 1.0, cpu_s: float = 0.5, complaint: str = "") -> Sample:
    return Sample(count=100, wall_s=wall_s, cpu_s=cpu_s, complaint=complaint)


def heard_nothing(line: str) -> None:
    pytest.fail(f"nothing should have been said: {line}")


def machine(*costs: CpuTime) -> Callable[[], CpuTime]:
    """The clock of a machine whose rounds cost so much, and the last of it from then on."""
    return functools.partial(next, readings(costs))


def readings(costs: Sequence[CpuTime]) -> Iterator[CpuTime]:
    now = CpuTime(0, 0, 0)
    for cost in itertools.chain(costs, itertools.repeat(costs[-1])):
        yield now
        now = CpuTime(
            now.busy_s + cost.busy_s, now.idle_s + cost.idle_s, now.stolen_s + cost.stolen_s
        )
        yield now


def test_whoever_begins_moves_on_by_one_each_round() -> None:
    clock = machine(QUIET)
    order: list[str] = []

    def player(name: str) -> Callable[[], Sample]:
        def run() -> Sample:
            order.append(name)
            return sample()

        return run

    play({name: player(name) for name in "ABC"}, rounds=2, say=heard_nothing, clock=clock)
    assert "".join(order) == "ABC" "BCA" "CAB"


def test_the_first_round_is_dropped() -> None:
    clock = machine(QUIET)
    walls = iter([99.0, 1.0, 2.0])
    contest = play({"A": lambda: sample(next(walls))}, rounds=2, say=heard_nothing, clock=clock)
    assert [played.samples["A"].wall_s for played in contest.rounds] == [1.0, 2.0]


def test_a_round_with_a_tenth_stolen_is_played_again_and_said() -> None:
    clock = machine(QUIET, ROBBED, QUIET)
    said: list[str] = []
    walls = iter([99.0, 50.0, 1.0])
    contest = play({"A": lambda: sample(next(walls))}, rounds=1, say=said.append, clock=clock)
    assert [played.samples["A"].wall_s for played in contest.rounds] == [1.0]
    assert said == ["round 1: machine: 20% of the machine was stolen"] == contest.set_aside


def test_replays_are_bounded() -> None:
    clock = machine(ROBBED)
    said: list[str] = []
    contest = play({"A": sample}, rounds=3, say=said.append, clock=clock)
    assert contest.rounds == []
    assert len(said) == 7  # the dropped one, three, and three again


def test_a_wrong_result_voids_the_round_for_everybody() -> None:
    clock = machine(QUIET)
    said: list[str] = []
    complaints = iter(["", "a torn row", ""])
    contest = play(
        {"A": lambda: sample(complaint=next(complaints)), "B": sample}, rounds=1, say=said.append,
        clock=clock,
    )
    assert said == ["round 1: A: a torn row"]
    assert [sorted(played.samples) for played in contest.rounds] == [["A", "B"]]


def test_who_is_wrong_twice_is_withdrawn_and_the_others_go_on() -> None:
    clock = machine(QUIET)
    contest = play(
        {"A": lambda: sample(complaint="exit status 1"), "B": sample}, rounds=2,
        say=lambda line: None, clock=clock,
    )
    assert contest.withdrawn == {"A": "exit status 1"}
    assert [sorted(played.samples) for played in contest.rounds] == [["B"], ["B"]]


def test_a_ratio_is_taken_within_each_round_before_the_median() -> None:
    walls = [(1.0, 2.0), (10.0, 20.0), (4.0, 2.0)]
    contest = Contest(
        [Round({"A": sample(a), "B": sample(b)}, QUIET) for a, b in walls]
    )
    assert figures.ratio(contest, "A", "B", figures.rate) == 2.0
    # The medians alone would have said 0.5.
    assert figures.middle(contest, "A", figures.rate) == 25.0
    assert figures.middle(contest, "B", figures.rate) == 50.0


def test_no_ratio_is_made_up_for_who_is_missing() -> None:
    contest = Contest([Round({"A": sample()}, QUIET)])
    assert figures.ratio(contest, "A", "B", figures.rate) is None


def test_cpu_that_no_contestant_used_is_shown_as_somebody_elses() -> None:
    played = Round({"A": sample(cpu_s=0.25)}, CpuTime(busy_s=1.0, idle_s=4.0, stolen_s=0.0))
    assert played.others == pytest.approx(0.15)


def test_turns_of_nobody_are_none() -> None:
    assert turns([], 3) == []
