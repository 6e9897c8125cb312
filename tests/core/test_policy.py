"""What the user's choice means for starting ahead and for trying again."""

from __future__ import annotations

import pytest

from overnight.core.policy import Policy, retry_delay_s


def test_by_default_engines_may_hold_tasks_ahead():
    assert Policy().allows_prefetch
    assert Policy(retries=3, crash_limit=1, gives_out_lost=True).allows_prefetch


@pytest.mark.parametrize(
    "chosen",
    [
        {"max_failures": 1, "fails_fast": True}, {"max_failures": 5}, {"task_limit": 7},
        {"delay_s": 0.5}, {"load_limit": 0.0}, {"load_limit": 4.0}, {"memory_floor": 0},
        {"memory_floor": 1 << 30},
    ],
    ids=str,
)  # fmt: skip
def test_nothing_is_held_ahead_where_each_start_or_end_may_change_what_is_next(chosen):
    assert not Policy(**chosen).allows_prefetch


def test_the_wait_before_a_further_attempt_doubles_up_to_a_minute():
    assert [retry_delay_s(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_the_wait_stays_a_minute_however_often_it_failed():
    assert retry_delay_s(1_000_000) == 60.0
