"""What the scheduler asks for, in order. The driver performs a step's records first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.verdict import Verdict
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report
    from overnight.model.task import Barrier, DoneBefore, PerEngine, Task


class Read:
    """Up to this many items are wanted from the source."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class StartEngines:
    """There is a task to start and nothing to start it on."""

    __slots__ = ()


class OpenEngine:
    """The engine is to run its START commands and then take tasks."""

    __slots__ = ("commands", "engine")

    def __init__(self, engine: int, commands: Sequence[PerEngine]) -> None:
        self.engine = engine
        self.commands = commands  # START and STOP


class Assign:
    """The engine is to start these, in this order, as its slots come free."""

    __slots__ = ("attempts", "engine")

    def __init__(self, engine: int, attempts: Sequence[Attempt]) -> None:
        self.engine = engine
        self.attempts = attempts


class Recall:
    """The engine is to give back which of these it has not started."""

    __slots__ = ("engine", "task_ids")

    def __init__(self, engine: int, task_ids: Sequence[int]) -> None:
        self.engine = engine
        self.task_ids = task_ids


class EndAttempts:
    """The engine is to end the trees of all its attempts."""

    __slots__ = ("at_once", "engine", "reason")

    def __init__(self, engine: int, reason: str, at_once: bool) -> None:
        self.engine = engine
        self.reason = reason
        self.at_once = at_once  # KILL without a TERM before it


class SetSlots:
    """The engine is to have that many slots."""

    __slots__ = ("engine", "slots")

    def __init__(self, engine: int, slots: int) -> None:
        self.engine = engine
        self.slots = slots


class CloseEngine:
    """The engine is to let what runs finish and leave."""

    __slots__ = ("engine", "runs_stop")

    def __init__(self, engine: int, runs_stop: bool) -> None:
        self.engine = engine
        self.runs_stop = runs_stop  # whether its STOP commands run first


class Acknowledge:
    """Reports of the engine up to this sequence number are durable."""

    __slots__ = ("engine", "seq")

    def __init__(self, engine: int, seq: int) -> None:
        self.engine = engine
        self.seq = seq


class TaskEnded:
    """A record: one attempt is over."""

    __slots__ = ("is_cut", "node", "rank", "report", "settles", "task")

    def __init__(
        self, task: Task, report: Report, node: str, rank: int, settles: bool, is_cut: bool
    ) -> None:
        self.task = task
        self.report = report
        self.node = node
        self.rank = rank
        self.settles = settles  # it decides the task's fate: a row in the status file
        self.is_cut = is_cut  # we cut it off, or it came late: flag Z


class CommandEnded:
    """A record: a per-engine command is over."""

    __slots__ = ("command", "node", "rank", "report")

    def __init__(self, command: PerEngine, report: Report, node: str, rank: int) -> None:
        self.command = command
        self.report = report
        self.node = node
        self.rank = rank


class BarrierMet:
    """A record: everything before this line is settled."""

    __slots__ = ("barrier", "finished_at", "started_at")

    def __init__(self, barrier: Barrier, started_at: float, finished_at: float) -> None:
        self.barrier = barrier
        self.started_at = started_at
        self.finished_at = finished_at


class TasksSkipped:
    """A record: an earlier run had settled these tasks."""

    __slots__ = ("done",)

    def __init__(self, done: DoneBefore) -> None:
        self.done = done


if TYPE_CHECKING:
    Entry = TaskEnded | CommandEnded | BarrierMet | TasksSkipped


class Record:
    """These are to be written, in this order; then everything up to ``number`` is."""

    __slots__ = ("entries", "number")

    def __init__(self, entries: Sequence[Entry], number: int) -> None:
        self.entries = entries
        self.number = number


class GiveBack:
    """Nothing is left for this engine's node, and the engine is leaving: its node can go."""

    __slots__ = ("engine",)

    def __init__(self, engine: int) -> None:
        self.engine = engine


class MakeDurable:
    """Somebody waits for the record to be durable: do it now, not within 100 ms."""

    __slots__ = ()


class WakeAt:
    """Step again at this time at the latest, events or not."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


class Tell:
    """A person should know this now. ``level``: info (log only), warning, error."""

    __slots__ = ("level", "text")

    def __init__(self, level: str, text: str) -> None:
        self.level = level
        self.text = text


class LeaveAlone:
    """Do not look for this engine any longer, nor wait for it: the run ends without it."""

    __slots__ = ("engine", "may_run_tasks")

    def __init__(self, engine: int, may_run_tasks: bool = False) -> None:
        self.engine = engine
        self.may_run_tasks = may_run_tasks  # a later driver has to find it


class Finish:
    """The run is over."""

    __slots__ = ("verdict",)

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict


if TYPE_CHECKING:
    Effect = (
        Read | StartEngines | OpenEngine | Assign | Recall | EndAttempts | SetSlots | CloseEngine
        | LeaveAlone | GiveBack | Acknowledge | Record | MakeDurable | WakeAt | Tell | Finish
    )
