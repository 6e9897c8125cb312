"""Random histories of an engine, its runners and its drivers."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from overnight.core import engine_events as e
from overnight.core.engine import CLOSED
from overnight.core.slot_events import EndAsked, RecallAsked
from overnight.core.slots import NEVER
from tests.core.engine_kit import FakeRunner, World, setup, start_command, stop_command


def while_it_lives(condition: Callable[[RandomEngine], bool] = lambda _: True):  # type: ignore[no-untyped-def]
    return precondition(lambda self: not self.world.has_left and condition(self))


class RandomEngine(RuleBasedStateMachine):
    """Messages are delivered and processes end in any order; drivers and runners die."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(core_count=2, most_slots_each=3)
        self.generation = 1
        self.next_id = 0
        self.assigned: set[int] = set()
        self.world.tell(e.SetUp(setup(slots=2)))
        self.world.tell(e.CommandsGiven([start_command(), stop_command()]))

    def pick(self, data: st.DataObject, fits: Callable[[FakeRunner], object]) -> FakeRunner:
        return data.draw(st.sampled_from([r for r in self.world.runners.values() if fits(r)]))

    def any(self, fits: Callable[[FakeRunner], object]) -> bool:
        return any(fits(runner) for runner in self.world.runners.values())

    # ---- the driver

    @while_it_lives(lambda self: self.world.has_driver and not self.world.engine.is_alone)
    @rule(count=st.integers(1, 6))
    def assign(self, count: int) -> None:
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        self.assigned.update(ids)
        self.world.assign(*ids)

    @while_it_lives(lambda self: self.world.has_driver)
    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.integers(0, self.next_id), max_size=4))
        self.world.tell(RecallAsked(ids))

    @while_it_lives(lambda self: self.world.has_driver)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        ids = data.draw(st.none() | st.lists(st.integers(0, self.next_id), max_size=3))
        self.world.tell(EndAsked(ids, "test"))

    @while_it_lives(lambda self: self.world.has_driver)
    @rule()
    def acknowledge(self) -> None:
        self.world.acknowledge()

    @while_it_lives(lambda self: self.world.has_driver)
    @rule(runs_stop=st.booleans())
    def close(self, runs_stop: bool) -> None:
        self.world.tell(e.CloseAsked(runs_stop))

    @while_it_lives(lambda self: self.world.has_driver)
    @rule()
    def driver_goes(self) -> None:
        self.world.lose_driver()

    @while_it_lives(lambda self: not self.world.has_driver)
    @rule(slots=st.integers(1, 5))
    def driver_comes(self, slots: int) -> None:
        self.generation += 1
        self.world.attach(self.generation, slots)
        self.world.tell(e.CommandsGiven([start_command(), stop_command()]))

    # ---- runners and processes

    @while_it_lives(lambda self: self.any(lambda r: r.inbox))
    @rule(data=st.data())
    def deliver_to(self, data: st.DataObject) -> None:
        self.world.deliver_to(self.pick(data, lambda r: r.inbox))

    @while_it_lives(lambda self: self.any(lambda r: r.outbox))
    @rule(data=st.data())
    def deliver_from(self, data: st.DataObject) -> None:
        self.world.deliver_from(self.pick(data, lambda r: r.outbox))

    @while_it_lives(lambda self: self.any(lambda r: r.shells and not r.is_dead))
    @rule(data=st.data())
    def shell_ends(self, data: st.DataObject) -> None:
        runner = self.pick(data, lambda r: r.shells and not r.is_dead)
        runner.end_shell(data.draw(st.sampled_from(sorted(runner.shells))))

    @while_it_lives(lambda self: self.any(lambda r: not r.is_dead))
    @rule(data=st.data())
    def runner_dies(self, data: st.DataObject) -> None:
        self.world.kill_runner(self.pick(data, lambda r: not r.is_dead))

    @while_it_lives(lambda self: self.world.orphaned)
    @rule()
    def orphans_end(self) -> None:
        self.world.end_orphans()

    @while_it_lives(lambda self: self.world.to_keep)
    @rule()
    def spool_is_written(self) -> None:
        self.world.write_spool()

    @rule(seconds=st.sampled_from([0.01, 0.11]))
    def pass_time(self, seconds: float) -> None:
        self.world.at += seconds
        if not self.world.has_left:
            self.world.tell()

    @while_it_lives()
    @rule()
    def end_many(self) -> None:
        """A busy spell: what is needed to see further runners."""
        for _ in range(30):
            self.world.settle()
            if self.world.has_left or not self.world._end_a_shell():
                break

    # ---- however it went

    def teardown(self) -> None:
        world = self.world
        if world.has_driver and not world.has_left:
            world.tell(e.CloseAsked(True))
        for _ in range(3000):
            if world.has_left:
                break
            self.go_on()
        assert world.has_left, f"it never leaves: phase {world.engine.phase}"
        reported = {id for batch in world.batches.values() for id, _ in batch}
        started = {id for id, _ in world.started}
        assert started <= reported, f"started and not reported: {started - reported}"
        both = {id for id in world.recalled if id in reported}
        assert not both, f"recalled and reported: {both}"
        assert all(count == 1 for count in world.recalled.values()), "recalled twice"
        unsafe = (set(world.batches) | set(world.command_batches)) - world.safe
        assert not unsafe, f"reports are nowhere: {unsafe}"

    def go_on(self) -> None:
        world = self.world
        world.settle()
        if world.has_left:
            return
        if world.orphaned:
            world.end_orphans()
        elif world._end_a_shell():
            pass
        elif world.to_keep:
            world.write_spool()
        elif world.has_driver and world.engine.unacknowledged:
            world.acknowledge()
        elif world.engine.wake_at != NEVER and world.engine.phase != CLOSED:
            world.at = max(world.at, world.engine.wake_at)
            world.tell()


RandomEngine.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
TestRandomEngine = RandomEngine.TestCase
