"""Runners that somebody else starts: waiting for them, their devices, and their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from overnight.core import engine_events as e
from overnight.core.deadline import HELD_S, Deadline
from overnight.core.engine import CLOSED, OPEN, OPENING, Engine
from overnight.core.ranks import FIRST_OWN_ID, PATIENCE_S, Ranks
from overnight.model.attempt import Attempt
from overnight.model.outcome import Cancelled, Exited, Signalled
from overnight.model.report import Report
from tests.core.engine_kit import attempt, setup

if TYPE_CHECKING:
    from overnight.model.outcome import Outcome

OWN = FIRST_OWN_ID
GPU = "CUDA_VISIBLE_DEVICES"


class Bench:
    """An engine of ranks; what it asks for, by kind."""

    def __init__(self, own: dict[str, str] | None = None) -> None:
        self.engine = Engine(4, 1, runners=Ranks(own or {}), deadline=Deadline())
        self.at = 100.0

    def tell(self, *events: e.Event) -> list[e.Effect]:
        return self.engine.step(events, self.at)

    def set_up(self, slots: int, **changes: object) -> list[e.Effect]:
        return self.tell(e.SetUp(setup(slots=slots, **changes)), e.CommandsGiven(()))

    def join(self, slot: int, environment: dict[str, str] | None = None) -> list[e.Effect]:
        return self.tell(e.RankJoined(100 + slot, slot, environment or {}))

    def opened(self, slots: int) -> Bench:
        self.set_up(slots)
        for slot in range(1, slots):
            self.join(slot)
        assert self.engine.phase == OPEN
        return self

    def report(self, runner: int, id: int, outcome: Outcome) -> list[e.Effect]:
        return self.tell(e.AttemptsEnded(runner, [Report(id, 1, outcome, 7, 1.0, 1.0)]))


def of(kind: type, effects: Sequence[e.Effect]) -> list[e.Effect]:
    return [effect for effect in effects if type(effect) is kind]


def given(effects: Sequence[e.Effect]) -> dict[int, list[int]]:
    return {
        effect.runner: list(effect.slots) for effect in effects if isinstance(effect, e.GiveSlots)
    }


def reported(effects: Sequence[e.Effect]) -> list[tuple[int, Outcome]]:
    return [
        (each.task.id, report.outcome)
        for effect in effects if isinstance(effect, (e.SayEnded, e.Keep))
        for each, report in effect.pairs
    ]  # fmt: skip


def test_it_opens_when_all_ranks_are_here() -> None:
    bench = Bench()
    assert [each.runner for each in of(e.StartRunner, bench.set_up(3))] == [OWN]
    assert not given(bench.join(2)) and bench.engine.phase == OPENING
    effects = bench.join(1)
    assert given(effects) == {OWN: [0], 1: [1], 2: [2]}
    assert of(e.SayOpened, effects) and not of(e.SayRoom, effects)


def test_ranks_that_come_before_the_setup_count() -> None:
    bench = Bench()
    bench.join(1)
    assert given(bench.set_up(2)) == {OWN: [0], 1: [1]}


def test_one_rank_needs_nobody_else() -> None:
    assert given(Bench().set_up(1)) == {OWN: [0]}


def test_ranks_that_do_not_come_are_done_without() -> None:
    bench = Bench()
    bench.set_up(3)
    bench.join(2)
    assert bench.engine.wake_at == bench.at + PATIENCE_S
    bench.at += PATIENCE_S
    effects = bench.tell()
    assert given(effects) == {OWN: [0], 2: [2]}
    assert [each.slots for each in of(e.SayRoom, effects)] == [2]
    assert "1 did not come" in of(e.SayNotice, effects)[0].text
    assert of(e.TurnAway, bench.join(1)), "too late: its slot is not there any more"


def test_a_second_rank_for_a_slot_is_turned_away() -> None:
    bench = Bench()
    bench.set_up(3)
    bench.join(1)
    assert of(e.TurnAway, bench.join(1))
    assert of(e.TurnAway, bench.join(0)), "the engine's own"


@pytest.mark.parametrize(
    ("values", "expected", "room"),
    [
        (["0,1", "0,1"], [[b"%s=0"], [b"%s=1"]], None),  # one list of the node: divided
        (["0,1,2", "0,1,2"], [[b"%s=0"], [b"%s=1"]], None),  # the rest stays unused
        (["4,9", "4,9", "4,9"], [[b"%s=4"], [b"%s=9"], []], 2),  # fewer than slots
        (["0", "1"], None, None),  # each has its own
        (["0,1", "2,3"], None, None),
        (["0", "0"], None, None),  # one for all, or each its own under the same number
        ([None, None], None, None),
        (["0,1", None], None, None),
    ],
)  # fmt: skip
def test_a_list_is_divided_when_all_ranks_show_the_same_one(
    values: list[str | None], expected: list[list[bytes]] | None, room: int | None
) -> None:
    environments = [{} if value is None else {GPU: value} for value in values]
    bench = Bench(environments[0])
    bench.set_up(len(values), divided=[GPU])
    for slot, environment in enumerate(environments[1:], 1):
        effects = bench.join(slot, environment)
    if expected is not None:
        expected = [[entry % GPU.encode() for entry in each] for each in expected]
    assert of(e.SetUpRunners, effects)[-1].slot_variables == expected
    assert [each.slots for each in of(e.SayRoom, effects)] == ([] if room is None else [room])


def test_variables_divided_in_step_lower_the_slots_to_the_shortest() -> None:
    environment = {GPU: "0,1,2", "GPU_DEVICE_ORDINAL": "5,6"}
    bench = Bench(environment)
    bench.set_up(3, divided=[GPU, "GPU_DEVICE_ORDINAL"])
    bench.join(1, environment)
    (told,) = of(e.SetUpRunners, bench.join(2, environment))
    assert told.slot_variables[1] == [b"%s=1" % GPU.encode(), b"GPU_DEVICE_ORDINAL=6"]
    assert bench.engine.runners.room == 2


def test_a_driver_that_takes_over_is_told_how_many_slots_there_are() -> None:
    environment = {GPU: "0,1"}
    bench = Bench(environment)
    bench.set_up(3, divided=[GPU])
    bench.join(1, environment), bench.join(2, environment)
    bench.tell(e.Assigned([attempt(1)]), e.DriverGone())
    effects = bench.tell(e.SetUp(setup(generation=2, slots=3, divided=[GPU])))
    assert [each.slots for each in of(e.SayRoom, effects)] == [2]
    assert of(e.SetUpRunners, effects)[0].slot_variables[0] == [b"%s=0" % GPU.encode()]


def test_what_waits_for_a_slot_that_is_not_there_goes_back() -> None:
    bench = Bench({GPU: "0,1"})
    bench.set_up(3, divided=[GPU])
    bench.tell(e.Assigned([attempt(id) for id in range(3)]))
    bench.join(1, {GPU: "0,1"})
    effects = bench.join(2, {GPU: "0,1"})
    assert [each.ids for each in of(e.SayRecalled, effects)] == [[0, 1, 2]]


def test_a_rank_that_dies_takes_its_slot_with_it() -> None:
    bench = Bench().opened(2)
    effects = bench.tell(e.RunnerDied(1))
    assert [(each.runner, each.slot) for each in of(e.EndOrphans, effects)] == [(1, 1)]
    effects = bench.tell(e.OrphansEnded(1, 5.0))
    assert [each.slots for each in of(e.SayRoom, effects)] == [1]
    assert not of(e.StartRunner, effects)


def test_the_runner_of_its_own_slot_is_made_again() -> None:
    bench = Bench().opened(2)
    effects = bench.tell(e.RunnerDied(OWN))
    assert of(e.EndOrphans, effects)[0].slot is None, "what it leaves comes to the engine"
    effects = bench.tell(e.OrphansEnded(OWN, 5.0))
    assert of(e.StartRunner, effects)[0].runner == OWN + 1
    assert given(effects) == {OWN + 1: [0]} and not of(e.SayRoom, effects)


def test_without_any_rank_it_leaves() -> None:
    bench = Bench().opened(2)
    bench.tell(e.RunnerDied(1), e.OrphansEnded(1, 5.0))
    for runner in range(OWN, OWN + 3):
        effects = bench.tell(e.RunnerDied(runner), e.OrphansEnded(runner, 5.0))
    assert of(e.SayClosed, effects) and bench.engine.phase == CLOSED


def test_attempts_go_to_the_ranks_that_are_here() -> None:
    bench = Bench().opened(3)
    effects = bench.tell(e.Assigned([attempt(id) for id in range(3)]))
    assert sorted(each.runner for each in of(e.Give, effects)) == [1, 2, OWN]


# ---- the end of the allocation

TERM = Signalled(-15)


def assigned(bench: Bench, *ids: int) -> dict[int, int]:
    """The runner of each."""
    effects = bench.tell(e.Assigned([attempt(id) for id in ids]))
    return {each.attempts[0].task.id: each.runner for each in of(e.Give, effects)}


@pytest.mark.parametrize("outcome", [TERM, Exited(143)])
def test_a_task_that_sigterm_ended_waits_to_know_whether_the_engine_had_it_too(
    outcome: Outcome,
) -> None:
    bench = Bench().opened(2)
    runner = assigned(bench, 5)[5]
    assert reported(bench.report(runner, 5, outcome)) == []
    assert bench.engine.wake_at == bench.at + HELD_S
    bench.at += HELD_S / 2
    (id, cut), *_ = reported(bench.tell(e.Terminated()))
    assert id == 5 and isinstance(cut, Cancelled)
    assert (cut.code, cut.reason) == (outcome.code, "deadline")


def test_it_has_failed_when_the_engine_had_not() -> None:
    bench = Bench().opened(2)
    runner = assigned(bench, 5)[5]
    bench.report(runner, 5, TERM)
    bench.at += HELD_S
    assert reported(bench.tell()) == [(5, TERM)]


def test_other_endings_do_not_wait() -> None:
    bench = Bench().opened(2)
    runner = assigned(bench, 5)[5]
    assert [id for id, _ in reported(bench.report(runner, 5, Signalled(-9)))] == [5]


def test_after_the_signal_an_ending_by_any_signal_is_the_deadline_s() -> None:
    bench = Bench().opened(3)
    runners = assigned(bench, 5, 6)
    effects = bench.tell(e.Terminated())
    assert all(each.request.reason == "deadline" for each in of(e.PassEnd, effects))
    ((_, cut),) = reported(bench.report(runners[5], 5, Signalled(-9)))
    ((_, done),) = reported(bench.report(runners[6], 6, Exited(0)))
    assert isinstance(cut, Cancelled) and done.code == 0


def test_it_does_not_leave_while_it_holds_a_report() -> None:
    bench = Bench().opened(2)
    runner = assigned(bench, 5)[5]
    bench.report(runner, 5, TERM)
    assert not of(e.SayClosed, bench.tell(e.CloseAsked(True)))
    bench.at += HELD_S
    effects = bench.tell()
    assert reported(effects) and of(e.SayClosed, effects)


def test_reports_are_due_in_the_order_they_came() -> None:
    deadline = Deadline()
    pair = (Attempt(attempt(1).task, 1), Report(1, 1, TERM, 7, 1.0, 1.0))
    later = (Attempt(attempt(2).task, 1), Report(2, 1, TERM, 7, 1.0, 1.0))
    assert deadline.sort([pair], 10.0) == [] and deadline.sort([later], 10.5) == []
    assert deadline.due(10.0 + HELD_S) == [pair] and deadline.wake_at == 10.5 + HELD_S
    assert deadline.due(10.5 + HELD_S) == [later] and not deadline.holds
