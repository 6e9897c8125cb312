"""What the pool promises: who is there, in which order they came, and how much each may get."""

from __future__ import annotations

import pytest

from overnight.core import pool as p
from overnight.core.pool import EngineState, Pool
from overnight.errors import InvariantBroken
from overnight.model.attempt import Attempt
from overnight.model.messages import BUSY_PREFETCH_S
from overnight.model.task import Task


def hold(engine: EngineState, *ids: int) -> None:
    for id in ids:
        engine.held[id] = Attempt(Task(id, id + 1, -1, b"true"), 1)


def joined(pool: Pool, id: int, slots: int = 2, context: str = "local") -> EngineState:
    pool.add(id, context)
    return pool.join(id, f"n{id}", slots, is_open=True)


def test_ranks_are_in_order_of_arrival_and_never_given_again():
    pool = Pool()
    pool.add(0, "local")
    pool.add(1, "local")
    assert joined(pool, 2).rank == 0
    assert pool.join(1, "n1", 2, is_open=True).rank == 1
    pool.remove(1)
    assert pool.join(0, "n0", 2, is_open=True).rank == 2


def test_an_engine_joins_once_and_only_if_it_was_started():
    pool = Pool()
    pool.add(0, "local")
    assert pool.join(0, "n0", 2, is_open=False).state == p.JOINED
    assert pool.join(0, "n0", 2, is_open=False) is None
    assert pool.join(7, "n7", 2, is_open=False) is None


def test_an_engine_that_lived_on_is_open_at_once():
    assert joined(Pool(), 0).state == p.OPEN


def test_an_engine_is_started_once():
    pool = Pool()
    pool.add(0, "local")
    with pytest.raises(InvariantBroken, match="started twice"):
        pool.add(0, "local")


def test_what_an_engine_held_is_known_after_it_has_left():
    pool = Pool()
    hold(joined(pool, 0), 5)
    assert list(pool.remove(0).held) == [5]
    assert pool.get(0) is None
    assert pool.remove(0) is None


def test_only_engines_that_take_tasks_count_as_slots_and_all_that_hold_one_as_live():
    pool = Pool()
    hold(joined(pool, 0, slots=2), 1, 2, 3)
    closing = joined(pool, 1, slots=8)
    hold(closing, 4)
    closing.state = p.CLOSING
    assert (pool.slots, pool.live_count, len(pool)) == (2, 4, 2)


def test_tasks_given_to_a_context_are_counted_beyond_the_life_of_its_engines():
    pool = Pool()
    joined(pool, 0, context="a")
    pool.given["a"] += 3
    pool.remove(0)
    joined(pool, 1, context="a")
    assert pool.given == {"a": 3}


@pytest.mark.parametrize(
    "state", [p.STARTING, p.JOINED, p.OPENING, p.CLOSING], ids=["starting", "joined", "opening",
                                                                 "closing"]
)
def test_only_an_open_engine_has_room(state):
    engine = joined(Pool(), 0)
    engine.prefetch = 5
    assert (engine.free_slots, engine.room) == (2, 7)
    engine.state = state
    assert (engine.free_slots, engine.room) == (0, 0)


# -- how much it may hold beyond its slots ------------------------------------------------


def prefetch(*recent: float, slots: int = 2) -> int:
    engine = joined(Pool(), 0, slots)
    engine.recent.extend(recent)
    engine.judge_prefetch()
    return engine.prefetch


def test_an_engine_that_has_finished_nothing_holds_nothing_ahead():
    assert prefetch() == 0


def test_an_engine_holds_ahead_what_its_slots_finish_in_a_moment():
    assert prefetch(0.01, 0.01, slots=4) == int(4 * BUSY_PREFETCH_S / 0.01)


def test_one_slow_task_among_the_last_ones_ends_it():
    assert prefetch(*[0.001] * 63, 0.099) > 0
    assert prefetch(*[0.001] * 63, 0.1) == 0


def test_a_slow_task_is_forgotten_after_64_quick_ones():
    assert prefetch(10.0, *[0.001] * 63) == 0
    assert prefetch(10.0, *[0.001] * 64) > 0


@pytest.mark.parametrize("elapsed_s", [0.0, 1e-9, -0.001], ids=["none", "hardly any", "negative"])
def test_tasks_that_take_no_time_do_not_make_it_unbounded(elapsed_s):
    assert prefetch(elapsed_s, slots=10_000) == p.MOST_PREFETCHED
