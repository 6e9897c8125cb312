"""Random histories of a runner's machine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from overnight.core.slot_events import (
    AttemptsGiven,
    CloseAsked,
    CommandGiven,
    EndAsked,
    EndTree,
    Finish,
    HandBack,
    Leave,
    Limits,
    LimitsSet,
    OutputClosed,
    RecallAsked,
    Release,
    ShellEnded,
    SlotsSet,
    Start,
    StartFailed,
    TreeSeen,
)
from overnight.core.slots import NEVER, Slots
from overnight.model.messages import PER_ENGINE_SLOT
from tests.core.slots_kit import attempt, check_slots, said

if TYPE_CHECKING:
    from overnight.core.slot_events import Event


class Process:
    """What is alive of an attempt: its shell, children, whoever holds its output."""

    def __init__(self) -> None:
        self.has_shell = True
        self.children = 0
        self.output_open = False


class RandomSlots(RuleBasedStateMachine):
    """Two machines hear the same; one of them by ``turn_over`` where that may be used."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Slots()
        self.twin = Slots()
        self.at = 0.0
        self.processes: dict[int, Process] = {}
        self.held: set[int] = set()
        self.given: list[int] = []
        self.started: list[int] = []
        self.fates: Counter[int] = Counter()
        self.asked: list[int] = []  # slots whose tree was signalled and not looked at
        self.has_left = False
        self.is_closed = False

    # ---- what the outside does

    @rule(
        timeout_s=st.sampled_from([None, 0.5]), leaves=st.booleans(), slots=st.integers(0, 3)
    )
    def set_up(self, timeout_s: float | None, leaves: bool, slots: int) -> None:
        self.tell(LimitsSet(Limits(timeout_s, 1.0, 2.0, leaves)), SlotsSet(range(slots)))

    @rule(count=st.integers(1, 4))
    def give(self, count: int) -> None:
        ids = range(len(self.given), len(self.given) + count)
        self.given += ids
        self.tell(AttemptsGiven([attempt(id) for id in ids]))

    @precondition(lambda self: PER_ENGINE_SLOT not in self.processes and not self.is_closed)
    @rule()
    def run_command(self) -> None:
        self.tell(CommandGiven(attempt(1_000_000)))

    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        ids = data.draw(st.none() | st.lists(st.integers(0, len(self.given)), max_size=5))
        self.tell(RecallAsked(ids))

    @rule(data=st.data(), signal=st.sampled_from([15, 9]), kill_after_s=st.sampled_from([0.0, 1.0]))
    def end(self, data: st.DataObject, signal: int, kill_after_s: float) -> None:
        ids = data.draw(st.none() | st.lists(st.integers(0, len(self.given)), max_size=3))
        self.tell(EndAsked(ids, "test", signal, kill_after_s))

    @rule()
    def close(self) -> None:
        self.is_closed = True
        self.tell(CloseAsked())

    # ---- what processes do

    @precondition(lambda self: any(p.has_shell for p in self.processes.values()))
    @rule(data=st.data(), code=st.sampled_from([0, 0, 0, 3, -15]), children=st.integers(0, 1))
    def shell_ends(self, data: st.DataObject, code: int, children: int) -> None:
        shells = sorted(slot for slot, p in self.processes.items() if p.has_shell)
        slot = data.draw(st.sampled_from(shells))
        process = self.processes[slot]
        process.has_shell = False
        process.children = children
        process.output_open = data.draw(st.booleans()) if children else False
        if not children and code >= 0:
            self.end_plainly(slot, code)
        else:
            self.tell(ShellEnded(slot, code, children, process.output_open))

    @precondition(lambda self: any(p.output_open for p in self.processes.values()))
    @rule(data=st.data())
    def output_closes(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(
            sorted(slot for slot, p in self.processes.items() if p.output_open)
        ))
        self.processes[slot].output_open = False
        self.tell(OutputClosed(slot))

    @precondition(lambda self: self.asked)
    @rule(obeys=st.booleans())
    def tree_is_seen(self, obeys: bool) -> None:
        slot = self.asked.pop(0)
        process = self.processes.get(slot)
        left = 0
        if process is not None:
            left = process.children + process.has_shell
            if obeys:
                process.children = 0
        self.tell(TreeSeen(slot, left))

    @rule(seconds=st.sampled_from([0.005, 0.3, 5.0]))
    def pass_time(self, seconds: float) -> None:
        self.at += seconds
        self.tell()

    # ---- the machines

    def tell(self, *events: Event) -> None:
        effects = self.machine.step(events, self.at)
        twin_effects = self.twin.step(events, self.at)
        assert [said(each) for each in effects] == [said(each) for each in twin_effects]
        for effect in effects:
            self.perform(effect)

    def end_plainly(self, slot: int, code: int) -> None:
        effects = self.machine.step([ShellEnded(slot, code)], self.at)
        turn = self.twin.turn_over(slot, code, self.at)
        if turn is None:
            twin_effects = [said(e) for e in self.twin.step([ShellEnded(slot, code)], self.at)]
        else:
            outcome, following = turn
            (first, *_) = effects
            assert isinstance(first, Finish)
            twin_effects = [
                ("finish", slot, first.attempt.task.id, outcome.words(), 0),
                *([("start", slot, following.task.id)] if following is not None else []),
            ]
        assert [said(each) for each in effects] == twin_effects
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: object) -> None:
        is_answer = isinstance(effect, (HandBack, Release))
        assert is_answer or not self.has_left, "something is asked for after leaving"
        if isinstance(effect, Start):
            assert effect.slot not in self.processes, "a slot is used twice"
            self.processes[effect.slot] = Process()
            if effect.slot != PER_ENGINE_SLOT:
                assert not self.is_closed, "nothing starts after the close"
                self.started.append(effect.attempt.task.id)
        elif isinstance(effect, Finish):
            assert not self.processes.pop(effect.slot).has_shell, "finished and running"
            self.settle(effect.attempt.task.id)
        elif isinstance(effect, HandBack):
            for id in effect.ids:
                assert id not in self.started, "handed back and started"
                self.settle(id)
        elif isinstance(effect, EndTree):
            assert effect.slot in self.processes
            self.asked.append(effect.slot)
        elif isinstance(effect, Release):
            assert not set(effect.slots) & set(self.processes), "a slot was given up in use"
        else:
            assert isinstance(effect, Leave)
            assert self.is_closed
            self.has_left = True

    def settle(self, id: int) -> None:
        if id < 1_000_000:
            self.fates[id] += 1
            assert self.fates[id] == 1, f"attempt {id} has two fates"

    @invariant()
    def machines_are_sound(self) -> None:
        check_slots(self.machine)
        check_slots(self.twin)
        assert self.started == sorted(self.started), "started out of order"

    def teardown(self) -> None:
        """However it went: everything given has one fate when all processes have ended."""
        if not self.has_left:
            self.close()
        for _ in range(1000):
            if self.has_left:
                break
            self.finish_something()
        assert self.has_left
        assert set(self.fates) == set(self.given)

    def finish_something(self) -> None:
        for slot, process in list(self.processes.items()):
            if process.has_shell:
                process.has_shell = False
                self.tell(ShellEnded(slot, 0))
                return
        if self.asked:
            self.tree_is_seen(obeys=True)
        elif self.machine.wake_at != NEVER:
            self.at = max(self.at, self.machine.wake_at)
            self.tell()


RandomSlots.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestRandomSlots = RandomSlots.TestCase


def test_a_failed_start_frees_its_slot_for_the_next() -> None:
    machine = Slots()
    machine.step([SlotsSet([0]), AttemptsGiven([attempt(0), attempt(1)])], 0.0)
    effects = machine.step([StartFailed(0, 7, "too long")], 0.0)
    assert [said(each) for each in effects] == [
        ("finish", 0, 0, "could not start: too long", 0), ("start", 0, 1)
    ]
