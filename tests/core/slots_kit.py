"""A bench for a runner's machine: slots without processes, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from overnight.model.attempt import Attempt
from overnight.model.messages import PER_ENGINE_SLOT
from overnight.model.task import NO_REPEAT, Task

if TYPE_CHECKING:
    from overnight.core.slot_events import Effect, Event


def attempt(id: int, number: int = 1) -> Attempt:
    return Attempt(Task(id, id + 1, NO_REPEAT, b"true"), number)


def check_slots(slots: Slots) -> None:
    """What holds after every step of a runner's machine."""
    occupied = set(slots.occupied) - {PER_ENGINE_SLOT}
    assert len(slots.idle) == len(set(slots.idle)), "a slot is idle twice"
    assert not occupied & set(slots.idle), "a slot is idle and occupied"
    assert not (slots.queue and slots.idle and not slots.is_closing), "work waits beside a slot"
    assert not (slots.is_closing and slots.queue), "something would start after the close"
    assert slots.wake_at == NEVER or slots.occupied, "woken for nothing"


def said(effect: Effect) -> tuple[object, ...]:
    """An effect as plain data."""
    if isinstance(effect, Start):
        return "start", effect.slot, effect.attempt.task.id
    if isinstance(effect, EndTree):
        return "end tree", effect.slot, effect.signal
    if isinstance(effect, Finish):
        id, words = effect.attempt.task.id, effect.outcome.words()
        return "finish", effect.slot, id, words, effect.left_running
    if isinstance(effect, HandBack):
        return "hand back", *effect.ids
    if isinstance(effect, Release):
        return "release", *effect.slots
    assert isinstance(effect, Leave)
    return ("leave",)


class SlotsBench:
    """A runner's machine; every verb returns the effects as plain data."""

    def __init__(self, slots: int = 2, **limits: object) -> None:
        self.machine = Slots()
        self.at = 100.0
        self.tell(LimitsSet(Limits(**limits)), SlotsSet(range(slots)))  # type: ignore[arg-type]

    def tell(self, *events: Event) -> list[tuple[object, ...]]:
        effects = self.machine.step(events, self.at)
        check_slots(self.machine)
        return [said(effect) for effect in effects]

    def give(self, *ids: int) -> list[tuple[object, ...]]:
        return self.tell(AttemptsGiven([attempt(id) for id in ids]))

    def run_command(self, number: int) -> list[tuple[object, ...]]:
        return self.tell(CommandGiven(attempt(number)))

    def shell_ends(
        self, slot: int, code: int = 0, left: int = 0, output_open: bool = False,
        by_oom_killer: bool = False,
    ) -> list[tuple[object, ...]]:
        return self.tell(ShellEnded(slot, code, left, output_open, by_oom_killer))

    def output_closes(self, slot: int) -> list[tuple[object, ...]]:
        return self.tell(OutputClosed(slot))

    def tree_seen(self, slot: int, left: int) -> list[tuple[object, ...]]:
        return self.tell(TreeSeen(slot, left))

    def start_fails(self, slot: int, code: int = 2) -> list[tuple[object, ...]]:
        return self.tell(StartFailed(slot, code, "no such file"))

    def set_slots(self, *slots: int) -> list[tuple[object, ...]]:
        return self.tell(SlotsSet(slots))

    def recall(self, ids: Sequence[int] | None) -> list[tuple[object, ...]]:
        return self.tell(RecallAsked(ids))

    def end(
        self, ids: Sequence[int] | None = None, signal: int = 15, kill_after_s: float = 2.0
    ) -> list[tuple[object, ...]]:
        return self.tell(EndAsked(ids, "test", signal, kill_after_s))

    def close(self) -> list[tuple[object, ...]]:
        return self.tell(CloseAsked())

    def pass_time(self, seconds: float) -> list[tuple[object, ...]]:
        self.at += seconds
        return self.tell()
