"""How a run ended, as a value. Exit statuses are made of it by the command line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.errors import OvernightError

COMPLETE = "complete"
CHECK_FAILED = "check failed"
FAIL_FAST = "fail-fast"
MAX_FAILURES = "max-failures"
STOPPED = "stopped"
REFUSED = "refused"
NO_RESOURCES = "no resources"
NO_RECORD = "no record"


class Verdict:
    """How a run ended.

    Attributes:
        ending: One of the constants of this module.
        has_failures: A task, a per-engine command, or a skipped task's old row failed.
        has_tasks_left: Something of the list was neither run now nor before.
        reason: More about the ending, for a person; may be empty.
        signal: The signal that ended it, 0 if none.
        error: What was found in the list, where that ended it.
    """

    __slots__ = ("ending", "error", "has_failures", "has_tasks_left", "reason", "signal")

    def __init__(
        self, ending: str, has_failures: bool, has_tasks_left: bool, reason: str = "",
        signal: int = 0, error: OvernightError | None = None,
    ) -> None:
        self.ending = ending
        self.has_failures = has_failures
        self.has_tasks_left = has_tasks_left
        self.reason = reason
        self.signal = signal
        self.error = error
