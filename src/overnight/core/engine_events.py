"""What an engine's machine is told, and what it asks for. See ``core/engine``.

``RecallAsked`` and ``EndAsked`` are the runner's events of the same meaning.
"""

from __future__ import annotations

from overnight.core.slot_events import EndAsked, RecallAsked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup
    from overnight.model.report import Report
    from overnight.model.task import PerEngine

    Pairs = Sequence[tuple[Attempt, Report]]
    CommandRows = Sequence[tuple[bool, Report]]

# ---- events: what the driver says


class SetUp:
    """How tasks are run here, by a driver of this generation."""

    __slots__ = ("setup",)

    def __init__(self, setup: Setup) -> None:
        self.setup = setup


class CommandsGiven:
    """The per-engine commands; those of START are to be run, unless they have been."""

    __slots__ = ("commands",)

    def __init__(self, commands: Sequence[PerEngine]) -> None:
        self.commands = commands


class Assigned:
    """Attempts to be started in this order."""

    __slots__ = ("attempts",)

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = attempts


class Acknowledged:
    """Reports up to this sequence number are durable elsewhere."""

    __slots__ = ("sequence",)

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence


class CloseAsked:
    """Take nothing more, finish, run the STOP commands or not, and leave."""

    __slots__ = ("runs_stop",)

    def __init__(self, runs_stop: bool) -> None:
        self.runs_stop = runs_stop


class DriverGone:
    """The link has ended; whether the driver lives cannot be told."""

    __slots__ = ()


# ---- events: what the runners say, and what is seen of them


class AttemptsEnded:
    """Attempts of a runner are over.

    Attributes:
        runner: Which one.
        reports: Of these attempts.
        rows: The same as they came, to be passed on without making them again.
    """

    __slots__ = ("reports", "rows", "runner")

    def __init__(self, runner: int, reports: Sequence[Report], rows: bytes = b"") -> None:
        self.runner = runner
        self.reports = reports
        self.rows = rows


class CommandEnded:
    """The per-engine command that a runner was given is over."""

    __slots__ = ("report", "runner")

    def __init__(self, runner: int, report: Report) -> None:
        self.runner = runner
        self.report = report


class HandedBack:
    """A runner did not start these and will not."""

    __slots__ = ("ids", "runner")

    def __init__(self, runner: int, ids: Sequence[int]) -> None:
        self.runner = runner
        self.ids = ids


class SlotsReleased:
    """A runner has given up these slots."""

    __slots__ = ("runner", "slots")

    def __init__(self, runner: int, slots: Sequence[int]) -> None:
        self.runner = runner
        self.slots = slots


class RunnerDied:
    """A runner has ended that was not told to."""

    __slots__ = ("runner",)

    def __init__(self, runner: int) -> None:
        self.runner = runner


class OrphansEnded:
    """Nothing that a dead runner had started is alive.

    Attributes:
        runner: The dead one.
        now: Unix seconds, for the reports of what was lost.
    """

    __slots__ = ("now", "runner")

    def __init__(self, runner: int, now: float) -> None:
        self.runner = runner
        self.now = now


# ---- events: the rest


class Kept:
    """Reports with this sequence number are safe in a spool."""

    __slots__ = ("sequence",)

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence


class RankJoined:
    """A process that a resource manager has started for one slot has come to its engine.

    Attributes:
        guest: Its connection, until it is admitted or turned away.
        slot: Number of the slot it was started for.
        environment: It was started with, by name.
    """

    __slots__ = ("environment", "guest", "slot")

    def __init__(self, guest: int, slot: int, environment: Mapping[str, str]) -> None:
        self.guest = guest
        self.slot = slot
        self.environment = environment


class Terminated:
    """Somebody told the engine's process to end."""

    __slots__ = ()


class RunOver:
    """The run takes nobody in any more: it has ended, in order."""

    __slots__ = ()


# ---- effects: towards the driver


class SayEnded:
    """Report attempts of this driver's.

    Attributes:
        sequence: Of this batch.
        pairs: Attempts and reports.
        rows: The reports as rows, where a runner has made them; else empty.
    """

    __slots__ = ("pairs", "rows", "sequence")

    def __init__(self, sequence: int, pairs: Pairs, rows: bytes = b"") -> None:
        self.sequence = sequence
        self.pairs = pairs
        self.rows = rows


class SayKept:
    """Report attempts that may be an earlier driver's."""

    __slots__ = ("pairs", "sequence")

    def __init__(self, sequence: int, pairs: Pairs) -> None:
        self.sequence = sequence
        self.pairs = pairs


class SayCommandsEnded:
    """Report per-engine commands."""

    __slots__ = ("rows", "sequence")

    def __init__(self, sequence: int, rows: CommandRows) -> None:
        self.sequence = sequence
        self.rows = rows


class SayOpened:
    """The START commands are over."""

    __slots__ = ()


class SayRecalled:
    """These were not started and will not be."""

    __slots__ = ("ids",)

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids


class SayTaken:
    """Tell the driver that it has been taken, after everything that was kept.

    Attributes:
        attempts: In hand now. Some of those that HELLO named may have ended or were handed
            back, others may have been given meanwhile by the driver before.
    """

    __slots__ = ("attempts",)

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = attempts

    @property
    def ids(self) -> list[int]:
        """Their tasks."""
        return [attempt.task.id for attempt in self.attempts]


class SayRoom:
    """So many attempts at once can run here from now on."""

    __slots__ = ("slots",)

    def __init__(self, slots: int) -> None:
        self.slots = slots


class SayNotice:
    """Something for the driver's log."""

    __slots__ = ("level", "text")

    def __init__(self, level: str, text: str) -> None:
        self.level = level
        self.text = text


class SayClosed:
    """The engine is done."""

    __slots__ = ()


class Refuse:
    """Tell this driver that a later one was here, and hang up."""

    __slots__ = ("seen",)

    def __init__(self, seen: int) -> None:
        self.seen = seen


# ---- effects: towards the runners


class StartRunner:
    """Make a runner and set it up."""

    __slots__ = ("runner",)

    def __init__(self, runner: int) -> None:
        self.runner = runner


class SetUpRunners:
    """Tell all runners the new setup.

    Attributes:
        slot_variables: By slot, in place of those of the setup; None: those stand.
    """

    __slots__ = ("slot_variables",)

    def __init__(self, slot_variables: Sequence[list[bytes]] | None = None) -> None:
        self.slot_variables = slot_variables


class AdmitRank:
    """This guest is a runner of this id from now on."""

    __slots__ = ("guest", "runner")

    def __init__(self, runner: int, guest: int) -> None:
        self.runner = runner
        self.guest = guest


class TurnAway:
    """Hang up on this guest."""

    __slots__ = ("guest",)

    def __init__(self, guest: int) -> None:
        self.guest = guest


class GiveSlots:
    """These are all the slots of this runner from now on."""

    __slots__ = ("runner", "slots")

    def __init__(self, runner: int, slots: Sequence[int]) -> None:
        self.runner = runner
        self.slots = slots


class Give:
    """Have a runner start these in this order."""

    __slots__ = ("attempts", "runner")

    def __init__(self, runner: int, attempts: Sequence[Attempt]) -> None:
        self.runner = runner
        self.attempts = attempts


class RunCommand:
    """Have a runner run a per-engine command."""

    __slots__ = ("command", "runner")

    def __init__(self, runner: int, command: PerEngine) -> None:
        self.runner = runner
        self.command = command


class TakeBack:
    """Ask a runner for what it has not started of these; the answer is ``HandedBack``."""

    __slots__ = ("ids", "runner")

    def __init__(self, runner: int, ids: Sequence[int]) -> None:
        self.runner = runner
        self.ids = ids


class PassEnd:
    """Have a runner end attempts."""

    __slots__ = ("request", "runner")

    def __init__(self, runner: int, request: EndAsked) -> None:
        self.runner = runner
        self.request = request


class EndOrphans:
    """End what a dead runner had started; the answer is ``OrphansEnded``.

    Attributes:
        runner: Which.
        slot: Its one slot, where it was a rank; else None.
    """

    __slots__ = ("runner", "slot")

    def __init__(self, runner: int, slot: int | None = None) -> None:
        self.runner = runner
        self.slot = slot


# ---- effects: the rest


class Keep:
    """Write attempts and reports to a spool; the answer is ``Kept``, however late."""

    __slots__ = ("pairs", "sequence")

    def __init__(self, sequence: int, pairs: Pairs) -> None:
        self.sequence = sequence
        self.pairs = pairs


class KeepCommands:
    """Write reports of per-engine commands to a spool; the answer is ``Kept``."""

    __slots__ = ("rows", "sequence")

    def __init__(self, sequence: int, rows: CommandRows) -> None:
        self.sequence = sequence
        self.rows = rows


class ForgetSpool:
    """All that was kept has been acknowledged: the spool can go."""

    __slots__ = ()


class Listen:
    """Let a driver attach."""

    __slots__ = ()


class StopListening:
    """A driver has taken over."""

    __slots__ = ()


class Leave:
    """Close the runners and end."""

    __slots__ = ()


if TYPE_CHECKING:
    Event = (
        SetUp | CommandsGiven | Assigned | RecallAsked | EndAsked | Acknowledged | CloseAsked
        | DriverGone | AttemptsEnded | CommandEnded | HandedBack | SlotsReleased
        | RunnerDied | OrphansEnded | Kept | RankJoined | Terminated | RunOver
    )
    Effect = (
        SayEnded | SayKept | SayCommandsEnded | SayOpened | SayRecalled | SayTaken | SayClosed
        | SayRoom | SayNotice | Refuse | AdmitRank | TurnAway
        | StartRunner | SetUpRunners | GiveSlots | Give | RunCommand | TakeBack | PassEnd
        | EndOrphans | Keep | KeepCommands | ForgetSpool | Listen | StopListening | Leave
    )
