"""What an engine does between its driver and its runners."""

from __future__ import annotations

from overnight.core import engine_events as e
from overnight.core.slot_events import SIGKILL, EndAsked, RecallAsked
from overnight.model.outcome import Lost
from tests.core.engine_kit import World, attempt, setup, start_command, stop_command


def opened(slots: int = 2, **changes: object) -> World:
    world = World()
    world.open(slots, **changes)  # type: ignore[arg-type]
    world.said.clear()
    return world


def test_it_opens_after_its_start_commands_one_after_the_other() -> None:
    world = World()
    world.tell(e.SetUp(setup()))
    commands = [start_command(0), stop_command(0), start_command(1)]
    assert world.tell(e.CommandsGiven(commands)) == [("run", "start", 0)]
    world.run_until(lambda: ("opened",) in world.said)
    assert world.said[-5:] == [
        ("run", "start", 0), ("commands", (True, 0)),
        ("run", "start", 1), ("commands", (True, 1)), ("opened",),
    ]


def test_what_is_assigned_before_that_waits_for_it() -> None:
    world = World()
    world.tell(e.SetUp(setup()), e.CommandsGiven([start_command()]))
    assert world.assign(1) == []
    world.run_until(lambda: ("opened",) in world.said)
    assert world.said[-2:] == [("opened",), ("give", 0, 1)]


def test_free_slots_are_filled_in_order_and_the_rest_waits() -> None:
    world = opened(slots=2)
    assert world.assign(1, 2, 3) == [("give", 0, 1, 2)]
    world.settle()
    world.runners[0].end_shell(0)
    world.settle()
    assert world.said[-2:] == [("ended", 1), ("give", 0, 3)]


def test_short_attempts_are_given_ahead_of_the_slots() -> None:
    world = opened(slots=1)
    world.assign(*range(10))
    world.settle()
    world.runners[0].end_shell(0)
    world.settle()
    assert world.said[-1][:3] == ("give", 0, 1)
    assert len(world.said[-1]) > 3


def test_what_waits_behind_a_slow_attempt_is_taken_back() -> None:
    world = opened(slots=1)
    world.assign(*range(10))
    world.settle()
    world.runners[0].end_shell(0)
    world.settle()
    assert world.engine.wake_at <= world.at + 0.1
    world.at += 0.1
    assert world.tell() == [("take back", 0, *range(2, 10))]
    world.settle()
    assert [each.task.id for each in world.engine.queue] == list(range(2, 10))
    assert world.tell() == []


def test_it_takes_back_as_often_as_something_waits() -> None:
    world = opened(slots=1)
    for first in (0, 10):
        world.assign(*range(first, first + 10))
        world.settle()
        world.runners[0].end_shell(0)
        world.settle()
        world.at += 0.1
        assert world.tell()[0][0] == "take back"
        world.run_until(lambda: not world.engine.runners.in_hand_count)


def test_an_attempt_that_comes_twice_is_run_once() -> None:
    world = opened(slots=1)
    world.assign(1, 2)
    assert world.assign(1, 2) == []


def busy(slots: int) -> World:
    """An engine that has ended a hundred attempts in no time."""
    world = opened(slots)
    world.assign(*range(100))
    for _ in range(100):
        world.settle()
        world._end_a_shell()
    world.settle()
    return world


def test_more_runners_are_started_when_many_attempts_end() -> None:
    world = busy(slots=4)
    assert world.runners[0].held_slots() == {0, 2}
    assert world.runners[1].held_slots() == {1, 3}


def test_one_slot_has_one_runner_however_busy() -> None:
    assert list(busy(slots=1).runners) == [0]


def test_many_slots_have_as_many_runners_as_their_descriptors_take() -> None:
    world = World(core_count=1, most_slots_each=3)
    world.open(slots=7)
    assert len(world.runners) == 3
    assert sorted(len(runner.held_slots()) for runner in world.runners.values()) == [2, 2, 3]


def test_a_recall_gives_back_what_waits_here_and_what_waits_in_a_runner() -> None:
    world = opened(slots=1)
    world.assign(1, 2, 3)
    world.settle()
    assert world.tell(RecallAsked([1, 2])) == [("recalled", 2), ("take back", 0, 1)]
    world.settle()
    assert world.recalled == {2: 1}
    world.runners[0].end_shell(0)
    world.settle()
    assert world.said[-2:] == [("ended", 1), ("give", 0, 3)]


def test_a_wish_to_end_reaches_the_runner_and_what_waits_comes_back() -> None:
    world = opened(slots=1)
    world.assign(1, 2)
    world.settle()
    assert world.tell(EndAsked(None, "interrupt")) == [("recalled", 2), ("end", 0)]
    world.settle()
    assert world.said[-1] == ("ended", 1)


def test_what_a_runner_had_ahead_comes_back_when_all_is_ended() -> None:
    world = opened(slots=1)
    world.assign(*range(4))
    world.settle()
    world.runners[0].end_shell(0)
    world.settle()
    world.tell(EndAsked(None, "interrupt"))
    world.settle()
    assert world.recalled == {2: 1, 3: 1}
    assert world.said[-1] == ("ended", 1)


def test_after_the_close_it_finishes_stops_and_leaves_when_all_is_acknowledged() -> None:
    world = World()
    world.open(commands=[stop_command(0), stop_command(1)])
    world.assign(1, 2, 3)
    world.settle()
    world.said.clear()
    assert world.tell(e.CloseAsked(runs_stop=True)) == [("recalled", 3), ("take back", 0, 1, 2)]
    world.run_until(lambda: ("closed",) in world.said)
    assert world.said[2:] == [
        ("ended", 1), ("ended", 2), ("run", "stop", 0), ("commands", (False, 0)),
        ("run", "stop", 1), ("commands", (False, 1)), ("closed",),
    ]
    assert world.acknowledge() == [("leave",)]


def test_a_close_without_stop_commands_leaves_them_out() -> None:
    world = World()
    world.open(commands=[stop_command(0)])
    assert world.tell(e.CloseAsked(runs_stop=False))[-2:] == [("closed",), ("leave",)]


def test_what_is_assigned_after_the_close_comes_back() -> None:
    world = opened()
    world.assign(1)
    world.settle()
    world.tell(e.CloseAsked(runs_stop=True))
    assert world.assign(2) == [("recalled", 2)]


def test_reports_are_kept_until_they_are_acknowledged() -> None:
    world = opened()
    world.assign(1)
    world.run_until(lambda: ("ended", 1) in world.said)
    assert list(world.engine.unacknowledged) == [1]
    world.acknowledge()
    assert not world.engine.unacknowledged


def test_alone_it_starts_nothing_keeps_what_ends_and_leaves_after_its_stop_commands() -> None:
    world = World()
    world.open(slots=1, commands=[stop_command(0)])
    world.assign(1, 2)
    world.settle()
    world.said.clear()
    assert world.lose_driver() == [("take back", 0, 1), ("listen",)]
    world.run_until(lambda: ("keep", 2) in world.said)
    assert world.said[2:] == [("keep", 1), ("run", "stop", 0), ("keep", 2)]
    assert world.write_spool() == []
    assert world.write_spool() == [("leave",)]
    assert world.started == {(1, 1): 1}


def test_reports_that_were_not_acknowledged_are_kept_too() -> None:
    world = opened(slots=1)
    world.assign(1)
    world.run_until(lambda: ("ended", 1) in world.said)
    assert ("keep", 1) in world.lose_driver()


def test_alone_with_a_spool_that_cannot_be_written_it_waits_as_long_as_was_said() -> None:
    world = opened(slots=1, keep_reports_s=60.0)
    world.assign(1)
    world.settle()
    world.lose_driver()
    world.run_until(lambda: ("keep", 1) in world.said)
    assert world.engine.wake_at == world.at + 60.0
    world.at += 60.0
    assert world.tell() == [("leave",)]


def test_a_driver_that_vanished_before_it_said_anything_leaves_nothing_to_do() -> None:
    assert World().lose_driver() == [("leave",)]


def test_a_new_driver_is_told_what_was_kept_and_start_is_not_run_again() -> None:
    world = World()
    world.open(slots=2, commands=[start_command()])
    world.acknowledge()
    world.assign(1, 2)
    world.settle()
    world.lose_driver()
    world.runners[0].end_shell(0)
    world.settle()
    world.said.clear()
    assert world.attach(generation=2)[:2] == [("stop listening",), ("kept", 1)]
    assert world.tell(e.CommandsGiven([start_command()])) == [("opened",)]
    assert world.assign(3) == [("give", 0, 3)]
    world.write_spool()
    assert ("forget spool",) in world.acknowledge()


def test_what_an_earlier_driver_gave_and_was_not_started_is_forgotten() -> None:
    world = opened(slots=1)
    world.assign(1, 2)
    world.settle()
    world.lose_driver()
    world.attach(generation=2)
    world.run_until(lambda: ("kept", 1) in world.said or ("ended", 1) in world.said)
    assert world.started == {(1, 1): 1}


def test_a_driver_of_an_older_generation_is_refused() -> None:
    world = opened(generation=3)
    world.assign(1)
    world.settle()
    world.lose_driver()
    assert world.attach(generation=3) == [("refused", 3)]
    assert world.engine.is_alone


def test_a_new_driver_finds_an_engine_that_is_stopping_closed_to_attempts() -> None:
    world = World()
    world.open(slots=1, commands=[stop_command()])
    world.lose_driver()
    assert world.said[-1] == ("run", "stop", 0)
    world.attach(generation=2)
    assert world.assign(1) == [("recalled", 1)]
    world.run_until(lambda: ("closed",) in world.said)


def test_what_a_dead_runner_had_in_hand_is_lost_when_nothing_of_it_is_alive() -> None:
    world = opened(slots=2)
    world.assign(1, 2, 3)
    world.settle()
    world.kill_runner(world.runners[0])
    world.settle()
    assert world.said[-1] == ("end orphans", 0)
    assert world.end_orphans()[:2] == [("ended", 1, 2), ("start runner", 1)]
    assert world.said[-1] == ("give", 1, 3)
    (_, report), _ = world.engine.unacknowledged[1].pairs
    assert isinstance(report.outcome, Lost)
    assert report.pid == -1


def test_what_a_dead_runner_had_reported_is_not_lost() -> None:
    world = opened(slots=1)
    world.assign(1)
    world.settle()
    world.runners[0].end_shell(0)
    world.kill_runner(world.runners[0])
    world.settle()
    world.end_orphans()
    assert [said for said in world.said if said[0] == "ended"] == [("ended", 1)]


def test_a_start_command_that_dies_with_its_runner_is_reported_and_the_next_runs() -> None:
    world = World()
    world.tell(e.SetUp(setup()), e.CommandsGiven([start_command(0), start_command(1)]))
    world.settle()
    world.kill_runner(world.runners[0])
    world.settle()
    assert world.end_orphans() == [
        ("commands", (True, 0)), ("start runner", 1), ("slots", 1, 0, 1), ("run", "start", 1)
    ]


def test_runners_that_die_one_after_the_other_close_the_engine() -> None:
    world = opened(slots=1)
    world.assign(*range(5))
    for id in range(3):
        world.settle()
        world.kill_runner(world.runners[id])
        world.settle()
        world.end_orphans()
    world.settle()
    assert world.said[-1] == ("closed",)
    assert world.recalled == {3: 1, 4: 1}


def test_told_to_end_it_ends_what_runs_and_leaves_without_stop_commands() -> None:
    world = World()
    world.open(slots=1, commands=[stop_command()])
    world.assign(1, 2)
    world.settle()
    world.tell(e.Terminated())
    world.settle()
    assert world.said[-2:] == [("ended", 1), ("closed",)]
    assert world.recalled == {2: 1}
    assert world.acknowledge() == [("leave",)]


def test_killed_at_once_the_stop_command_that_runs_is_its_last() -> None:
    world = World()
    world.open(slots=1, commands=[stop_command(0), stop_command(1)])
    world.tell(e.CloseAsked(runs_stop=True))
    world.settle()
    assert ("run", "stop", 0) in world.said
    world.tell(EndAsked(None, "interrupt", SIGKILL, 0.0))
    world.run_until(lambda: ("closed",) in world.said)
    assert ("run", "stop", 1) not in world.said


def test_more_slots_by_a_new_driver_are_used_and_fewer_are_given_up() -> None:
    world = opened(slots=2)
    world.assign(1, 2)
    world.settle()
    world.lose_driver()
    world.attach(generation=2, slots=3)
    world.tell(e.CommandsGiven([]))
    world.settle()
    assert world.assign(3, 4)[-1] == ("give", 0, 3)
    world.settle()
    world.lose_driver()
    world.attach(generation=3, slots=1)
    world.settle()
    world.run_until(lambda: not world.runners[0].shells)
    assert world.runners[0].held_slots() == {0}


def test_a_late_word_of_a_runner_that_is_gone_does_nothing() -> None:
    world = opened()
    assert world.tell(e.HandedBack(7, [1]), e.SlotsReleased(7, [0]), e.RunnerDied(7)) == []
    assert attempt(1).number == 1
