"""What handing out promises: no slot stays free while an attempt is ready, and none is overfull."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overnight.core.dispatch import shares
from overnight.core.pool import CLOSING, OPEN, EngineState
from overnight.model.attempt import Attempt
from overnight.model.task import Task


def engine(id: int, slots: int, held: int = 0, prefetch: int = 0, state: int = OPEN):
    made = EngineState(id, "local")
    made.rank, made.slots, made.prefetch, made.state = id, slots, prefetch, state
    made.held = {task_id: Attempt(Task(task_id, 1, -1, b"true"), 1) for task_id in range(held)}
    return made


def counts(ready_count: int, engines, allows_prefetch: bool = False) -> dict[int, int]:
    return {e.id: share for e, share in shares(ready_count, engines, allows_prefetch)}


engines = st.lists(
    st.builds(
        lambda slots, held, prefetch, state: (slots, held, prefetch, state),
        st.integers(1, 8), st.integers(0, 10), st.integers(0, 20), st.sampled_from([OPEN, CLOSING]),
    ),
    max_size=6,
).map(lambda all: [engine(id, *one) for id, one in enumerate(all)])


@given(st.integers(1, 60), engines)
def test_free_slots_are_filled_as_far_as_there_is_something_to_start(ready_count, engines):
    given_out = counts(ready_count, engines)
    free = {e.id: max(0, e.free_slots) for e in engines}
    assert sum(given_out.values()) == min(ready_count, sum(free.values()))
    assert all(0 < share <= free[id] for id, share in given_out.items())


@given(st.integers(1, 60), engines)
def test_what_is_plentiful_goes_beyond_the_slots_and_not_beyond_the_room(ready_count, engines):
    given_out = counts(ready_count, engines, allows_prefetch=True)
    room = {e.id: max(0, e.room) for e in engines}
    assert sum(given_out.values()) == min(ready_count, sum(room.values()))
    assert all(0 < share <= room[id] for id, share in given_out.items())


@given(st.integers(1, 60), engines)
def test_nothing_goes_beyond_the_slots_of_one_engine_while_another_has_a_free_one(
    ready_count, engines
):
    given_out = counts(ready_count, engines, allows_prefetch=True)
    left_free = sum(max(0, e.free_slots - given_out.get(e.id, 0)) for e in engines)
    ahead = sum(max(0, given_out.get(e.id, 0) - max(0, e.free_slots)) for e in engines)
    assert not (left_free and ahead)


def test_few_attempts_go_to_the_emptiest_engine_first():
    assert counts(1, [engine(0, 4, held=3), engine(1, 4, held=1)]) == {1: 1}


def test_emptiness_is_a_share_of_the_slots():
    assert counts(1, [engine(0, 2, held=1), engine(1, 16, held=12)]) == {0: 1}


def test_attempts_are_spread_over_equal_engines():
    assert counts(3, [engine(0, 8), engine(1, 8), engine(2, 8)]) == {0: 1, 1: 1, 2: 1}


def test_among_equally_empty_engines_the_first_one_to_arrive_comes_first():
    assert counts(1, [engine(1, 4), engine(0, 4)]) == {0: 1}


def test_an_engine_that_holds_more_than_its_slots_gets_only_what_its_prefetch_leaves():
    assert counts(9, [engine(0, 2, held=5, prefetch=4)], allows_prefetch=True) == {0: 1}


def test_an_engine_that_takes_no_tasks_gets_none():
    assert counts(9, [engine(0, 4, prefetch=9, state=CLOSING)], allows_prefetch=True) == {}
