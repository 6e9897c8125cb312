"""What happens to an attempt in its slot: starts, ends, limits, trees, late output."""

from __future__ import annotations

import pytest

from overnight.core.slot_events import AttemptsGiven, Limits, LimitsSet, SlotsSet
from overnight.core.slots import GIVE_UP_S, NEVER, SEND_AFTER_S, SEND_COUNT, Slots
from overnight.errors import InvariantBroken
from tests.core.slots_kit import SlotsBench, attempt

TERM, KILL = 15, 9


def test_attempts_start_in_order_each_in_the_lowest_idle_slot() -> None:
    bench = SlotsBench(slots=2)
    assert bench.give(5, 6, 7) == [("start", 0, 5), ("start", 1, 6)]
    assert bench.shell_ends(1) == [("finish", 1, 6, "done", 0), ("start", 1, 7)]


def test_an_exit_code_and_a_signal_are_told_apart() -> None:
    bench = SlotsBench(slots=3)
    bench.give(0, 1, 2)
    assert bench.shell_ends(0, code=3) == [("finish", 0, 0, "exit code 3", 0)]
    assert bench.shell_ends(1, code=-9) == [("finish", 1, 1, "killed by SIGKILL", 0)]
    assert bench.shell_ends(2, code=-9, by_oom_killer=True) == [
        ("finish", 2, 2, "killed by the kernel: out of memory", 0)
    ]


def test_what_cannot_start_is_finished_and_the_slot_goes_on() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0, 1)
    assert bench.start_fails(0) == [
        ("finish", 0, 0, "could not start: no such file", 0), ("start", 0, 1)
    ]


def test_output_of_a_background_child_is_waited_for() -> None:
    bench = SlotsBench(slots=1, late_output_s=5.0)
    bench.give(0, 1)
    assert bench.shell_ends(0, left=1, output_open=True) == []
    assert bench.pass_time(4.9) == []
    assert bench.output_closes(0) == [("finish", 0, 0, "done", 1), ("start", 0, 1)]


def test_output_that_never_ends_is_waited_for_no_longer_than_allowed() -> None:
    bench = SlotsBench(slots=1, late_output_s=5.0)
    bench.give(0)
    bench.shell_ends(0, left=1, output_open=True)
    assert bench.machine.wake_at == bench.at + 5.0
    assert bench.pass_time(5.0) == [("finish", 0, 0, "done", 1)]


def test_children_that_hold_no_output_are_released_at_once() -> None:
    bench = SlotsBench(slots=1, leaves_children=True)
    bench.give(0)
    assert bench.shell_ends(0, left=2) == [("finish", 0, 0, "done", 2)]


def test_children_are_ended_before_the_report_where_none_may_stay() -> None:
    bench = SlotsBench(slots=1, leaves_children=False, kill_after_s=2.0)
    bench.give(0)
    assert bench.shell_ends(0, code=3, left=1, output_open=True) == [("end tree", 0, TERM)]
    assert bench.tree_seen(0, 1) == []
    assert bench.pass_time(0.01) == [("end tree", 0, TERM)]
    assert bench.tree_seen(0, 0) == [("finish", 0, 0, "exit code 3", 0)]


def test_a_time_limit_ends_the_tree_and_is_the_outcome() -> None:
    bench = SlotsBench(slots=1, timeout_s=10.0)
    bench.give(0)
    assert bench.pass_time(9.9) == []
    assert bench.pass_time(0.1) == [("end tree", 0, TERM)]
    assert bench.tree_seen(0, 2) == []
    assert bench.shell_ends(0, code=-15) == [("finish", 0, 0, "over its time limit of 10 s", 0)]


def test_the_next_attempt_in_a_slot_has_a_time_limit_of_its_own() -> None:
    bench = SlotsBench(slots=1, timeout_s=10.0)
    bench.give(0, 1)
    bench.pass_time(9.0)
    bench.shell_ends(0)
    assert bench.pass_time(9.0) == []
    assert bench.pass_time(1.0) == [("end tree", 0, TERM)]


def test_what_outlives_the_first_signal_is_killed_in_time() -> None:
    bench = SlotsBench(slots=1, kill_after_s=2.0)
    bench.give(0)
    assert bench.end() == [("end tree", 0, TERM)]
    killed_at = None
    for _ in range(40):
        bench.tree_seen(0, 1)
        assert bench.machine.wake_at <= 102.0 or killed_at is not None
        bench.at = bench.machine.wake_at
        (effect,) = bench.tell()
        if effect == ("end tree", 0, KILL) and killed_at is None:
            killed_at = bench.at
    assert killed_at == 102.0


def test_a_tree_is_looked_at_again_soon_and_then_less_often() -> None:
    bench = SlotsBench(slots=1, kill_after_s=60.0)
    bench.give(0)
    bench.end(kill_after_s=60.0)
    waits = []
    for _ in range(7):
        bench.tree_seen(0, 1)
        waits.append(round(bench.machine.wake_at - bench.at, 3))
        bench.at = bench.machine.wake_at
        bench.tell()
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.2, 0.2]


def test_processes_that_survive_a_kill_for_long_are_given_up_and_counted() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0)
    bench.end(signal=KILL)
    bench.tree_seen(0, 2)
    assert bench.shell_ends(0, code=-9, left=1) == []
    bench.at += GIVE_UP_S
    assert bench.tree_seen(0, 1) == [("finish", 0, 0, "cut off: test", 1)]


def test_an_attempt_that_was_cut_is_over_when_shell_and_tree_are_gone() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0)
    bench.end([0])
    assert bench.shell_ends(0, code=-15, left=1, output_open=True) == []
    assert bench.tree_seen(0, 0) == [("finish", 0, 0, "cut off: test", 0)]


def test_how_a_shell_had_ended_stands_when_its_children_are_cut_later() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0)
    bench.shell_ends(0, code=3, left=1, output_open=True)
    assert bench.end([0]) == [("end tree", 0, TERM)]
    assert bench.tree_seen(0, 0) == [("finish", 0, 0, "exit code 3", 0)]


def test_a_second_wish_to_end_hastens_the_first_and_keeps_its_reason() -> None:
    bench = SlotsBench(slots=1, timeout_s=1.0)
    bench.give(0)
    bench.pass_time(1.0)
    assert bench.end(signal=KILL, kill_after_s=0.0) == [("end tree", 0, KILL)]
    assert bench.shell_ends(0, code=-9) == [("finish", 0, 0, "over its time limit of 1 s", 0)]


def test_a_wish_to_end_names_tasks_and_hands_back_those_not_started() -> None:
    bench = SlotsBench(slots=2)
    bench.give(0, 1, 2, 3)
    assert bench.end([1, 3, 9]) == [("hand back", 3), ("end tree", 1, TERM)]


def test_a_recall_takes_only_what_has_not_started_and_is_always_answered() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0, 1, 2)
    assert bench.recall([0, 2]) == [("hand back", 2)]
    assert bench.recall([0]) == [("hand back",)]
    assert bench.shell_ends(0) == [("finish", 0, 0, "done", 0), ("start", 0, 1)]


def test_after_the_close_nothing_starts_and_the_runner_leaves_when_all_is_over() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0, 1)
    assert bench.close() == [("hand back", 1)]
    assert bench.give(2) == [("hand back", 2)]
    assert bench.shell_ends(0) == [("finish", 0, 0, "done", 0), ("leave",)]
    assert bench.tell() == []


def test_an_idle_slot_is_given_up_at_once_and_a_busy_one_when_it_is_free() -> None:
    bench = SlotsBench(slots=3)
    bench.give(0, 1)
    assert bench.set_slots(0) == [("release", 2)]
    assert bench.shell_ends(1) == [("finish", 1, 1, "done", 0), ("release", 1)]


def test_a_slot_that_is_given_back_while_busy_stays() -> None:
    bench = SlotsBench(slots=2)
    bench.give(0, 1)
    bench.set_slots(0)
    bench.set_slots(0, 1)
    assert bench.shell_ends(1) == [("finish", 1, 1, "done", 0)]
    assert bench.give(2) == [("start", 1, 2)]


def test_per_engine_commands_have_a_slot_beside_the_others_and_no_time_limit() -> None:
    bench = SlotsBench(slots=1, timeout_s=1.0, leaves_children=False)
    assert bench.run_command(0) == [("start", -1, 0)]
    assert bench.pass_time(100.0) == []
    assert bench.shell_ends(-1, left=1) == [("finish", -1, 0, "done", 1)]


def test_two_per_engine_commands_at_once_are_a_fault_of_ours() -> None:
    bench = SlotsBench(slots=1)
    bench.run_command(0)
    with pytest.raises(InvariantBroken, match="two per-engine commands"):
        bench.run_command(1)


def test_a_wish_to_end_tasks_spares_the_per_engine_command_of_the_same_number() -> None:
    bench = SlotsBench(slots=1)
    bench.run_command(0)
    assert bench.end([0]) == []
    assert bench.end(None) == [("end tree", -1, TERM)]


def test_late_facts_about_a_slot_that_is_free_do_nothing() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0)
    bench.shell_ends(0)
    assert bench.output_closes(0) == []
    assert bench.tree_seen(0, 1) == []


def test_the_end_of_a_process_that_was_not_running_is_a_fault_of_ours() -> None:
    bench = SlotsBench(slots=1)
    with pytest.raises(InvariantBroken, match="slot 0"):
        bench.shell_ends(0)


def test_reports_leave_when_work_runs_low_or_many_wait_or_it_is_time() -> None:
    bench = SlotsBench(slots=1)
    bench.give(*range(100))
    sends_now = bench.machine.sends_now
    assert not sends_now(1, bench.at, bench.at)
    assert sends_now(SEND_COUNT, bench.at, bench.at)
    assert sends_now(1, 0.0, SEND_AFTER_S)
    bench.recall(range(3, 100))
    assert not sends_now(3, bench.at, bench.at)
    assert sends_now(4, bench.at, bench.at)


def test_nothing_is_woken_for_without_limits() -> None:
    bench = SlotsBench(slots=1)
    bench.give(0)
    assert bench.machine.wake_at == NEVER


def test_an_attempt_in_turn_has_the_limit_of_the_driver_there_is_now() -> None:
    slots = Slots()
    slots.step([LimitsSet(Limits(timeout_s=5.0)), SlotsSet([0])], 0.0)
    slots.step([AttemptsGiven([attempt(1), attempt(2), attempt(3)])], 0.0)
    slots.step([LimitsSet(Limits(timeout_s=None))], 1.0)
    assert slots.turn_over(0, 0, 2.0) is not None
    assert slots.wake_at == NEVER
    slots.step([LimitsSet(Limits(timeout_s=7.0))], 3.0)
    assert slots.turn_over(0, 0, 4.0) is not None
    assert slots.wake_at == 11.0
