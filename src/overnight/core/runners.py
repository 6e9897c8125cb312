"""The runners of an engine as its machine sees them: slots, attempts in hand, shares.

Every slot belongs to one runner at a time. When a runner is added, it gets the slots
that are its share as the others give them up; only idle slots move.

A runner may have attempts in hand beyond its slots, so that it never waits for a round
trip: as many as it finishes in about 20 ms, and none while its last attempts or the one
it is at take longer. What waits there is taken back when another has nothing to do.
"""

from __future__ import annotations

from overnight.core.engine_events import Give, GiveSlots, StartRunner, TakeBack, TurnAway
from overnight.model.messages import BUSY_PREFETCH_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overnight.core.engine_events import Effect, RankJoined
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report

RECENT = 64
SHORT_S = 0.1
"""Nothing waits behind attempts that take longer than this."""

MOST_AHEAD = 64
"""Attempts a runner has in hand beyond its slots, at most."""

DEATHS_IN_A_ROW = 3
"""Runners that died without a report between them: this machine runs nothing."""

NEVER = float("inf")


class Runner:
    """One runner.

    Attributes:
        id: Never used again.
        slots: What it was told to hold, in order.
        in_hand: Attempts given and not reported or handed back, by task id, in order.
        heard_at: When it last reported, or was given something while it had nothing.
        is_dead: Its process has ended; what it had started is being ended.
        is_asked: ``HandedBack`` is awaited.
    """

    __slots__ = ("heard_at", "id", "in_hand", "is_asked", "is_dead", "slots")

    def __init__(self, id: int) -> None:
        self.id = id
        self.slots: list[int] = []
        self.in_hand: dict[int, Attempt] = {}
        self.heard_at = 0.0
        self.is_dead = False
        self.is_asked = False

    @property
    def ahead_count(self) -> int:
        """Attempts beyond its slots; below zero, slots that nothing is meant for."""
        return len(self.in_hand) - len(self.slots)


def _ahead_count(runner: Runner) -> int:
    return runner.ahead_count


class Runners:
    """All runners of an engine.

    Attributes:
        slot_count: Slots of the engine.
        wake_at: When ``tend`` has to be called although nothing happened.
        give_up_at: When ``settle`` has to be.
        slot_variables: By slot, in place of those of the setup; None: those stand.
    """

    def __init__(self, core_count: int, most_slots_each: int) -> None:
        self.slot_count = 0
        self.wake_at = NEVER
        self.give_up_at = NEVER
        self.slot_variables: list[list[bytes]] | None = None
        self._core_count = core_count
        self._most_slots_each = most_slots_each
        self._places: list[int] = []  # ids; slot i is meant for place i modulo their number
        self._runners: dict[int, Runner] = {}
        self._holders: dict[int, int] = {}  # ids by slot, who may be using it
        self._next_id = 0
        self._recent: list[float] = []  # seconds the last attempts took
        self._ahead_a_slot = 0.0  # attempts worth having in hand beyond each slot

    def __iter__(self) -> Iterator[Runner]:
        return iter(self._runners.values())

    def get(self, id: int) -> Runner | None:
        """The runner with this id, or None once it is gone."""
        return self._runners.get(id)

    @property
    def first(self) -> Runner:
        """The one that runs per-engine commands."""
        return self._runners[self._places[0]]

    @property
    def in_hand_count(self) -> int:
        """Attempts in the hands of all."""
        return sum(len(runner.in_hand) for runner in self)

    # ---- slots

    @property
    def room(self) -> int:
        """Slots that there really are."""
        return self.slot_count

    @property
    def is_awaited(self) -> bool:
        """Whether runners are on their way without which nothing can start."""
        return False

    def join(self, event: RankJoined) -> list[Effect]:
        """Somebody wants to be a runner who was not asked."""
        return [TurnAway(event.guest)]

    def rank_slot(self, id: int) -> int | None:
        """The slot of a runner that somebody else has started, else None."""
        return None

    def settle(self, at: float) -> list[Effect]:
        """What follows when all that were awaited are here."""
        return []

    def is_hopeless(self, deaths: int) -> bool:
        """Whether this machine runs nothing, so many runners having died in a row."""
        return deaths >= DEATHS_IN_A_ROW

    def resize(
        self, slot_count: int, at: float = 0.0, divided: Sequence[str] = ()
    ) -> list[Effect]:
        """Hold this many slots from now on, with the runners that takes.

        Args:
            slot_count: Slots.
            at: Now.
            divided: Variables that are divided where each slot came with its own; here it
                was done before.
        """
        self.slot_count = slot_count
        least = max(1, -(-slot_count // self._most_slots_each))
        return self._grow_to(max(least, len(self._places)))

    def grow(self) -> list[Effect]:
        """Have as many runners as are worth while on this machine."""
        slots = self.slot_count
        wanted = 1 if slots <= 1 else min(self._core_count, max(2, slots // 8), slots)
        return self._grow_to(max(wanted, len(self._places)))

    def _grow_to(self, count: int) -> list[Effect]:
        effects: list[Effect] = []
        while len(self._places) < count:
            self._places.append(self._add(effects))
        return effects + self._spread()

    def _add(self, effects: list[Effect]) -> int:
        runner = Runner(self._next_id)
        self._next_id += 1
        self._runners[runner.id] = runner
        effects.append(StartRunner(runner.id))
        return runner.id

    def released(self, id: int, slots: Sequence[int]) -> list[Effect]:
        """A runner has given up slots: they go to whom they are meant for."""
        for slot in slots:
            if self._holders.get(slot) == id:
                del self._holders[slot]
        return self._spread()

    def replace(self, id: int) -> list[Effect]:
        """Put a new runner in the place of a dead one of which nothing is left."""
        del self._runners[id]
        self._holders = {slot: holder for slot, holder in self._holders.items() if holder != id}
        effects: list[Effect] = []
        self._places[self._places.index(id)] = self._add(effects)
        return effects + self._spread()

    def _spread(self) -> list[Effect]:
        """Tell each runner the slots that are meant for it and nobody else holds."""
        meant: dict[int, list[int]] = {id: [] for id in self._places}
        for slot in range(self.slot_count):
            id = self._places[slot % len(self._places)]
            if self._holders.setdefault(slot, id) == id:
                meant[id].append(slot)
        effects: list[Effect] = []
        for runner in self:
            if not runner.is_dead and meant[runner.id] != runner.slots:
                runner.slots = meant[runner.id]
                effects.append(GiveSlots(runner.id, runner.slots))
        return effects

    # ---- shares

    def ids_in_hand(self) -> list[Iterable[int]]:
        """Ids of tasks, by runner."""
        return [runner.in_hand for runner in self]

    def ended(self, runner: Runner, reports: Sequence[Report], at: float) -> None:
        """Learn from attempts of a runner that are over."""
        runner.heard_at = at
        recent = (self._recent + [report.elapsed_s for report in reports])[-RECENT:]
        self._recent = recent
        if max(recent) >= SHORT_S:
            self._ahead_a_slot = 0.0
        else:
            self._ahead_a_slot = BUSY_PREFETCH_S / max(sum(recent) / len(recent), 1e-4)

    def tend(self, queue: list[Attempt], at: float) -> list[Effect]:
        """Give attempts from the queue, in order, to runners that have room for them.

        What waits behind a slow attempt, or while another runner has nothing to do, is
        asked back instead.
        """
        alive = [runner for runner in self._runners.values() if not runner.is_dead]
        given: dict[int, list[Attempt]] = {}
        if queue:
            self._fill_slots(alive, queue, given, at)
            if queue and self._ahead_a_slot:
                self._give_ahead(alive, queue, given, at)
        effects: list[Effect] = [Give(id, attempts) for id, attempts in given.items()]
        self._take_back_stuck(alive, effects, at)
        return effects

    def _fill_slots(
        self, alive: list[Runner], queue: list[Attempt], given: dict[int, list[Attempt]],
        at: float,
    ) -> None:
        """One at a time to the runner with the most free slots."""
        free = [runner for runner in alive if len(runner.slots) > len(runner.in_hand)]
        while queue and free:
            runner = min(free, key=_ahead_count)
            _give(runner, 1, queue, given, at)
            if runner.ahead_count == 0:
                free.remove(runner)

    def _give_ahead(
        self, alive: list[Runner], queue: list[Attempt], given: dict[int, list[Attempt]],
        at: float,
    ) -> None:
        for runner in sorted(alive, key=_ahead_count):
            if at < runner.heard_at + SHORT_S:  # else it is at something longer than the last
                limit = min(int(len(runner.slots) * self._ahead_a_slot), MOST_AHEAD)
                _give(runner, limit - runner.ahead_count, queue, given, at)

    def _take_back_stuck(self, alive: list[Runner], effects: list[Effect], at: float) -> None:
        self.wake_at = NEVER
        ahead = [r for r in alive if len(r.in_hand) > len(r.slots) and not r.is_asked]
        if not ahead:
            return
        has_idle = any(len(runner.in_hand) < len(runner.slots) for runner in alive)
        for runner in ahead:
            stuck_at = runner.heard_at + SHORT_S
            if has_idle or at >= stuck_at:
                runner.is_asked = True
                # Those given last are the ones that it has not started.
                effects.append(TakeBack(runner.id, list(runner.in_hand)[len(runner.slots):]))
            elif stuck_at < self.wake_at:
                self.wake_at = stuck_at


def _give(
    runner: Runner, most: int, queue: list[Attempt], given: dict[int, list[Attempt]], at: float
) -> None:
    if most <= 0 or not queue:
        return
    if not runner.in_hand:
        runner.heard_at = at
    attempts = queue[:most]
    del queue[:most]
    for attempt in attempts:
        runner.in_hand[attempt.task.id] = attempt
    given.setdefault(runner.id, []).extend(attempts)
