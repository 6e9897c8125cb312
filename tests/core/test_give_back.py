"""When an engine's node is given back, and when it is not."""

from __future__ import annotations

import pytest

from overnight.core import effects as fx
from overnight.core import events as ev
from overnight.core.policy import Policy
from overnight.model.outcome import Exited
from overnight.model.report import Report
from tests.core.scheduler_kit import Bench as SchedulerBench
from tests.core.scheduler_kit import FakeEngine, barrier, tasks


class Bench(SchedulerBench):
    """A bench that notes which nodes are given back."""

    def __init__(self, items, **policy) -> None:
        super().__init__(items, Policy(gives_back=frozenset(["J7"]), **policy))
        self.given_back: list[int] = []

    def _on_GiveBack(self, effect: fx.GiveBack) -> None:
        self.given_back.append(effect.engine)


def node(bench: Bench) -> FakeEngine:
    return bench.engine(1, "J7")


def test_a_node_that_has_run_dry_is_given_back_when_its_engine_has_left() -> None:
    bench = Bench(tasks(2)).begin()
    busy, dry = node(bench), node(bench)
    bench.end(dry, next(iter(dry.queue)).task.id)
    assert dry.is_closing and dry.runs_stop and not busy.is_closing
    assert bench.given_back == []
    bench.leave(dry)
    assert bench.given_back == [dry.id]


def test_a_node_that_came_when_nothing_was_left_to_give_is_given_back_too() -> None:
    bench = Bench(tasks(1)).begin()
    busy, late = node(bench), node(bench)
    assert late.is_closing and not late.runs_stop and not busy.is_closing
    bench.leave(late)
    assert bench.given_back == [late.id]


def test_the_last_one_stays_for_what_the_list_may_have_grown_by() -> None:
    bench = Bench(tasks(2)).begin()
    first, last = node(bench), node(bench)
    bench.end(first, next(iter(first.queue)).task.id)
    bench.leave(first)
    bench.items.extend(tasks(1, first=2))
    bench.end(last, next(iter(last.queue)).task.id)
    assert [a.task.id for a in last.queue] == [2] and not last.is_closing


def test_nodes_that_are_left_at_the_end_of_the_run_are_not_given_back() -> None:
    bench = Bench(tasks(2)).begin()
    first, last = node(bench), node(bench)
    bench.end(first, next(iter(first.queue)).task.id)
    bench.end(last, next(iter(last.queue)).task.id)
    bench.leave(first), bench.leave(last)
    assert bench.given_back == [first.id]
    assert bench.verdict is not None


def test_a_node_waits_while_a_barrier_has_tasks_behind_it() -> None:
    bench = Bench([*tasks(1), barrier(1), *tasks(2, first=2)]).begin()
    engines = [node(bench), node(bench)]
    assert not any(engine.is_closing for engine in engines)


def test_a_node_waits_while_a_failed_task_is_to_be_tried_again() -> None:
    bench = Bench(tasks(2), retries=1).begin()
    first, _ = node(bench), node(bench)
    bench.end(first, (next(iter(first.queue)).task.id, 1))
    assert not first.is_closing
    bench.pass_time(5)
    assert first.queue


def test_nodes_wait_while_one_is_cut_off_whose_tasks_may_need_them() -> None:
    bench = Bench(tasks(2)).begin()
    first, second = node(bench), node(bench)
    bench.step(ev.EngineCutOff(second.id, "its node has failed"))
    bench.end(first, next(iter(first.queue)).task.id)
    assert not first.is_closing


def test_nodes_of_other_contexts_stay_to_the_end() -> None:
    bench = Bench(tasks(2)).begin()
    first, _ = bench.engine(1, "SSH0"), node(bench)
    bench.end(first, next(iter(first.queue)).task.id)
    assert not first.is_closing


def test_after_a_soft_stop_idle_nodes_are_given_back_at_once() -> None:
    bench = Bench(tasks(9)).begin()
    first, second = node(bench), node(bench)
    bench.stop(ev.SOFT)
    bench.end(first, next(iter(first.queue)).task.id)
    assert first.is_closing and not second.is_closing


def test_a_context_that_has_had_its_tasks_gives_its_nodes_back() -> None:
    bench = Bench(tasks(9), task_limit=1).begin()
    first, _ = node(bench), bench.engine(1, "other")
    bench.end(first, next(iter(first.queue)).task.id)
    bench.leave(first)
    assert bench.given_back == [first.id]


@pytest.mark.parametrize("slots", [0, 1, 3])
def test_an_engine_gets_as_many_as_it_has_slots_for_now(slots: int) -> None:
    bench = Bench(tasks(20)).begin()
    engine = bench.engine(2, "J7")
    bench.step(ev.EngineResized(engine.id, slots))
    engine.slots = slots
    ids = [each.task.id for each in engine.queue]
    engine.queue.clear()
    reports = [Report(id, 1, Exited(0), 7, bench.at, 1.0) for id in ids]
    bench.step(ev.AttemptsEnded(engine.id, 1, reports))
    assert len(engine.queue) == slots
