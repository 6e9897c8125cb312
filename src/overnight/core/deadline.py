"""Attempts that the end of an allocation has ended, told from those that failed.

Slurm sends SIGTERM to every process of a step at once: to the tasks, and to the engine.
A task that dies of it has not failed, but its report may come before the engine has seen
its own signal. So a report of an attempt that SIGTERM has ended is held for a moment.
"""

from __future__ import annotations

from overnight.model.outcome import Cancelled, Exited, Signalled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.core.engine_events import Pairs
    from overnight.model.outcome import Outcome

HELD_S = 1.0
"""Signals to one step leave within milliseconds; a machine may be busy."""

NEVER = float("inf")
SIGTERM = 15
SHELLS_WAY = 128
"""What a shell adds to a signal's number when it reports how its child ended."""


class Deadline:
    """Whether an engine was told to end, and reports that wait to know.

    Attributes:
        reason: Of attempts that are cut off.
        wake_at: When ``due`` has something.
    """

    reason = "deadline"

    def __init__(self) -> None:
        self.wake_at = NEVER
        self._has_come = False
        self._held: list[tuple[float, Pairs]] = []

    @property
    def holds(self) -> bool:
        """Whether reports are held."""
        return bool(self._held)

    def sort(self, pairs: Pairs, at: float) -> Pairs:
        """Which of these may be reported now; those that the signal ended say so."""
        if self._has_come:
            return _cut_off(pairs)
        doubtful = [pair for pair in pairs if _is_by_sigterm(pair[1].outcome)]
        if doubtful:
            self._held.append((at + HELD_S, doubtful))
            self.wake_at = self._held[0][0]
        return [pair for pair in pairs if not _is_by_sigterm(pair[1].outcome)]

    def came(self) -> Pairs:
        """The engine was told to end: what was held, as it was meant."""
        self._has_come = True
        held = [pair for _, pairs in self._held for pair in pairs]
        self._held.clear()
        self.wake_at = NEVER
        return _cut_off(held)

    def due(self, at: float) -> Pairs:
        """What has been held long enough: somebody else has ended it."""
        due = [pair for until, pairs in self._held if until <= at for pair in pairs]
        self._held = [each for each in self._held if each[0] > at]
        self.wake_at = self._held[0][0] if self._held else NEVER
        return due


def _is_by_sigterm(outcome: Outcome) -> bool:
    if isinstance(outcome, Signalled):
        return outcome.code == -SIGTERM
    return isinstance(outcome, Exited) and outcome.code == SHELLS_WAY + SIGTERM


def _cut_off(pairs: Pairs) -> Pairs:
    for _, report in pairs:
        outcome = report.outcome
        if isinstance(outcome, Signalled) or _is_by_sigterm(outcome):
            report.outcome = Cancelled(outcome.code, Deadline.reason)
    return pairs
