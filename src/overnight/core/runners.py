"""The runners of an engine as its machine sees them: slots, attempts in hand, shares.

Every slot belongs to one runner at a time. When a runner is added, it gets the slots
that are its share as the others give them up; only idle slots move.

A runner may have attempts in hand beyond its slots, so that it never waits for a round
trip: as many as it finishes in about 20 ms, and none while its last attempts or the one
it is at take longer. What waits there is taken back when another has nothing to do.
"""

from __future__ import annotations

from collections import deque

from overnight.core.engine_events import Give, GiveSlots, StartRunner, TakeBack
from overnight.model.messages import BUSY_PREFETCH_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overnight.core.engine_events import Effect
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report

RECENT = 64
SHORT_S = 0.1
"""Nothing waits behind attempts that take longer than this."""

MOST_AHEAD = 64
"""Attempts a runner has in hand beyond its slots, at most."""

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
    def free_count(self) -> int:
        """Slots that nothing is meant for."""
        return 0 if self.is_dead else max(0, len(self.slots) - len(self.in_hand))

    @property
    def ahead_count(self) -> int:
        """Attempts beyond its slots."""
        return max(0, len(self.in_hand) - len(self.slots))


class Runners:
    """All runners of an engine.

    Attributes:
        slot_count: Slots of the engine.
    """

    def __init__(self, core_count: int, most_slots_each: int) -> None:
        self.slot_count = 0
        self._core_count = core_count
        self._most_slots_each = most_slots_each
        self._places: list[int] = []  # ids; slot i is meant for place i modulo their number
        self._runners: dict[int, Runner] = {}
        self._holders: dict[int, int] = {}  # ids by slot, who may be using it
        self._next_id = 0
        self._recent: deque[float] = deque(maxlen=RECENT)  # seconds the last attempts took

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

    def resize(self, slot_count: int) -> list[Effect]:
        """Hold this many slots from now on, with the runners that takes."""
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

    def ended(self, runner: Runner, reports: Sequence[Report], at: float) -> None:
        """Learn from attempts of a runner that are over."""
        runner.heard_at = at
        self._recent.extend([report.elapsed_s for report in reports])

    def _ahead_limit(self, runner: Runner, at: float) -> int:
        """How many attempts this runner may have in hand beyond its slots."""
        recent = self._recent
        if not recent or max(recent) >= SHORT_S or at - runner.heard_at >= SHORT_S:
            return 0
        mean_s = max(sum(recent) / len(recent), 1e-4)
        return min(int(len(runner.slots) * BUSY_PREFETCH_S / mean_s), MOST_AHEAD)

    def share_out(self, queue: deque[Attempt], at: float) -> list[Effect]:
        """Take attempts from the queue, in order, for the runners that have room."""
        given: dict[int, list[Attempt]] = {}
        alive = [runner for runner in self if not runner.is_dead and runner.slots]
        while queue:
            runner = max(alive, key=lambda each: each.free_count, default=None)
            if runner is None or not runner.free_count:
                break
            self._give(runner, queue.popleft(), given, at)
        for runner in alive:
            room = self._ahead_limit(runner, at) - runner.ahead_count if queue else 0
            for _ in range(min(room, len(queue))):
                self._give(runner, queue.popleft(), given, at)
        return [Give(id, attempts) for id, attempts in given.items()]

    @staticmethod
    def _give(
        runner: Runner, attempt: Attempt, given: dict[int, list[Attempt]], at: float
    ) -> None:
        if not runner.in_hand:
            runner.heard_at = at
        runner.in_hand[attempt.task.id] = attempt
        given.setdefault(runner.id, []).append(attempt)

    def take_back_stuck(self, at: float) -> list[Effect]:
        """Ask for what waits behind slow attempts, or while another has nothing to do."""
        has_idle = any(runner.free_count for runner in self)
        return [
            effect for runner in self
            if runner.ahead_count and (has_idle or at - runner.heard_at >= SHORT_S)
            for effect in self.take_back(runner)
        ]

    def take_back(self, runner: Runner) -> list[Effect]:
        """Ask a runner for all it has not started; those given last are the likely ones."""
        if runner.is_dead or runner.is_asked or not runner.ahead_count:
            return []
        runner.is_asked = True
        return [TakeBack(runner.id, list(runner.in_hand)[len(runner.slots):])]

    @property
    def wake_at(self) -> float:
        """When something may have to be taken back."""
        return min(
            (r.heard_at + SHORT_S for r in self if r.ahead_count and not r.is_asked),
            default=NEVER,
        )
