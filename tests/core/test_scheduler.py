"""What a scheduler promises, one promise a test."""

from __future__ import annotations

import pytest

from overnight.core import effects as fx
from overnight.core import events as ev
from overnight.core import verdict as v
from overnight.core.policy import Policy
from overnight.errors import ListRefused
from overnight.model.attempt import Attempt
from overnight.model.messages import BUSY_PREFETCH_S
from overnight.model.outcome import Cancelled, Exited, Lost
from overnight.model.report import Report
from tests.core.scheduler_kit import (
    Bench,
    barrier,
    done_before,
    start_command,
    stop_command,
    task,
    tasks,
)


def test_an_empty_list_ends_complete_without_asking_for_engines():
    bench = Bench([]).begin()
    assert bench.verdict.ending == v.COMPLETE
    assert bench.wants_engines == 0


def test_a_list_of_barriers_needs_no_engine():
    bench = Bench([barrier(0), barrier(1, checks=True)]).begin()
    assert bench.row_ids() == [0, 1]
    assert bench.verdict.ending == v.COMPLETE
    assert bench.wants_engines == 0


def test_a_list_that_was_done_before_needs_no_engine():
    bench = Bench([done_before(0), done_before(1, code=3)]).begin()
    assert bench.row_ids() == [0, 1]
    assert bench.verdict.has_failures
    assert not bench.verdict.has_tasks_left
    assert bench.wants_engines == 0


def test_engines_are_asked_for_once_when_a_task_can_start():
    bench = Bench([done_before(0), task(1)]).begin()
    bench.step()
    assert bench.wants_engines == 1


def test_tasks_start_in_the_order_of_the_list_as_slots_come_free():
    bench = Bench(tasks(4)).begin()
    engine = bench.engine(slots=2)
    assert bench.started == [(0, 1), (1, 1)]
    bench.end(engine, 1)
    assert bench.started == [(0, 1), (1, 1), (2, 1)]


def test_a_run_ends_when_all_rows_are_durable_and_its_engines_have_left():
    bench = Bench(tasks(1)).begin()
    engine = bench.engine()
    bench.is_durable_at_once = False
    bench.end(engine, 0)
    assert engine.is_closing and bench.verdict is None
    bench.leave(engine)
    assert bench.verdict is None
    bench.make_durable()
    assert bench.verdict.ending == v.COMPLETE
    assert not bench.verdict.has_failures


def test_reports_are_acknowledged_only_when_they_are_durable():
    bench = Bench(tasks(3)).begin()
    engine = bench.engine(slots=3)
    bench.is_durable_at_once = False
    bench.end(engine, 0)
    bench.end(engine, 1)
    assert engine.acknowledged == 0
    bench.make_durable(1)
    assert engine.acknowledged == 1
    bench.make_durable(2)
    assert engine.acknowledged == 2


def test_nothing_starts_before_a_barrier_is_met():
    bench = Bench([task(0), task(1), barrier(2), task(3)]).begin()
    engine = bench.engine(slots=4)
    bench.end(engine, 0)
    assert bench.started == [(0, 1), (1, 1)]
    bench.end(engine, 1)
    assert bench.row_ids() == [0, 1, 2]
    assert bench.started[-1] == (3, 1)


def test_a_barrier_waits_until_the_rows_before_it_are_durable():
    bench = Bench([task(0), barrier(1), task(2)]).begin()
    engine = bench.engine()
    bench.is_durable_at_once = False
    bench.end(engine, 0)
    assert bench.row_ids() == [0]
    bench.make_durable()
    assert bench.row_ids() == [0, 1]


def test_a_check_ends_the_run_after_a_failure_and_runs_the_stop_commands():
    bench = Bench([stop_command(), task(0), barrier(1, checks=True), task(2)]).begin()
    engine = bench.engine()
    bench.end(engine, (0, 5))
    assert bench.row_ids() == [0, 1]
    assert engine.is_closing and engine.runs_stop
    bench.leave(engine)
    assert bench.verdict.ending == v.CHECK_FAILED
    assert bench.verdict.has_tasks_left


def test_a_plain_barrier_clears_the_memory_of_failures():
    bench = Bench([task(0), barrier(1), task(2), barrier(3, checks=True), task(4)]).begin()
    engine = bench.engine()
    bench.end(engine, (0, 1))
    bench.end(engine, 2)
    assert bench.started[-1] == (4, 1)


def test_an_old_failure_counts_for_a_check():
    bench = Bench([done_before(0, code=2), barrier(1, checks=True), task(2)]).begin()
    assert bench.verdict.ending == v.CHECK_FAILED


def test_start_commands_run_only_when_there_is_a_task_to_start():
    bench = Bench([start_command(), done_before(0), barrier(1), task(2)]).begin()
    assert bench.row_ids() == [0, 1]
    engine = bench.engine()
    assert [c.at_start for c in engine.commands] == [True]
    assert bench.started == []
    bench.step(ev.EngineOpened(engine.id))
    assert bench.started == [(2, 1)]


def test_a_failed_start_command_counts_as_a_failure_of_the_run():
    bench = Bench([start_command(), task(0)]).begin()
    engine = bench.engine()
    report = Report(0, 1, Exited(3), 5, bench.at, 0.1)
    bench.step(ev.PerEngineEnded(engine.id, 1, [(engine.commands[0], report)]))
    bench.step(ev.EngineOpened(engine.id))
    bench.end(engine, 0)
    bench.leave(engine)
    assert bench.verdict.has_failures


def test_the_emptiest_engine_is_filled_first():
    bench = Bench([task(0)], is_stream=True).begin()
    first, second = bench.engine(slots=1), bench.engine(slots=4)
    assert [len(first.queue), len(second.queue)] == [1, 0]
    bench.items.extend(tasks(2, first=1))
    bench.read()
    assert [len(first.queue), len(second.queue)] == [1, 2]


def test_short_tasks_are_handed_out_ahead_of_the_slots():
    bench = Bench(tasks(500)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, 0, elapsed_s=0.002)
    assert len(engine.queue) == 2 + round(2 * BUSY_PREFETCH_S / 0.002)


def test_one_slow_task_ends_prefetching():
    bench = Bench(tasks(500)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, 0, elapsed_s=0.002)
    bench.end(engine, *[a.task.id for a in list(engine.queue)[:-2]], elapsed_s=0.15)
    assert len(engine.queue) == 2


@pytest.mark.parametrize("policy", [
    Policy(max_failures=1), Policy(delay_s=0.001), Policy(task_limit=400), Policy(load_limit=99.0),
], ids=["fail-fast", "delay", "task limit", "load"])
def test_nothing_is_prefetched_where_each_end_may_change_what_starts(policy):
    bench = Bench(tasks(500), policy).begin()
    engine = bench.engine(slots=2)
    bench.pass_time(1)
    bench.end(engine, 0, elapsed_s=0.002)
    assert len(engine.queue) <= 2


def test_nothing_is_prefetched_at_the_tail_of_the_list():
    bench = Bench(tasks(6)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, 0, elapsed_s=0.002)
    bench.end(engine, 1, elapsed_s=0.002)
    assert len(engine.queue) == 2


def test_a_failed_task_gets_its_retries_after_a_pause_and_one_row():
    bench = Bench(tasks(1), Policy(retries=2)).begin()
    engine = bench.engine()
    bench.end(engine, (0, 1))
    assert bench.row_ids() == []
    assert bench.wake_at == bench.at + 1.0
    bench.pass_time(1.0)
    bench.end(engine, (0, 1))
    bench.pass_time(2.0)
    bench.end(engine, 0)
    assert bench.started == [(0, 1), (0, 2), (0, 3)]
    assert bench.row_ids() == [0]
    assert [entry.settles for entry in bench.attempts] == [False, False, True]
    bench.leave(engine)
    assert not bench.verdict.has_failures


def test_fail_fast_waits_for_the_last_attempt():
    bench = Bench(tasks(2), Policy(retries=1, max_failures=1, fails_fast=True)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, (0, 1))
    assert bench.scheduler.stop is None
    bench.pass_time(1.0)
    bench.end(engine, (0, 1))
    assert bench.scheduler.stop.ending == v.FAIL_FAST


def test_fail_fast_ends_what_runs_and_records_it_as_cut_off():
    bench = Bench(tasks(3), Policy(max_failures=1, fails_fast=True)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, (0, 1))
    assert engine.end_asked.reason == v.FAIL_FAST
    bench.end(engine, 1, outcome=Cancelled(-15, "fail-fast"))
    assert [entry.is_cut for entry in bench.rows] == [False, True]
    bench.leave(engine)
    assert bench.verdict.ending == v.FAIL_FAST and bench.verdict.has_tasks_left


def test_a_soft_stop_lets_running_tasks_finish():
    bench = Bench(tasks(5)).begin()
    engine = bench.engine(slots=2)
    bench.stop(ev.SOFT)
    assert engine.recall_asked == [0, 1]
    bench.step(ev.AttemptsRecalled(engine.id, []))
    bench.end(engine, 0)
    bench.end(engine, 1)
    bench.leave(engine)
    assert bench.row_ids() == [0, 1]
    assert bench.verdict.ending == v.STOPPED and bench.verdict.has_tasks_left


def test_a_harder_stop_replaces_a_softer_one_and_not_the_reverse():
    bench = Bench(tasks(5)).begin()
    engine = bench.engine(slots=2)
    bench.stop(ev.SOFT)
    bench.stop(ev.END, signal=2)
    assert engine.end_asked.at_once is False
    bench.stop(ev.SOFT)
    assert bench.scheduler.stop.how == ev.END
    bench.stop(ev.KILL, signal=2)
    assert engine.end_asked.at_once is True


@pytest.mark.parametrize(("how", "runs_stop"), [(ev.SOFT, True), (ev.END, True), (ev.KILL, False)])
def test_stop_commands_run_after_a_signal_unless_it_kills_at_once(how, runs_stop):
    bench = Bench([stop_command(), task(0), task(1)]).begin()
    engine = bench.engine()
    bench.stop(how, signal=2)
    bench.end(engine, 0, outcome=Cancelled(-15, "interrupt"))
    assert engine.is_closing and engine.runs_stop is runs_stop


def test_what_was_handed_back_is_no_attempt_and_runs_first():
    bench = Bench(tasks(500)).begin()
    engine = bench.engine(slots=2)
    bench.end(engine, 0, elapsed_s=0.002)
    queued = [a.task.id for a in engine.queue][2:]
    for _ in queued:
        engine.queue.pop()
    bench.step(ev.RecordFailed("no space left"))
    bench.step(ev.AttemptsRecalled(engine.id, queued))
    bench.step(ev.RecordMended())
    assert [number for _, number in bench.started[-len(queued):]] == [1] * len(queued)
    assert [a.task.id for a in engine.queue][2:] == queued


def test_nothing_is_assigned_while_the_record_cannot_be_written():
    bench = Bench(tasks(5)).begin()
    engine = bench.engine(slots=2)
    bench.step(ev.RecordFailed("no space left on device"))
    bench.is_durable_at_once = False
    bench.end(engine, 0)
    assert bench.started == [(0, 1), (1, 1)]
    bench.step(ev.RecordMended())
    assert bench.started[-1] == (2, 1)


def test_a_run_stopped_hard_with_a_broken_record_says_so():
    bench = Bench(tasks(5)).begin()
    engine = bench.engine(slots=1)
    bench.is_durable_at_once = False
    bench.step(ev.RecordFailed("no space left on device"))
    bench.stop(ev.END, signal=15)
    bench.end(engine, 0, outcome=Cancelled(-15, "x"))
    bench.leave(engine)
    assert bench.verdict.ending == v.NO_RECORD


def test_a_lost_engines_tasks_are_rows_of_their_own_for_disbatch():
    bench = Bench(tasks(3)).begin()
    engine = bench.engine(slots=1)
    bench.lose(engine)
    assert bench.row_ids() == [0]
    assert isinstance(bench.rows[0].report.outcome, Lost)
    assert bench.rows[0].report.pid == -1
    assert bench.verdict.ending == v.NO_RESOURCES and bench.verdict.has_tasks_left


def test_a_lost_task_is_given_out_again_up_to_the_crash_limit():
    bench = Bench(tasks(1), Policy(gives_out_lost=True, crash_limit=2)).begin()
    bench.lose(bench.engine())
    assert bench.wants_engines == 1 and bench.row_ids() == []
    engine = bench.engine()
    assert bench.started == [(0, 1), (0, 2)]
    bench.lose(engine)
    assert bench.row_ids() == [0]
    assert bench.verdict.ending == v.COMPLETE and bench.verdict.has_failures


def test_engines_that_die_before_any_report_are_not_started_for_ever():
    bench = Bench(tasks(9), Policy(gives_out_lost=True, crash_limit=3)).begin()
    for _ in range(3):
        assert bench.verdict is None
        bench.lose(bench.engine())
    assert bench.verdict.ending == v.NO_RESOURCES


def test_a_context_leaves_after_its_task_limit():
    bench = Bench(tasks(5), Policy(task_limit=2)).begin()
    engine = bench.engine(slots=1)
    bench.end(engine, 0)
    assert not engine.is_closing, "it has its last task to finish"
    bench.end(engine, 1)
    bench.leave(engine)
    assert bench.row_ids() == [0, 1]
    assert bench.verdict.ending == v.NO_RESOURCES


def test_starts_keep_their_distance_with_a_delay():
    bench = Bench(tasks(3), Policy(delay_s=5.0)).begin()
    bench.engine(slots=3)
    assert len(bench.started) == 1
    assert bench.wake_at == bench.at + 5.0
    bench.pass_time(5.0)
    assert len(bench.started) == 2


def test_nothing_starts_above_the_load_limit():
    bench = Bench(tasks(1), Policy(load_limit=4.0)).begin()
    bench.step(ev.HostMeasured(9.0, 1 << 40))
    bench.engine()
    assert bench.started == []
    bench.step(ev.HostMeasured(3.0, 1 << 40))
    assert bench.started == [(0, 1)]


def test_nothing_starts_below_the_memory_floor():
    bench = Bench(tasks(1), Policy(memory_floor=1000)).begin()
    bench.engine()
    assert bench.started == []
    bench.step(ev.HostMeasured(0.0, 999))
    assert bench.started == []
    bench.step(ev.HostMeasured(0.0, 1000))
    assert bench.started == [(0, 1)]


def test_a_finding_in_the_list_starts_nothing_further_and_is_the_verdict():
    bench = Bench(tasks(2), is_stream=True).begin()
    engine = bench.engine(slots=1)
    bench.step(ev.SourceFailed(ListRefused("line 3 is suspicious")))
    bench.end(engine, 0)
    bench.leave(engine)
    assert bench.started == [(0, 1)]
    assert bench.verdict.ending == v.REFUSED
    assert isinstance(bench.verdict.error, ListRefused)


def test_a_task_that_still_runs_from_before_is_not_started_again():
    bench = Bench(tasks(3)).begin()
    engine = bench.engine(slots=2, running=[Attempt(task(1), 1)])
    assert bench.started == [(0, 1)]
    bench.end(engine, 1)
    assert bench.started == [(0, 1), (2, 1)]
    bench.end(engine, 0)
    bench.end(engine, 2)
    assert sorted(bench.row_ids()) == [0, 1, 2]


def test_a_report_that_was_kept_is_an_ordinary_row_and_its_task_does_not_run():
    bench = Bench(tasks(2))
    report = Report(0, 1, Exited(0), 55, 990.0, 1.0)
    bench.step(ev.KeptReports(-1, 0, [(Attempt(task(0), 1), report)], "n7", 0))
    bench.run_on()
    bench.engine()
    assert bench.started == [(1, 1)]
    assert bench.row_ids() == [0]


def test_a_task_whose_text_changed_while_it_ran_on_is_refused():
    bench = Bench([task(0, b"new")])
    engine = bench.engine(slots=1, running=[Attempt(task(0, b"old"), 1)])
    assert bench.scheduler.stop.ending == v.REFUSED
    bench.end(engine, 0)
    assert bench.row_ids() == [0]


def test_a_doubled_or_foreign_report_changes_nothing():
    bench = Bench(tasks(2)).begin()
    engine = bench.engine(slots=1)
    stray = [Report(9, 1, Exited(0), 5, 0.0, 0.0), Report(0, 2, Exited(0), 5, 0.0, 0.0)]
    effects = bench.step(ev.AttemptsEnded(engine.id, 1, stray))
    assert not [e for e in effects if isinstance(e, fx.Record)]
    assert bench.row_ids() == []


def test_a_stream_runs_what_has_come_and_waits_for_more():
    bench = Bench(tasks(1), is_stream=True).begin()
    engine = bench.engine()
    bench.end(engine, 0)
    assert bench.verdict is None and not engine.is_closing
    bench.items.append(task(1))
    bench.read()
    assert bench.started[-1] == (1, 1)
