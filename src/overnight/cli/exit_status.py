"""What the exit statuses mean. Listed in docs/reference/exit-statuses.md."""

from __future__ import annotations

from overnight.core import verdict as v

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.core.verdict import Verdict

OK = 0
FAILED = 1
USAGE = 2
TASKS_LEFT = 3
NO_RECORD = 4
BY_SIGNAL = 128  # plus the signal's number


def compatible_status(verdict: Verdict, *, counts_failures: bool) -> int:
    """Exit status of ``disBatch``.

    Args:
        verdict: How the run ended.
        counts_failures: ``-e`` was given.
    """
    if verdict.signal and verdict.ending != v.NO_RECORD:
        return BY_SIGNAL + verdict.signal
    if verdict.ending in (v.REFUSED, v.FAIL_FAST, v.MAX_FAILURES, v.NO_RESOURCES, v.NO_RECORD):
        return FAILED
    if verdict.ending == v.STOPPED and verdict.has_tasks_left:
        return FAILED
    return FAILED if counts_failures and verdict.has_failures else OK


def own_status(verdict: Verdict) -> int:
    """Exit status of ``overnight run``."""
    if verdict.ending == v.NO_RECORD:
        return NO_RECORD
    if verdict.ending in (v.REFUSED, v.FAIL_FAST, v.MAX_FAILURES, v.CHECK_FAILED):
        return FAILED
    if verdict.has_tasks_left:
        return TASKS_LEFT
    return FAILED if verdict.has_failures else OK
