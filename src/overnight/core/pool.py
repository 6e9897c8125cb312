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
        "absent_reason",
        "absent_since",
        "context",
        "gives_back",
        "held",
        "holds_unknown",
        "id",
        "is_dispensable",
        "is_dry",
        "is_guest",
        "is_survivor",
        "node",
        "prefetch",
        "rank",
        "recent",
        "say_absent_at",
        "slots",
        "state",
        "wants_to_leave",
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
        self.is_guest = False  # somebody else has started it, and may end it
        self.wants_to_leave = False  # somebody asked for that: it takes no further task
        self.gives_back = False  # and what it runs is ended there, to be run elsewhere
        self.absent_since: float | None = None  # its link has ended, and it may come back
        self.absent_reason = ""
        self.say_absent_at = 0.0
        self.is_survivor = False  # an earlier driver has started it
        self.holds_unknown = False  # a survivor, until it has joined: what it runs is not known
        self.is_dispensable = False  # nobody waits for it before it has joined
        self.is_dry = False  # it leaves because nothing is left for it, and its node is given back

    @property
    def is_absent(self) -> bool:
        """Whether nobody can reach it at present."""
        return self.absent_since is not None

    @property
    def takes_tasks(self) -> bool:
        """Whether it may be given tasks now."""
        return self.state == OPEN and self.absent_since is None

    @property
    def free_slots(self) -> int:
        """Slots that nothing is meant for."""
        return self.slots - len(self.held) if self.takes_tasks else 0

    @property
    def room(self) -> int:
        """Attempts that may be given to it, prefetched ones included."""
        return self.slots + self.prefetch - len(self.held) if self.takes_tasks else 0

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
        self.absent: dict[int, EngineState] = {}  # those that nobody can reach at present
        self._unknown: set[int] = set()  # those that hold what is not known
        self.limits: dict[str, int] = {}  # of contexts that have one of their own
        self.ends_at: dict[str, float] = {}  # of contexts that are lent, Unix seconds

    def __iter__(self) -> Iterator[EngineState]:
        return iter(self._engines.values())

    def __len__(self) -> int:
        return len(self._engines)

    def get(self, engine: int) -> EngineState | None:
        """The engine with this id, or None if it has left or never was."""
        return self._engines.get(engine)

    def add(self, engine: int, context: str, task_limit: int | None = None) -> EngineState:
        """An engine's process was started for this context."""
        if engine in self._engines:
            raise InvariantBroken(f"engine {engine} started twice")
        state = self._engines[engine] = EngineState(engine, context)
        self.given.setdefault(context, 0)
        if task_limit is not None:
            self.limits[context] = task_limit
        return state

    def join(
        self, engine: int, node: str, slots: int, is_open: bool, rank: int = -1
    ) -> EngineState | None:
        """It said hello: it has a rank and slots now, and what it runs is known."""
        state = self._engines.get(engine)
        if state is None or state.state != STARTING:
            return None
        state.rank = self._arrived if rank < 0 else rank
        self._arrived += 1
        state.node, state.slots = node, slots
        state.state = OPEN if is_open else JOINED
        state.holds_unknown = False
        self._unknown.discard(engine)
        self.note_back(state)
        return state

    def remove(self, engine: int) -> EngineState | None:
        """It has left; what it held is in the state returned."""
        self.absent.pop(engine, None)
        self._unknown.discard(engine)
        return self._engines.pop(engine, None)

    @property
    def slots(self) -> int:
        """Slots of all engines that take tasks."""
        return sum(e.slots for e in self if e.takes_tasks)

    def note_survivor(self, engine: EngineState) -> None:
        """An earlier driver has started it: what it runs is not known before it has joined."""
        engine.is_survivor = engine.holds_unknown = True
        self._unknown.add(engine.id)

    def note_absent(self, engine: EngineState, at: float, say_at: float) -> None:
        """It cannot be reached since then; that it is so is first said at the other time."""
        engine.absent_since, engine.say_absent_at = at, say_at
        self.absent[engine.id] = engine

    def note_back(self, engine: EngineState) -> None:
        """It can be reached again."""
        engine.absent_since = None
        self.absent.pop(engine.id, None)

    @property
    def holds_unknown(self) -> bool:
        """Whether some engine may run tasks that nobody here knows of."""
        return bool(self._unknown)

    @property
    def live_count(self) -> int:
        """Attempts that some engine holds."""
        return sum(len(e.held) for e in self)
