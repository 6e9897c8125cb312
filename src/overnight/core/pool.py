"""The engines a driver knows, and how much each of them may be given.

Beyond its free slots an engine may hold what it finishes in about 20 ms, so that a
slot need not wait for a round trip: only while the slowest of its last 64 tasks took
under 100 ms, since a task that waits behind a slow one could run elsewhere.
"""

from __future__ import annotations

from collections import deque

from overnight.errors import InvariantBroken
from overnight.model.messages import BUSY_PREFETCH_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from overnight.model.attempt import Attempt

STARTING, JOINED, OPENING, OPEN, DRAINING, CLOSING = range(6)
"""States of an engine: its process was started; it said hello; it runs START commands; it
takes tasks; it has had its last one; it was told to leave."""

RECENT = 64
SLOW_TASK_S = 0.1
MOST_PREFETCHED = 256


class EngineState:
    """One engine as the scheduler sees it, from the start of its process to its end."""

    __slots__ = (
        "context", "held", "id", "node", "prefetch", "rank", "recent", "slots", "state",
        "was_told_to_leave",
    )

    def __init__(self, id: int, context: str) -> None:
        self.id = id
        self.context = context
        self.rank = -1  # order of arrival: DISBATCH_ENGINE_RANK
        self.node = ""
        self.slots = 0
        self.state = STARTING
        self.held: dict[int, Attempt] = {}  # by task id: given to it and not reported
        self.recent: deque[float] = deque(maxlen=RECENT)  # seconds its last tasks took
        self.prefetch = 0
        self.was_told_to_leave = False

    @property
    def free_slots(self) -> int:
        """Slots that nothing is meant for."""
        return self.slots - len(self.held) if self.state == OPEN else 0

    @property
    def room(self) -> int:
        """Attempts that may be given to it, prefetched ones included."""
        return self.slots + self.prefetch - len(self.held) if self.state == OPEN else 0

    def judge_prefetch(self) -> None:
        """Set how many attempts it may hold beyond its slots, by its last tasks."""
        recent = self.recent
        if not recent or max(recent) >= SLOW_TASK_S:
            self.prefetch = 0
            return
        mean_s = max(sum(recent) / len(recent), 1e-4)
        self.prefetch = min(int(self.slots * BUSY_PREFETCH_S / mean_s), MOST_PREFETCHED)


class Pool:
    """All engines that have not left, in order of their start."""

    def __init__(self) -> None:
        self._engines: dict[int, EngineState] = {}
        self._arrived = 0
        self.given: dict[str, int] = {}  # tasks assigned, by context

    def __iter__(self) -> Iterator[EngineState]:
        return iter(self._engines.values())

    def __len__(self) -> int:
        return len(self._engines)

    def get(self, engine: int) -> EngineState | None:
        """The engine with this id, or None if it has left or never was."""
        return self._engines.get(engine)

    def add(self, engine: int, context: str) -> None:
        """An engine's process was started for this context."""
        if engine in self._engines:
            raise InvariantBroken(f"engine {engine} started twice")
        self._engines[engine] = EngineState(engine, context)
        self.given.setdefault(context, 0)

    def join(self, engine: int, node: str, slots: int, is_open: bool) -> EngineState | None:
        """It said hello: it has a rank and slots now."""
        state = self._engines.get(engine)
        if state is None or state.state != STARTING:
            return None
        state.rank = self._arrived
        self._arrived += 1
        state.node, state.slots = node, slots
        state.state = OPEN if is_open else JOINED
        return state

    def remove(self, engine: int) -> EngineState | None:
        """It has left; what it held is in the state returned."""
        return self._engines.pop(engine, None)

    @property
    def slots(self) -> int:
        """Slots of all engines that take tasks."""
        return sum(e.slots for e in self if e.state == OPEN)

    @property
    def live_count(self) -> int:
        """Attempts that some engine holds."""
        return sum(len(e.held) for e in self)
