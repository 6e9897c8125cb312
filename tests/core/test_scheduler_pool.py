"""A pool that moves: cut links, engines asked to leave, lent, resized, or missing."""

from __future__ import annotations

import pytest

from overnight.core import events as ev
from overnight.core import verdict as v
from overnight.core.policy import Policy
from overnight.model.attempt import Attempt
from overnight.model.outcome import Cancelled, Lost
from tests.core.scheduler_kit import Bench, FakeEngine, barrier, start_command, tasks

FORGET = "overnight pool forget P HOST"


def cut(bench: Bench, engine) -> None:
    bench.step(ev.EngineCutOff(engine.id, "the link ended"))
    bench.run_on()


def back(bench: Bench, engine, *in_hand: int, is_open=True, is_closing=False) -> None:
    engine.queue = type(engine.queue)(a for a in engine.queue if a.task.id in in_hand)
    engine.was_opened = is_open
    bench.step(ev.EngineReturned(engine.id, in_hand, is_open, is_closing))
    bench.run_on()


def running(engine) -> list[int]:
    return [attempt.task.id for attempt in engine.queue]


# ---- cuts


def test_what_a_cut_engine_holds_is_given_to_nobody():
    bench = Bench(tasks(3), Policy(how_to_forget=FORGET)).begin()
    one, two = bench.engine(), bench.engine()
    cut(bench, one)
    bench.end(two, 1)
    bench.pass_time(10_000)
    assert running(two) == [2]
    bench.end(two, 2)
    assert bench.started == [(0, 1), (1, 1), (2, 1)]
    assert bench.verdict is None


def test_it_is_said_after_a_moment_and_every_minute_which_tasks_are_held_back():
    bench = Bench(tasks(1), Policy(how_to_forget=FORGET)).begin()
    one = bench.engine()
    cut(bench, one)
    bench.told.clear()
    bench.pass_time(19)
    assert bench.told == []
    bench.pass_time(1)
    (text,) = bench.told
    assert "task 0 is held back" in text and "overnight pool forget P n0" in text
    assert bench.wake_at == bench.at + 60
    bench.pass_time(59)
    bench.pass_time(1)
    assert len(bench.told) == 2


def test_an_engine_that_is_back_keeps_what_runs_and_the_rest_is_given_anew_as_no_attempt():
    bench = Bench(tasks(3)).begin()
    one = bench.engine(slots=3)
    cut(bench, one)
    back(bench, one, 1)
    assert running(one) == [1, 0, 2]
    assert bench.started == [(0, 1), (1, 1), (2, 1), (0, 1), (2, 1)]
    bench.end(one, 0, 1, 2)
    assert bench.verdict is None or bench.verdict.ending == v.COMPLETE
    assert [entry.report.attempt for entry in bench.rows] == [1, 1, 1]


def test_a_report_that_comes_again_after_a_cut_makes_no_second_row():
    bench = Bench(tasks(2)).begin()
    one = bench.engine(slots=2)
    bench.end(one, 0)
    again = bench.rows[0].report
    cut(bench, one)
    bench.step(ev.AttemptsEnded(one.id, 1, [again]))
    back(bench, one, 1)
    assert bench.row_ids() == [0]
    assert one.acknowledged == 1


def test_nothing_passes_a_barrier_while_a_task_before_it_is_held_back():
    bench = Bench([*tasks(1), barrier(1), *tasks(1, 2)]).begin()
    one, two = bench.engine(), bench.engine()
    cut(bench, one)
    bench.pass_time(1000)
    assert running(two) == [] and bench.row_ids() == []
    back(bench, one, 0)
    bench.end(one, 0)
    assert bench.row_ids() == [0, 1]


def test_an_engine_that_is_told_to_leave_while_it_is_away_hears_of_it_when_it_is_back():
    bench = Bench(tasks(2)).begin()
    one = bench.engine(slots=2)
    cut(bench, one)
    bench.stop(ev.SOFT)
    back(bench, one, 0)
    bench.end(one, 0)
    assert one.is_closing
    bench.leave(one)
    assert bench.verdict.ending == v.STOPPED


def test_a_hard_stop_reaches_an_engine_that_was_away():
    bench = Bench(tasks(1)).begin()
    one = bench.engine()
    cut(bench, one)
    bench.stop(ev.END)
    assert not hasattr(one, "end_asked")
    back(bench, one, 0)
    assert one.end_asked.at_once is False


def test_an_engine_left_behind_leaves_its_tasks_without_a_row():
    bench = Bench(tasks(1)).begin()
    one = bench.engine()
    cut(bench, one)
    bench.stop(ev.END)
    bench.step(ev.EngineAbandoned(one.id, "it did not leave in time"))
    bench.run_on()
    assert bench.rows == []
    assert bench.verdict.has_tasks_left


def test_a_run_that_is_over_waits_a_moment_for_an_engine_that_is_away_with_nothing():
    bench = Bench(tasks(1)).begin()
    one, two = bench.engine(), bench.engine()
    cut(bench, two)
    bench.end(one, 0)
    bench.leave(one)
    assert bench.verdict is None
    bench.pass_time(10)
    assert bench.verdict.ending == v.COMPLETE


def test_the_last_word_of_an_engine_may_be_lost_with_its_link():
    bench = Bench(tasks(1)).begin()
    one = bench.engine()
    bench.end(one, 0)
    assert one.is_closing
    cut(bench, one)
    assert bench.verdict is None  # it may yet say how its STOP commands went
    bench.pass_time(11.0)
    assert bench.verdict.ending == v.COMPLETE


def test_start_commands_are_given_again_to_an_engine_that_never_got_them():
    bench = Bench([start_command(), *tasks(1)]).begin()
    one = bench.engine()
    cut(bench, one)
    back(bench, one, is_open=False)
    assert one.was_opened and one.commands


def test_proof_gives_the_tasks_of_an_engine_that_was_away_out_again():
    bench = Bench(tasks(1), Policy(gives_out_lost=True)).begin()
    one, two = bench.engine(), bench.engine()
    cut(bench, one)
    bench.lose(one, "its machine is gone, as the user says")
    assert running(two) == [0]
    assert bench.started == [(0, 1), (0, 2)]
    assert isinstance(bench.attempts[0].report.outcome, Lost)


# ---- engines of an earlier driver


def test_nothing_starts_before_an_awaited_engine_has_said_what_it_runs():
    bench = Bench([*tasks(2), barrier(2)], Policy(how_to_forget=FORGET))
    bench.step(ev.EngineAwaited(7, "far", "there"))
    bench.run_on()
    one = bench.engine() if bench.wants_engines else _engine_after(bench)
    bench.pass_time(1000)
    assert bench.started == []
    assert any("pool forget P there" in text for text in bench.told)
    bench.step(ev.EngineJoined(7, "there", 1, True, [Attempt(tasks(1)[0], 1)]))
    bench.run_on()
    assert running(one) == [1]


def _engine_after(bench: Bench):
    bench.next_engine = 8
    return bench.engine()


def test_a_forgotten_engine_is_awaited_no_more():
    bench = Bench(tasks(1))
    bench.step(ev.EngineAwaited(7, "far", "there"))
    bench.run_on()
    one = _engine_after(bench)
    assert bench.started == []
    bench.step(ev.EngineLost(7, "its machine is gone, as the user says"))
    bench.run_on()
    assert running(one) == [0]


# ---- what users ask


def test_a_drained_engine_gets_nothing_more_and_leaves_when_it_is_idle():
    bench = Bench(tasks(4)).begin()
    one, two = bench.engine(), bench.engine()
    bench.step(ev.DrainAsked([one.id]))
    assert not one.is_closing
    bench.end(one, 0)
    assert one.is_closing and running(one) == []
    bench.leave(one)
    bench.end(two, 1)
    assert running(two) == [2]


@pytest.mark.parametrize("ends_tasks", [False, True])
def test_an_engine_that_has_yet_to_open_can_be_drained(ends_tasks):
    bench = Bench([*tasks(2)]).begin()
    bench.engine()
    bench.step(ev.EngineStarting(9, "late"))
    bench.engines[9] = FakeEngine(9, 1)
    bench.step(ev.DrainAsked([9], ends_tasks))
    bench.step(ev.EngineJoined(9, "n9", 1, False, []))
    bench.run_on()
    assert bench.engines[9].is_closing and not bench.engines[9].was_opened


def test_tasks_of_a_stopped_engine_run_elsewhere_without_a_row_or_a_failure_in_between():
    bench = Bench(tasks(2), Policy(max_failures=1)).begin()
    one, two = bench.engine(), bench.engine()
    bench.step(ev.DrainAsked([one.id], ends_tasks=True))
    assert one.end_asked.reason == "its engine was asked to leave"
    bench.end(one, 0, outcome=Cancelled(-15, "asked"))
    assert bench.rows == [] and one.is_closing
    bench.end(two, 1)
    assert bench.started[-1] == (0, 2)
    bench.end(two, 0)
    assert [entry.is_cut for entry in bench.rows] == [False, False]


def test_a_task_that_ended_by_itself_as_its_engine_was_stopped_is_done():
    bench = Bench(tasks(1)).begin()
    one = bench.engine()
    bench.step(ev.DrainAsked([one.id], ends_tasks=True))
    bench.end(one, 0)
    assert bench.row_ids() == [0] and bench.started == [(0, 1)]


def test_slots_that_are_set_count_at_once():
    bench = Bench(tasks(6), Policy(max_failures=9)).begin()
    one = bench.engine(slots=1)
    bench.step(ev.SlotsSet(one.id, 3))
    assert (one.slots, running(one)) == (3, [0, 1, 2])
    bench.step(ev.SlotsSet(one.id, 1))
    bench.end(one, 0)
    bench.end(one, 1)
    assert running(one) == [2]
    bench.end(one, 2)
    assert running(one) == [3]


def test_a_lent_host_starts_nothing_that_would_outlast_its_loan_and_ends_what_does():
    bench = Bench(tasks(4), Policy(max_failures=9)).begin()
    lent, own = bench.engine(context="lent"), bench.engine()
    bench.step(ev.ContextEndsAt("lent", bench.at + 100))
    bench.end(lent, 0, elapsed_s=30.0)
    assert running(lent) == [2]
    bench.pass_time(60)
    assert not lent.is_closing
    bench.pass_time(15)  # a task takes 30 s, and 25 are left
    assert not hasattr(lent, "end_asked")
    bench.pass_time(25)
    assert lent.end_asked
    bench.end(lent, 2, outcome=Cancelled(-15, "asked"))
    assert lent.is_closing
    bench.end(own, 1)
    assert bench.started[-1][0] in (2, 3)


def test_what_a_guest_ran_when_its_launcher_ended_it_runs_elsewhere():
    bench = Bench(tasks(2), Policy(max_failures=1)).begin()
    bench.step(ev.EngineStarting(0, "guests", is_guest=True))
    guest = bench.engines[0] = FakeEngine(0, 1, "guests")
    bench.next_engine = 1
    bench.step(ev.EngineJoined(0, "n0", 1, False, []))
    bench.run_on()
    own = bench.engine()
    bench.end(guest, 0, outcome=Cancelled(-15, "its engine was told to end"))
    del bench.engines[0]
    bench.step(ev.EngineClosed(0))
    bench.end(own, 1)
    bench.end(own, 0)
    assert bench.row_ids() == [1, 0]
    assert bench.started == [(0, 1), (1, 1), (0, 2)]


# ---- nobody is there


def test_a_run_whose_engines_left_in_order_waits_and_says_how_to_add_some():
    bench = Bench(tasks(3), Policy(task_limit=1, how_to_add="add some")).begin()
    one = bench.engine()
    bench.end(one, 0)
    bench.leave(one)
    assert bench.verdict is None
    assert bench.told[-1].endswith("add some")
    said = len(bench.told)
    bench.pass_time(59)
    assert len(bench.told) == said
    bench.pass_time(1)
    assert len(bench.told) == said + 1
    two = bench.engine(context="other")
    assert running(two) == [1]


def test_a_run_whose_engines_were_lost_ends():
    bench = Bench(tasks(3), Policy(how_to_add="add some")).begin()
    one = bench.engine()
    bench.lose(one)
    assert bench.verdict.ending == v.NO_RESOURCES


def test_a_run_that_starts_bare_asks_for_no_engine():
    bench = Bench(tasks(1), Policy(starts_bare=True, how_to_add="add some")).begin()
    assert bench.wants_engines == 0
    assert bench.told[-1].endswith("add some")
    one = bench.engine()
    assert running(one) == [0]


def test_a_context_may_have_a_limit_of_its_own():
    bench = Bench(tasks(6), Policy(task_limit=1, how_to_add="add some")).begin()
    bench.step(ev.EngineStarting(0, "lim", 2), ev.EngineStarting(1, "free", 0))
    for id, context in enumerate(("lim", "free")):
        bench.engines[id] = FakeEngine(id, 1, context)
        bench.step(ev.EngineJoined(id, f"n{id}", 1, False, []))
        bench.run_on()
    lim, free = bench.engines[0], bench.engines[1]
    bench.end(lim, running(lim)[0])
    bench.end(lim, running(lim)[0])
    assert lim.is_closing and running(lim) == []
    for _ in range(3):
        bench.end(free, running(free)[0])
    assert not free.is_closing or bench.verdict is None
