"""The machine of a runner: which attempt is in which slot, and what happens to it there.

Events go in, effects come out; the runner's loop starts processes, looks at them and
signals them. Rules:

* A slot is closed, idle, busy (its shell lives) or clearing (its shell has ended, and
  output or processes of the attempt are still there).
* An attempt given is reported once, or handed back before it was started. Attempts
  start in the order given, each in the lowest idle slot.
* What makes an outcome is decided at the moment the shell ends: ending the tree of an
  attempt whose shell had ended by itself does not change how it ended.
* Ending a tree means: the first signal, looks until nothing is left, SIGKILL from
  ``kill_after_s`` on. It is given up, and said, only when SIGKILL has had no effect for
  ``GIVE_UP_S``: such processes hang in the kernel.

Nearly all attempts end plainly: the shell exits by itself and leaves nothing behind. That
event has a door of its own, ``turn_over``, which says the same as ``step`` would without
the objects in between: they cost a task more than starting it.

Slot ``PER_ENGINE_SLOT`` runs the per-engine commands, one at a time, without a time limit;
what they leave running is meant to run (a server for the tasks) and is left alone.
"""

from __future__ import annotations

from overnight.core.slot_events import (
    SIGKILL,
    SIGTERM,
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
from overnight.errors import InvariantBroken
from overnight.model.messages import PER_ENGINE_SLOT
from overnight.model.outcome import Cancelled, Exited, NotStarted, Signalled, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from overnight.core.slot_events import Effect, Event
    from overnight.model.attempt import Attempt
    from overnight.model.outcome import Outcome

FIRST_LOOK_S = 0.01
LONGEST_LOOK_S = 0.2
"""How soon a tree that was signalled is looked at again: doubling between these."""

GIVE_UP_S = 30.0
"""How long SIGKILL may take; what is alive then hangs in the kernel."""

SEND_COUNT = 32
SEND_AFTER_S = 0.02
"""Reports leave together: so many, or when the oldest has waited so long."""

NEVER = float("inf")

DONE = Exited(0)
"""The outcome of nearly all attempts; nobody assigns to it."""


class Ending:
    """A tree that is being ended."""

    __slots__ = ("kill_at", "look_at", "look_s", "signal")

    def __init__(self, signal: int, kill_at: float) -> None:
        self.signal = signal
        self.kill_at = kill_at
        self.look_at = NEVER  # nothing to look at before the first signal is out
        self.look_s = FIRST_LOOK_S

    def look_later(self, at: float) -> None:
        """Set when to look again: soon at first, at the latest when SIGKILL is due."""
        self.look_at = at + self.look_s
        if at < self.kill_at < self.look_at:
            self.look_at = self.kill_at
        self.look_s = min(self.look_s * 2, LONGEST_LOOK_S)


class Occupied:
    """An attempt in its slot, from its start to its report.

    Attributes:
        outcome: None while its shell lives.
        limit_at: When its time is over.
        cut: Why we end it, if we do and its shell was alive then.
        ending: How its tree is being ended, if it is.
        left: Its processes at the last look after its shell's end.
        late_until: Until when output of background children is waited for.
    """

    __slots__ = ("attempt", "cut", "ending", "late_until", "left", "limit_at", "outcome")

    def __init__(self, attempt: Attempt, limit_at: float) -> None:
        self.attempt = attempt
        self.outcome: Outcome | None = None
        self.limit_at = limit_at
        self.cut: EndAsked | None = None
        self.ending: Ending | None = None
        self.left = 0
        self.late_until = 0.0

    @property
    def wake_at(self) -> float:
        """When something is due without an event."""
        if self.ending is not None:
            return self.ending.look_at
        return self.limit_at if self.outcome is None else self.late_until


class Slots:
    """All slots of one runner.

    Attributes:
        queue: Attempts given and not started, in order.
        idle: Slots without an attempt.
        occupied: By slot.
        is_closing: Nothing more is started.
    """

    def __init__(self) -> None:
        # A list, though taken from its front: few wait here, and importing collections
        # for its deque costs an engine's start 1.5 ms.
        self.queue: list[Attempt] = []
        self.idle: list[int] = []
        self.occupied: dict[int, Occupied] = {}
        self.is_closing = False
        self._own: set[int] = set()
        self._limits = Limits()
        self._wakes: dict[int, float] = {}  # by slot; those that wait for no time are not in it
        self._effects: list[Effect] = []
        self._has_left = False

    @property
    def wake_at(self) -> float:
        """When to call ``step`` at the latest, by the clock that ``at`` is read from."""
        return min(self._wakes.values()) if self._wakes else NEVER

    def step(self, events: Sequence[Event], at: float) -> list[Effect]:
        """What is to be done after these events, in order.

        Args:
            events: In the order they happened; may be empty when only time has passed.
            at: Seconds of a clock that is never set back.
        """
        effects = self._effects = []
        for event in events:
            _HANDLERS[type(event)](self, event, at)
        if self._wakes:
            self._on_time(at)
        if self.queue:
            self._start(at)
        if self.is_closing and not self.occupied and not self._has_left:
            self._has_left = True
            effects.append(Leave())
        return effects

    def turn_over(self, slot: int, code: int, at: float) -> tuple[Outcome, Attempt | None] | None:
        """A shell exited and left nothing: its outcome, and what is to be started there now.

        Args:
            slot: Where.
            code: Its exit code.
            at: As in ``step``.

        Returns:
            None when there is more to it, and ``step`` has to be told. Otherwise the
            attempt is finished; the second part is None when the slot stays idle.
        """
        occupied = self.occupied[slot]
        queue = self.queue
        if occupied.ending is not None or slot not in self._own or self.is_closing:
            return None
        if not queue:
            del self.occupied[slot]
            self._wakes.pop(slot, None)
            self.idle.append(slot)
            return (Exited(code) if code else DONE), None
        occupied.attempt = queue.pop(0)
        if self._limits.timeout_s is not None:
            self._wakes[slot] = occupied.limit_at = at + self._limits.timeout_s
        elif occupied.limit_at != NEVER:  # a new driver has no limit, the one before had
            occupied.limit_at = NEVER
            self._wakes.pop(slot, None)
        return (Exited(code) if code else DONE), occupied.attempt

    def sends_now(self, waiting_count: int, oldest_at: float, at: float) -> bool:
        """Whether reports that wait should leave: it is time, or what is in hand runs low."""
        return (
            waiting_count >= 2 * len(self.queue) or waiting_count >= SEND_COUNT
            or at >= oldest_at + SEND_AFTER_S
        )

    # ---- what the engine says

    def on_limits_set(self, event: LimitsSet, at: float) -> None:
        self._limits = event.limits

    def on_slots_set(self, event: SlotsSet, at: float) -> None:
        own = set(event.slots)
        self.idle += sorted(own - self._own - self.occupied.keys())
        self._own = own
        gone = [slot for slot in self.idle if slot not in own]
        if gone:
            self.idle = [slot for slot in self.idle if slot in own]
            self._effects.append(Release(gone))

    def on_attempts_given(self, event: AttemptsGiven, at: float) -> None:
        if self.is_closing:
            self._effects.append(HandBack([each.task.id for each in event.attempts]))
        else:
            self.queue.extend(event.attempts)

    def on_command_given(self, event: CommandGiven, at: float) -> None:
        if PER_ENGINE_SLOT in self.occupied:
            raise InvariantBroken(f"two per-engine commands at once: {event.attempt!r}")
        self._occupy(PER_ENGINE_SLOT, event.attempt, NEVER)

    def on_recall_asked(self, event: RecallAsked, at: float) -> None:
        self._effects.append(HandBack(self._take_back(event.ids)))

    def _take_back(self, ids: Sequence[int] | None) -> list[int]:
        """Take these out of the queue; which of them were there, in order."""
        wanted = None if ids is None else set(ids)
        kept = []
        taken = []
        for attempt in self.queue:
            if wanted is None or attempt.task.id in wanted:
                taken.append(attempt.task.id)
            else:
                kept.append(attempt)
        self.queue = kept
        return taken

    def on_end_asked(self, event: EndAsked, at: float) -> None:
        taken = self._take_back(event.ids)
        if taken:
            self._effects.append(HandBack(taken))
        wanted = None if event.ids is None else set(event.ids)
        for slot, occupied in sorted(self.occupied.items(), key=_slot):
            if wanted is None or (slot != PER_ENGINE_SLOT and occupied.attempt.task.id in wanted):
                self._cut(slot, occupied, event, at)

    def on_close_asked(self, event: CloseAsked, at: float) -> None:
        self.is_closing = True
        taken = self._take_back(None)
        if taken:
            self._effects.append(HandBack(taken))

    # ---- what happens to the processes

    def on_start_failed(self, event: StartFailed, at: float) -> None:
        occupied = self._at(event.slot)
        occupied.outcome = NotStarted(event.code, event.reason)
        self._finish(event.slot, occupied)

    def on_shell_ended(self, event: ShellEnded, at: float) -> None:
        slot, occupied = event.slot, self._at(event.slot)
        occupied.outcome = judge(event.code, event.by_oom_killer, occupied.cut, self._limits)
        occupied.left = event.left
        if occupied.ending is not None:
            if not event.left:
                self._finish(slot, occupied)
        elif event.left and not self._limits.leaves_children and slot != PER_ENGINE_SLOT:
            self._end_tree(slot, occupied, SIGTERM, at + self._limits.kill_after_s)
        elif event.output_open:
            occupied.late_until = at + self._limits.late_output_s
            self._wakes[slot] = occupied.late_until
        else:
            self._finish(slot, occupied)

    def on_output_closed(self, event: OutputClosed, at: float) -> None:
        occupied = self.occupied.get(event.slot)
        if occupied is not None and occupied.outcome is not None and occupied.ending is None:
            self._finish(event.slot, occupied)

    def on_tree_seen(self, event: TreeSeen, at: float) -> None:
        occupied = self.occupied.get(event.slot)
        if occupied is None or occupied.ending is None:
            return
        occupied.left = event.left
        is_hopeless = at >= occupied.ending.kill_at + GIVE_UP_S
        if occupied.outcome is not None and (not event.left or is_hopeless):
            self._finish(event.slot, occupied)
            return
        occupied.ending.look_later(at)
        self._wakes[event.slot] = occupied.ending.look_at

    def _on_time(self, at: float) -> None:
        for slot in sorted(slot for slot, when in self._wakes.items() if when <= at):
            occupied = self.occupied[slot]
            if occupied.ending is not None:
                self._signal_again(slot, occupied.ending, at)
            elif occupied.outcome is not None:
                self._finish(slot, occupied)  # no more late output is waited for
            else:
                self._cut(slot, occupied, self._time_over(), at)

    def _time_over(self) -> EndAsked:
        return EndAsked(
            None, "time limit", kill_after_s=self._limits.kill_after_s, timed_out=True
        )

    # ---- parts of the above

    def _at(self, slot: int) -> Occupied:
        occupied = self.occupied.get(slot)
        if occupied is None or occupied.outcome is not None:
            raise InvariantBroken(f"a process ended in slot {slot}, where none was running")
        return occupied

    def _start(self, at: float) -> None:
        queue, idle = self.queue, self.idle
        timeout_s = self._limits.timeout_s
        limit_at = NEVER if timeout_s is None else at + timeout_s
        while queue and idle:
            slot = min(idle)
            idle.remove(slot)
            self._occupy(slot, queue.pop(0), limit_at)

    def _occupy(self, slot: int, attempt: Attempt, limit_at: float) -> None:
        self.occupied[slot] = Occupied(attempt, limit_at)
        if limit_at != NEVER:
            self._wakes[slot] = limit_at
        self._effects.append(Start(slot, attempt))

    def _cut(self, slot: int, occupied: Occupied, event: EndAsked, at: float) -> None:
        """End what is in this slot; a second wish can only hasten the first."""
        if occupied.cut is None:
            occupied.cut = event
        kill_at = at if event.signal == SIGKILL else at + event.kill_after_s
        ending = occupied.ending
        if ending is None:
            self._end_tree(slot, occupied, event.signal, kill_at)
        elif kill_at < ending.kill_at:
            ending.kill_at = kill_at
            self._signal_again(slot, ending, at)

    def _end_tree(self, slot: int, occupied: Occupied, signal: int, kill_at: float) -> None:
        occupied.ending = Ending(signal, kill_at)
        self._wakes.pop(slot, None)  # the answer to EndTree sets the next time
        self._effects.append(EndTree(slot, signal))

    def _signal_again(self, slot: int, ending: Ending, at: float) -> None:
        if at >= ending.kill_at:
            ending.signal = SIGKILL
        ending.look_at = NEVER
        self._wakes.pop(slot, None)
        self._effects.append(EndTree(slot, ending.signal))

    def _finish(self, slot: int, occupied: Occupied) -> None:
        del self.occupied[slot]
        self._wakes.pop(slot, None)
        outcome = occupied.outcome
        if outcome is None:
            raise InvariantBroken(f"slot {slot} finished while its shell lives")
        self._effects.append(Finish(slot, occupied.attempt, outcome, occupied.left))
        if slot in self._own:
            self.idle.append(slot)
        elif slot != PER_ENGINE_SLOT:
            self._effects.append(Release([slot]))


def _slot(item: tuple[int, Occupied]) -> int:
    return item[0]


def judge(
    code: int, by_oom_killer: bool, cut: EndAsked | None, limits: Limits
) -> Outcome:
    """How an attempt ended whose shell ended with this code (minus a signal's number).

    >>> judge(-15, False, EndAsked(None, "interrupt"), Limits()).words()
    'cut off: interrupt'
    """
    if cut is None:
        return Exited(code) if code >= 0 else Signalled(code, by_oom_killer)
    if cut.timed_out:
        return TimedOut(code, limits.timeout_s or 0.0)
    return Cancelled(code, cut.reason)


_HANDLERS: dict[type, Callable[[Slots, Any, float], None]] = {
    LimitsSet: Slots.on_limits_set,
    SlotsSet: Slots.on_slots_set,
    AttemptsGiven: Slots.on_attempts_given,
    CommandGiven: Slots.on_command_given,
    StartFailed: Slots.on_start_failed,
    ShellEnded: Slots.on_shell_ended,
    OutputClosed: Slots.on_output_closed,
    TreeSeen: Slots.on_tree_seen,
    RecallAsked: Slots.on_recall_asked,
    EndAsked: Slots.on_end_asked,
    CloseAsked: Slots.on_close_asked,
}
