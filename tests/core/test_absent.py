"""Engines that are cut off: what they hold is neither given out again nor forgotten."""

from __future__ import annotations

from overnight.core import effects as fx
from overnight.core import events as ev
from overnight.core.policy import Policy
from overnight.core.verdict import NO_RESOURCES, STOPPED
from overnight.model.attempt import Attempt
from overnight.model.outcome import Exited
from overnight.model.report import Report
from tests.core.scheduler_kit import Bench, FakeEngine, barrier, task, tasks

AGAIN = Policy(gives_out_lost=True)


def ended(engine: FakeEngine, *ids: int, seq: int = 99) -> ev.AttemptsEnded:
    """Reports that an engine had kept."""
    return ev.AttemptsEnded(engine.id, seq, [Report(id, 1, Exited(0), 7, 1.0, 1.0) for id in ids])


def cut_off(bench: Bench, engine: FakeEngine, reason: str = "cut") -> None:
    bench.step(ev.EngineCutOff(engine.id, reason))
    bench.run_on()


def back(bench: Bench, engine: FakeEngine, *in_hand: int, is_closing: bool = False) -> None:
    bench.step(ev.EngineReturned(engine.id, in_hand, True, is_closing))
    bench.run_on()


def test_nothing_is_given_to_it_and_what_it_holds_is_held_back() -> None:
    bench = Bench(tasks(4)).begin()
    far, near = bench.engine(), bench.engine()
    cut_off(bench, far)
    bench.end(near, 1)
    assert [one.task.id for one in near.queue] == [2]
    assert [one.task.id for one in far.queue] == [0]
    bench.end(near, 2)
    bench.end(near, 3)
    assert bench.verdict is None
    assert sorted(bench.row_ids()) == [1, 2, 3]


def test_when_it_is_back_what_goes_on_there_is_its_own_and_the_rest_is_given_out_again() -> None:
    bench = Bench(tasks(4)).begin()
    far = bench.engine(slots=3)
    assert [one.task.id for one in far.queue] == [0, 1, 2]
    cut_off(bench, far)
    bench.step(ended(far, 0))
    far.queue.clear()
    back(bench, far, 1)
    assert [id for id, _ in bench.started] == [0, 1, 2, 2, 3]
    assert bench.row_ids() == [0]


def test_a_report_that_had_come_before_makes_no_second_row() -> None:
    bench = Bench(tasks(2)).begin()
    far = bench.engine()
    bench.end(far, 0)
    cut_off(bench, far)
    bench.step(ended(far, 0))
    back(bench, far, 1)
    assert bench.row_ids() == [0]


def test_lost_on_proof_alone_its_tasks_are_given_out_again() -> None:
    bench = Bench(tasks(2), AGAIN).begin()
    far, near = bench.engine(), bench.engine()
    cut_off(bench, far)
    bench.end(near, 1)
    assert bench.started == [(0, 1), (1, 1)]
    bench.lose(far, "its process has ended")
    assert bench.started[-1] == (0, 2)


def test_a_barrier_waits_for_it() -> None:
    bench = Bench([task(0), barrier(1), task(2)]).begin()
    far, near = bench.engine(), bench.engine()
    cut_off(bench, far)
    bench.pass_time(1000.0)
    assert bench.row_ids() == []
    back(bench, far, 0)
    bench.end(far, 0)
    assert bench.row_ids() == [0, 1]
    assert [one.task.id for one in [*far.queue, *near.queue]] == [2]


def test_a_person_is_told_after_a_moment_and_then_every_minute_what_is_held_back() -> None:
    bench = Bench(tasks(2), Policy(how_to_forget="forget HOST")).begin()
    far = bench.engine(slots=2)
    cut_off(bench, far)
    assert bench.told[-1] == "engine on n0 is cut off: cut"
    told = len(bench.told)
    for _ in range(5):
        bench.pass_time(30.0)
    assert len(bench.told) - told == 3
    text = bench.told[-1]
    assert "engine 0 on n0 has been cut off for 150 s: cut" in text
    assert "tasks 0, 1 are held back" in text
    assert "forget n0" in text


def test_the_reason_is_the_one_that_was_found_last() -> None:
    bench = Bench(tasks(2)).begin()
    far = bench.engine(slots=2)
    cut_off(bench, far)
    cut_off(bench, far, "no route to host")
    bench.pass_time(30.0)
    assert "no route to host" in bench.told[-1]


def test_what_was_asked_of_it_while_it_was_away_is_asked_again() -> None:
    bench = Bench(tasks(1)).begin()
    far = bench.engine()
    cut_off(bench, far)
    bench.stop(ev.END)
    effects = bench.step(ev.EngineReturned(far.id, [0], True, False))
    assert [type(one) for one in effects if isinstance(one, fx.EndAttempts)] == [fx.EndAttempts]


def test_left_alone_at_a_stop_its_tasks_are_neither_done_nor_failed() -> None:
    bench = Bench(tasks(1)).begin()
    far = bench.engine()
    cut_off(bench, far)
    bench.stop(ev.END)
    assert bench.verdict is None
    bench.step(ev.EngineAbandoned(far.id, "asked"))
    bench.run_on()
    assert bench.row_ids() == []
    assert (bench.verdict.ending, bench.verdict.has_tasks_left) == (STOPPED, True)
    assert "n0 is left alone" in bench.told[-1]


def test_left_alone_without_a_stop_nothing_passes_for_settled() -> None:
    bench = Bench([task(0), barrier(1), task(2)]).begin()
    far, near = bench.engine(), bench.engine()
    cut_off(bench, far)
    bench.step(ev.EngineAbandoned(far.id, "it has a later driver"))
    bench.run_on()
    assert [one.task.id for one in near.queue] == []
    assert 1 not in bench.row_ids()


def test_one_that_holds_nothing_is_not_waited_for_for_ever() -> None:
    bench = Bench(tasks(1)).begin()
    far = bench.engine()
    near = bench.engine()
    bench.end(far, 0)
    bench.step(ev.EngineCutOff(far.id, "cut"))
    bench.run_on()
    bench.leave(near)
    assert bench.verdict is None
    bench.pass_time(11.0)
    assert bench.verdict is not None


def test_at_the_end_nobody_waits_for_one_that_is_still_being_dialled() -> None:
    bench = Bench(tasks(1)).begin()
    near = bench.engine()
    bench.step(ev.EngineStarting(50, "SSH0", node="far", is_dispensable=True))
    bench.end(near, 0)
    bench.leave(near)
    assert bench.verdict is not None


def test_nothing_is_over_before_a_survivor_has_said_what_it_runs() -> None:
    bench = Bench(tasks(1)).begin()
    near = bench.engine()
    bench.step(ev.EngineStarting(50, "SSH0", node="far", is_survivor=True))
    bench.end(near, 0)
    bench.pass_time(1000.0)
    assert (near.is_closing, bench.verdict) == (False, None)


def test_when_none_can_be_started_the_run_stops() -> None:
    bench = Bench(tasks(1)).begin()
    bench.step(ev.EngineStarting(0, "SSH0", node="far", is_dispensable=True), ev.EnginesStarted())
    bench.step(ev.EngineLost(0, "ssh: no route to host"))
    bench.run_on()
    for _ in range(3):  # it may ask once more, and gets none
        bench.step(ev.EnginesStarted())
        bench.run_on()
    assert "far is left out: ssh: no route to host" in bench.told
    assert (bench.verdict.ending, bench.verdict.has_tasks_left) == (NO_RESOURCES, True)


def test_nothing_starts_before_every_survivor_has_said_what_it_runs() -> None:
    bench = Bench(tasks(3))
    bench.step(
        ev.EngineStarting(50, "attached", node="far1", is_survivor=True),
        ev.EngineStarting(51, "attached", node="far2", is_survivor=True),
    )
    bench.begin()
    near = bench.engine(slots=2)
    bench.step(ev.EngineJoined(50, "far1", 1, True, [Attempt(task(0), 1)]))
    bench.run_on()
    assert bench.started == []
    bench.step(ev.EngineJoined(51, "far2", 1, True, [Attempt(task(1), 1)]))
    bench.run_on()
    assert bench.started == [(2, 1)]
    assert [one.task.id for one in near.queue] == [2]


def test_what_a_survivor_runs_is_known_too_when_it_is_proved_gone() -> None:
    bench = Bench(tasks(1))
    bench.step(ev.EngineStarting(50, "attached", node="far1", is_survivor=True))
    bench.begin()
    bench.engine()
    assert bench.started == []
    bench.step(ev.EngineLost(50, "its process has ended"))
    bench.run_on()
    assert bench.started == [(0, 1)]


def test_beside_a_survivor_the_other_nodes_are_asked_for_engines() -> None:
    bench = Bench(tasks(3))
    bench.step(ev.EngineStarting(0, "attached", node="far", is_survivor=True))
    bench.begin()
    assert bench.wants_engines == 1


def test_a_lost_engine_is_started_again_while_others_live() -> None:
    bench = Bench(tasks(9), AGAIN).begin()
    far, _ = bench.engine(), bench.engine()
    bench.lose(far)
    assert bench.wants_engines == 1


def test_what_a_survivor_runs_is_ended_where_that_was_asked_before_it_was_found() -> None:
    bench = Bench(tasks(1))
    bench.step(ev.EngineStarting(50, "attached", node="far", is_survivor=True))
    bench.begin()
    bench.stop(ev.END)
    bench.engines[50] = FakeEngine(50, 1)
    effects = bench.step(ev.EngineJoined(50, "far", 1, True, [Attempt(task(0), 1)]))
    assert [one.engine for one in effects if isinstance(one, fx.EndAttempts)] == [50]


def test_a_survivor_that_was_never_found_leaves_tasks_for_a_resume() -> None:
    bench = Bench(tasks(1))
    bench.step(ev.EngineAwaited(50, "guests", "far"))
    bench.begin()
    bench.stop(ev.SOFT)
    assert (bench.verdict.ending, bench.verdict.has_tasks_left) == (STOPPED, True)


def test_whoever_is_let_go_without_having_said_what_it_runs_stays_noted() -> None:
    bench = Bench(tasks(1))
    bench.step(ev.EngineAwaited(50, "guests", "far"))
    effects = bench.step(ev.StopAsked(ev.SOFT, "asked"))
    left = [one for one in effects if isinstance(one, fx.LeaveAlone)]
    assert [(one.engine, one.may_run_tasks) for one in left] == [(50, True)]


def test_no_other_engine_is_asked_for_in_place_of_a_guest() -> None:
    bench = Bench(tasks(1), AGAIN).begin()
    bench.engine()
    bench.step(ev.EngineStarting(50, "guests", is_guest=True), ev.EngineLost(50, "killed"))
    assert bench.wants_engines == 0
