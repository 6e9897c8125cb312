"""What a runner's machine is told, and what it asks for. See ``core/slots``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.model.attempt import Attempt
    from overnight.model.outcome import Outcome

SIGKILL, SIGTERM = 9, 15  # Linux numbers; importing signal costs an engine 6 ms


class Limits:
    """What this run allows its attempts.

    Attributes:
        timeout_s: Time limit of an attempt, or None.
        kill_after_s: Between the first signal and SIGKILL.
        late_output_s: How long a slot waits for output after its shell's end.
        leaves_children: Children alive after a normal end are released, not ended.
    """

    __slots__ = ("kill_after_s", "late_output_s", "leaves_children", "timeout_s")

    def __init__(
        self, timeout_s: float | None = None, kill_after_s: float = 2.0,
        late_output_s: float = 5.0, leaves_children: bool = True,
    ) -> None:
        self.timeout_s = timeout_s
        self.kill_after_s = kill_after_s
        self.late_output_s = late_output_s
        self.leaves_children = leaves_children


# ---- events


class LimitsSet:
    """How attempts are treated from now on."""

    __slots__ = ("limits",)

    def __init__(self, limits: Limits) -> None:
        self.limits = limits


class SlotsSet:
    """These slots are the runner's from now on; others are given up when they are free."""

    __slots__ = ("slots",)

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = slots


class AttemptsGiven:
    """To be started in this order as slots come free."""

    __slots__ = ("attempts",)

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = attempts


class CommandGiven:
    """A per-engine command, to be run in its own slot; it travels as an attempt."""

    __slots__ = ("attempt",)

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt


class StartFailed:
    """The attempt in this slot could not become a process."""

    __slots__ = ("code", "reason", "slot")

    def __init__(self, slot: int, code: int, reason: str) -> None:
        self.slot = slot
        self.code = code
        self.reason = reason


class ShellEnded:
    """The process started for this slot has ended.

    Attributes:
        slot: Where.
        code: Its exit code, or minus the signal that ended it.
        left: Processes of the attempt that live on.
        output_open: Some process still holds an output pipe.
        by_oom_killer: The kernel ended it for want of memory.
    """

    __slots__ = ("by_oom_killer", "code", "left", "output_open", "slot")

    def __init__(
        self, slot: int, code: int, left: int = 0, output_open: bool = False,
        by_oom_killer: bool = False,
    ) -> None:
        self.slot = slot
        self.code = code
        self.left = left
        self.output_open = output_open
        self.by_oom_killer = by_oom_killer


class OutputClosed:
    """No process holds an output pipe of this slot any more."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        self.slot = slot


class TreeSeen:
    """How many processes of this slot's attempt were alive at the last look."""

    __slots__ = ("left", "slot")

    def __init__(self, slot: int, left: int) -> None:
        self.slot = slot
        self.left = left


class RecallAsked:
    """These should not be started if they have not been; None means all."""

    __slots__ = ("ids",)

    def __init__(self, ids: Sequence[int] | None) -> None:
        self.ids = ids


class EndAsked:
    """The trees of these attempts are to be ended.

    Attributes:
        ids: Tasks; None means whatever there is, per-engine commands too.
        reason: Becomes the outcome's.
        signal: The first one.
        kill_after_s: Between it and SIGKILL.
        timed_out: The outcome is ``TimedOut``, not ``Cancelled``.
    """

    __slots__ = ("ids", "kill_after_s", "reason", "signal", "timed_out")

    def __init__(
        self, ids: Sequence[int] | None, reason: str, signal: int = SIGTERM,
        kill_after_s: float = 2.0, timed_out: bool = False,
    ) -> None:
        self.ids = ids
        self.reason = reason
        self.signal = signal
        self.kill_after_s = kill_after_s
        self.timed_out = timed_out


class CloseAsked:
    """Nothing more is started; the runner leaves when its slots are free."""

    __slots__ = ()


# ---- effects


class Start:
    """Make a process of this attempt."""

    __slots__ = ("attempt", "slot")

    def __init__(self, slot: int, attempt: Attempt) -> None:
        self.slot = slot
        self.attempt = attempt


class EndTree:
    """Signal every process of this slot's attempt; the answer is ``TreeSeen``."""

    __slots__ = ("signal", "slot")

    def __init__(self, slot: int, signal: int) -> None:
        self.slot = slot
        self.signal = signal


class Finish:
    """The attempt is over: make its report and let go of what it held.

    Attributes:
        slot: Where it was.
        attempt: What it was.
        outcome: How it ended.
        left_running: Its processes at the last look; if there were any, they are counted
            once more for the report and released.
    """

    __slots__ = ("attempt", "left_running", "outcome", "slot")

    def __init__(self, slot: int, attempt: Attempt, outcome: Outcome, left_running: int) -> None:
        self.slot = slot
        self.attempt = attempt
        self.outcome = outcome
        self.left_running = left_running


class HandBack:
    """These were not started and will not be."""

    __slots__ = ("ids",)

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids


class Release:
    """These slots are no longer the runner's."""

    __slots__ = ("slots",)

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = slots


class Leave:
    """The runner is done."""

    __slots__ = ()


if TYPE_CHECKING:
    Event = (
        LimitsSet | SlotsSet | AttemptsGiven | CommandGiven | StartFailed | ShellEnded
        | OutputClosed | TreeSeen | RecallAsked | EndAsked | CloseAsked
    )
    Effect = Start | EndTree | Finish | HandBack | Release | Leave
