"""The runners of an engine that somebody else has started: ranks, each with one slot.

A resource manager starts a process for each slot and gives it cores, memory and devices;
a task that is forked inside it has these. So a rank cannot be made anew, and its slot goes
with it. The first one is the engine's own process: the runner of its slot is a fork of the
engine, as on a machine without a manager.

``-g`` and ``-E`` are decided here, because only here it is known what each rank was given:
a list is divided when all ranks show the same one of several elements. Ranks with lists of
their own keep them.
"""

from __future__ import annotations

from overnight.core.devices import divide
from overnight.core.engine_events import (
    AdmitRank,
    GiveSlots,
    SayNotice,
    SetUpRunners,
    StartRunner,
    TurnAway,
)
from overnight.core.runners import NEVER, Runner, Runners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overnight.core.engine_events import Effect, RankJoined

PATIENCE_S = 30.0
"""How long ranks are waited for: a manager starts them at the same moment."""

FIRST_OWN_ID = 1 << 16
"""Ids of runners that the engine makes; a rank's is its slot."""

OWN_SLOT = 0
OWN_DEATHS = 3
"""So many runners of its own that died one after the other: none is made any more."""


class Ranks(Runners):
    """All ranks of an engine.

    They are waited for before anything starts: what they were given decides how many
    slots there are.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        """Begin with the engine's own rank.

        Args:
            own: The environment that it was started with.
        """
        super().__init__(1, 1)
        self._next_id = FIRST_OWN_ID
        self._environments: dict[int, Mapping[str, str]] = {OWN_SLOT: own}
        self._slots: dict[int, int] = {}  # by the id of the runner
        self._own_deaths = 0
        self._divided: Sequence[str] = ()
        self._used: list[int] = []  # slots that were opened
        self._is_complete = False

    @property
    def first(self) -> Runner:
        """The one that runs per-engine commands: of the lowest slot."""
        return self._runners[min(self._runners, key=lambda id: self._slots[id])]

    @property
    def room(self) -> int:
        """Slots that there are: of those asked for until all are here, of the living later."""
        if not self._is_complete:
            return self.slot_count
        return sum(slot in self._used for slot in self._slots.values())

    @property
    def is_awaited(self) -> bool:
        """Whether nothing can start yet."""
        return not self._is_complete

    def resize(
        self, slot_count: int, at: float = 0.0, divided: Sequence[str] = ()
    ) -> list[Effect]:
        """Wait for so many ranks, once."""
        if self._is_complete:
            return []
        self.slot_count = slot_count
        self._divided = divided
        if self.give_up_at < NEVER:
            return []
        self.give_up_at = at + PATIENCE_S
        return [self._make_own()]

    def _make_own(self) -> StartRunner:
        id, self._next_id = self._next_id, self._next_id + 1
        self._runners[id] = Runner(id)
        self._slots[id] = OWN_SLOT
        return StartRunner(id)

    def grow(self) -> list[Effect]:
        """There are as many as were started."""
        return []

    def released(self, id: int, slots: Sequence[int]) -> list[Effect]:
        """A rank's slot is never another's."""
        return []

    def join(self, event: RankJoined) -> list[Effect]:
        """A rank has come. Too late, or a second one for its slot: it is turned away."""
        slot = event.slot
        if self._is_complete or slot in self._environments:
            return [TurnAway(event.guest)]
        self._runners[slot] = Runner(slot)
        self._slots[slot] = slot
        self._environments[slot] = event.environment
        return [AdmitRank(slot, event.guest)]

    def rank_slot(self, id: int) -> int | None:
        """The slot of a rank; what the engine forks is none."""
        return id if id < FIRST_OWN_ID else None

    def settle(self, at: float) -> list[Effect]:
        """Open the slots of those that are here, once all are or it has taken too long."""
        if self._is_complete or self.give_up_at == NEVER:
            return []
        missing = [slot for slot in range(self.slot_count) if slot not in self._slots.values()]
        if missing and at < self.give_up_at:
            return []
        self._is_complete = True
        self.give_up_at = NEVER
        effects: list[Effect] = []
        if missing:
            effects.append(SayNotice("WARNING", f"of {self.slot_count} processes that were to be"
                                                f" started here, {len(missing)} did not come"))
        here = sorted(slot for slot in self._slots.values() if slot < self.slot_count)
        effects += self._share_devices(here)
        effects.append(SetUpRunners(self.slot_variables))
        for runner in self:
            if self._slots[runner.id] in self._used and not runner.is_dead:
                runner.slots = [self._slots[runner.id]]
                effects.append(GiveSlots(runner.id, runner.slots))
        return effects

    def _share_devices(self, slots: list[int]) -> list[Effect]:
        """Divide what all of these ranks show alike; the slots that have a share are used."""
        notes = []
        common: dict[str, str] = {}
        for name in dict.fromkeys(self._divided):
            values = [self._environments[slot].get(name) for slot in slots]
            value = values[0]
            if any(each != value for each in values):
                continue  # each has its own
            if value is not None and "," not in value.strip(","):
                if len(slots) > 1:
                    notes.append(f"{name} is {value!r} for each of {len(slots)} slots:"
                                 " nothing of it is divided")
                continue
            if value is None:
                notes.append(f"{name} is not set: nothing of it is divided among the slots")
            else:
                common[name] = value
        division = divide(list(common), common, len(slots))
        notes += division.notes
        self._used = slots[: division.slots]
        if common:
            self.slot_variables = [[] for _ in range(self.slot_count)]
            for slot, shares in zip(self._used, division.values):
                self.slot_variables[slot] = [
                    f"{name}={value}".encode("utf-8", "surrogateescape")
                    for name, value in shares.items()
                ]
        return [SayNotice("WARNING", note) for note in notes]

    def replace(self, id: int) -> list[Effect]:
        """A rank is gone for good; a runner of the engine's own can be made again."""
        del self._runners[id]
        slot = self._slots.pop(id)
        if id < FIRST_OWN_ID or self._own_deaths + 1 >= OWN_DEATHS:
            return []
        self._own_deaths += 1
        effects: list[Effect] = [self._make_own()]
        if slot in self._used:
            runner = self._runners[self._next_id - 1]
            runner.slots = [slot]
            effects.append(GiveSlots(runner.id, runner.slots))
        return effects

    def is_hopeless(self, deaths: int) -> bool:
        """Whether nothing can run here any more."""
        return self._is_complete and not self.room
