"""How an attempt ended, as a value. Exactly one outcome an attempt.

Each class knows its exit code as the status file has it, and says itself in words.
What only one ending has stands in that ending alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

LOST_CODE = -100
"""Exit code of a lost attempt, as disBatch writes it."""

TIMED_OUT_CODE = 124
"""Exit code of a task over its time limit that then ended with 0 (as timeout(1) has it)."""


class Exited:
    """The shell ended by itself."""

    __slots__ = ("code",)
    kind = "exited"

    def __init__(self, code: int) -> None:
        self.code = code  # 0 to 255

    def words(self) -> str:
        """What a person would say."""
        return "done" if self.code == 0 else f"exit code {self.code}"


class Signalled:
    """The shell was ended by a signal that was not ours."""

    __slots__ = ("by_oom_killer", "code")
    kind = "signalled"

    def __init__(self, code: int, by_oom_killer: bool = False) -> None:
        self.code = code  # minus the signal's number
        self.by_oom_killer = by_oom_killer  # the kernel ended it for want of memory

    def words(self) -> str:
        """What a person would say."""
        if self.by_oom_killer:
            return "killed by the kernel: out of memory"
        return f"killed by {signal_name(-self.code)}"


class NotStarted:
    """The command could not become a process (too long, a NUL byte, no such directory)."""

    __slots__ = ("code", "reason")
    kind = "not started"

    def __init__(self, code: int, reason: str) -> None:
        self.code = code  # errno, or 200 where there is none
        self.reason = reason  # one line

    def words(self) -> str:
        """What a person would say."""
        return f"could not start: {self.reason}"


class TimedOut:
    """It was over its time limit and we ended it."""

    __slots__ = ("code", "limit_s")
    kind = "timed out"

    def __init__(self, code: int, limit_s: float) -> None:
        self.code = code or TIMED_OUT_CODE
        self.limit_s = limit_s

    def words(self) -> str:
        """What a person would say."""
        return f"over its time limit of {self.limit_s:g} s"


class Cancelled:
    """We cut it off: an interrupt, fail-fast, a deadline, or its owner asked for it."""

    __slots__ = ("code", "reason")
    kind = "cancelled"

    def __init__(self, code: int, reason: str) -> None:
        self.code = code  # what the shell ended with, usually minus a signal
        self.reason = reason

    def words(self) -> str:
        """What a person would say."""
        return f"cut off: {self.reason}"


class Lost:
    """Its engine or runner is gone, and with it the knowledge how it ended."""

    __slots__ = ("reason",)
    kind = "lost"
    code = LOST_CODE

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def words(self) -> str:
        """What a person would say."""
        return f"lost: {self.reason}"


class Skipped:
    """It was never run: an earlier run had done it, or what it depends on failed."""

    __slots__ = ("code", "reason")
    kind = "skipped"

    def __init__(self, code: int, reason: str) -> None:
        self.code = code  # the old row's exit code
        self.reason = reason

    def words(self) -> str:
        """What a person would say."""
        return f"skipped: {self.reason}"


if TYPE_CHECKING:
    Outcome = Union[Exited, Signalled, NotStarted, TimedOut, Cancelled, Lost, Skipped]

_SIGNAL_NAMES = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS",
    8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE",
    14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # Linux numbers; importing signal for its names costs an engine 6 ms


def signal_name(number: int) -> str:
    """The usual name of a signal, or ``signal N``.

    >>> signal_name(9)
    'SIGKILL'
    """
    return _SIGNAL_NAMES.get(number, f"signal {number}")
