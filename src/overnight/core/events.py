"""Facts given to the scheduler. A late, doubled or foreign one is a normal case.

What can happen to many tasks is plural. Time is not in them: a step has one ``at``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.errors import OvernightError
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report
    from overnight.model.task import Item, PerEngine

SOFT, END, KILL = 1, 2, 3
"""How a stop is meant: start nothing more; end what runs; end it without grace."""


class ItemsRead:
    """The source gave what comes next in the list, in order."""

    __slots__ = ("has_ended", "items")

    def __init__(self, items: Sequence[Item], has_ended: bool) -> None:
        self.items = items
        self.has_ended = has_ended  # nothing follows


class SourceFailed:
    """The rest of the list cannot be run: a finding in it, or it does not fit its past."""

    __slots__ = ("error",)

    def __init__(self, error: OvernightError) -> None:
        self.error = error


class EngineStarting:
    """A context has started the process of an engine; it may join.

    Attributes:
        engine: Its id in this driver.
        context: Label of its context.
        task_limit: Of its context, 0 for none; None: the run's.
        is_guest: Somebody else has started it, and may end it.
        node: Its host as rows have it; empty where it is not known before it has joined.
        is_dispensable: It may take long to join, and has no task before: nobody waits for
            that when nothing is left to do.
        lends: Its node is given back when nothing is left for it.
        is_survivor: An earlier driver has started it. What it runs is not known before it
            has joined: it may be any task without a row.
    """

    __slots__ = (
        "context", "engine", "is_dispensable", "is_guest", "is_survivor", "lends", "node",
        "task_limit",
    )

    def __init__(
        self, engine: int, context: str, task_limit: int | None = None, is_guest: bool = False,
        lends: bool = False, *, node: str = "", is_dispensable: bool = False,
        is_survivor: bool = False,
    ) -> None:
        self.engine = engine
        self.context = context
        self.task_limit = task_limit
        self.is_guest = is_guest
        self.lends = lends
        self.node = node
        self.is_dispensable = is_dispensable
        self.is_survivor = is_survivor


class EnginesStarted:
    """Whatever ``StartEngines`` could start has been named; it may be nothing."""

    __slots__ = ()


class EngineAwaited:
    """A survivor lives elsewhere, perhaps, and will call this driver: it is absent so far."""

    __slots__ = ("context", "engine", "node")

    def __init__(self, engine: int, context: str, node: str) -> None:
        self.engine = engine
        self.context = context
        self.node = node


class EngineCutOff:
    """The link to an engine has ended, and the engine may live on and come back.

    Said again where the reason is known better, or where it was looked for in vain.
    """

    __slots__ = ("engine", "reason")

    def __init__(self, engine: int, reason: str) -> None:
        self.engine = engine
        self.reason = reason


class EngineReturned:
    """An engine that was cut off is here again; all that it kept has been handed in.

    Attributes:
        engine: Its id.
        task_ids: What it has in hand: anything else that it held was never started.
        is_open: Its START commands have run.
        is_closing: It takes nothing more.
    """

    __slots__ = ("engine", "is_closing", "is_open", "task_ids")

    def __init__(
        self, engine: int, task_ids: Sequence[int], is_open: bool, is_closing: bool
    ) -> None:
        self.engine = engine
        self.task_ids = task_ids
        self.is_open = is_open
        self.is_closing = is_closing


class EngineAbandoned:
    """An engine is not waited for any more, though nothing is proved.

    Its tasks stay its own: they are for a later driver to collect, or to run again.
    """

    __slots__ = ("engine", "reason")

    def __init__(self, engine: int, reason: str) -> None:
        self.engine = engine
        self.reason = reason


class EngineJoined:
    """An engine has said hello.

    Attributes:
        engine: Its id in this driver, as in ``EngineStarting``.
        node: Name of its host as rows have it.
        slots: Attempts at once.
        is_open: Its START commands have run (under an earlier driver).
        is_closing: It was told to leave before this driver came, and takes nothing.
        running: Attempts that go on there.
        rank: Its DISBATCH_ENGINE_RANK; below zero for the order of arrival.
    """

    __slots__ = ("engine", "is_closing", "is_open", "node", "rank", "running", "slots")

    def __init__(
        self, engine: int, node: str, slots: int, is_open: bool, running: Sequence[Attempt],
        is_closing: bool = False, rank: int = -1,
    ) -> None:
        self.rank = rank
        self.engine = engine
        self.node = node
        self.slots = slots
        self.is_open = is_open
        self.is_closing = is_closing
        self.running = running


class EngineResized:
    """The engine runs so many attempts at once from now on."""

    __slots__ = ("engine", "slots")

    def __init__(self, engine: int, slots: int) -> None:
        self.engine = engine
        self.slots = slots


class EngineOpened:
    """The engine's START commands are over: it takes tasks."""

    __slots__ = ("engine",)

    def __init__(self, engine: int) -> None:
        self.engine = engine


class AttemptsEnded:
    """Reports of an engine, under its own sequence number."""

    __slots__ = ("engine", "reports", "seq")

    def __init__(self, engine: int, seq: int, reports: Sequence[Report]) -> None:
        self.engine = engine
        self.seq = seq
        self.reports = reports


class KeptReports:
    """Reports that were kept while no driver listened.

    Attributes:
        engine: That kept them; one that is not known for a spool whose engine has left.
        seq: To be acknowledged to it.
        pairs: Each attempt with its report.
        node: Name of its host as rows have it.
        rank: Of the engine, under the driver that started it.
        commands: Per-engine commands, each with its report.
    """

    __slots__ = ("commands", "engine", "node", "pairs", "rank", "seq")

    def __init__(
        self, engine: int, seq: int, pairs: Sequence[tuple[Attempt, Report]], node: str, rank: int,
        commands: Sequence[tuple[PerEngine, Report]] = (),
    ) -> None:
        self.engine = engine
        self.seq = seq
        self.pairs = pairs
        self.node = node
        self.rank = rank
        self.commands = commands


class PerEngineEnded:
    """Reports of per-engine commands."""

    __slots__ = ("engine", "pairs", "seq")

    def __init__(self, engine: int, seq: int, pairs: Sequence[tuple[PerEngine, Report]]) -> None:
        self.engine = engine
        self.seq = seq
        self.pairs = pairs


class AttemptsRecalled:
    """The engine gave back tasks that it had not started. No attempt was made."""

    __slots__ = ("engine", "task_ids")

    def __init__(self, engine: int, task_ids: Sequence[int]) -> None:
        self.engine = engine
        self.task_ids = task_ids


class EngineClosed:
    """The engine has nothing left and leaves in order."""

    __slots__ = ("engine",)

    def __init__(self, engine: int) -> None:
        self.engine = engine


class EngineLost:
    """The engine is gone, and it is proved that nothing it had started still runs."""

    __slots__ = ("engine", "reason")

    def __init__(self, engine: int, reason: str) -> None:
        self.engine = engine
        self.reason = reason


class DrainAsked:
    """Engines are to take nothing more and leave when what runs there has ended."""

    __slots__ = ("ends_tasks", "engines")

    def __init__(self, engines: Sequence[int], ends_tasks: bool = False) -> None:
        self.engines = engines
        self.ends_tasks = ends_tasks  # now; they are given out again, without a failure


class SlotsSet:
    """An engine is to have that many slots from now on."""

    __slots__ = ("engine", "slots")

    def __init__(self, engine: int, slots: int) -> None:
        self.engine = engine
        self.slots = slots


class ContextEndsAt:
    """A context was lent until then: its engines are to have left."""

    __slots__ = ("at", "context")

    def __init__(self, context: str, at: float) -> None:
        self.context = context
        self.at = at  # Unix seconds


class RowsDurable:
    """Everything recorded up to this record number survives the machine."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class RecordFailed:
    """The record cannot be written at present."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class RecordMended:
    """The record is whole again."""

    __slots__ = ()


class HostMeasured:
    """How loaded this machine is, for --load and --memfree."""

    __slots__ = ("free_memory", "load")

    def __init__(self, load: float, free_memory: int) -> None:
        self.load = load  # runnable processes, one-minute mean
        self.free_memory = free_memory  # bytes that could be had without swapping


class StopAsked:
    """Somebody wants the run to end: ``SOFT``, ``END`` or ``KILL``."""

    __slots__ = ("how", "notice", "reason", "signal")

    def __init__(self, how: int, reason: str, signal: int = 0, notice: str = "") -> None:
        self.how = how
        self.reason = reason
        self.signal = signal  # that asked for it, 0 if none
        self.notice = notice  # for a person: what this does, and what the next would do


if TYPE_CHECKING:
    Event = (
        ItemsRead | SourceFailed | EngineStarting | EnginesStarted | EngineAwaited | EngineJoined
        | EngineOpened | EngineResized | EngineCutOff | EngineReturned | EngineAbandoned
        | DrainAsked | SlotsSet | ContextEndsAt
        | AttemptsEnded | KeptReports | PerEngineEnded | AttemptsRecalled | EngineClosed
        | EngineLost | RowsDurable | RecordFailed | RecordMended | HostMeasured | StopAsked
    )
