"""What is known of an attempt when it is over."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.outcome import Outcome

SNIPPET_END = 40
"""Bytes kept of each end of leaked output."""


class Leak:
    """Output of a task that nobody redirected.

    Attributes:
        count: All bytes that came.
        head: The first 40 of them.
        tail: The last 40 of what followed the first 40.
    """

    __slots__ = ("count", "head", "tail")

    def __init__(self, count: int = 0, head: bytes = b"", tail: bytes = b"") -> None:
        self.count = count
        self.head = head
        self.tail = tail

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Leak):
            return NotImplemented
        return (self.count, self.head, self.tail) == (other.count, other.head, other.tail)

    __hash__ = None  # type: ignore[assignment]  # compared in tests only


NO_LEAK = Leak()


class Report:
    """Attempt, outcome, times, place, leaks and usage: what a record says.

    Attributes:
        task_id: Id of the task, or number of the per-engine command.
        attempt: Number of the attempt, from 1.
        outcome: How it ended.
        pid: Of the process started, -1 if none.
        started_at: Unix seconds.
        elapsed_s: By a clock that is never set back; the end is ``started_at`` plus this.
        out: Leak of standard output.
        err: Leak of standard error.
        cpu_s: User and system time of the process and what it waited for.
        max_rss_kib: Peak resident memory of the largest of these processes.
        slot: Number within its engine, from 0; -1 for per-engine commands.
        late: It came after its task's fate was settled without it.
        left_running: Processes of it that were alive at a normal end and were released.
    """

    __slots__ = (
        "attempt", "cpu_s", "elapsed_s", "err", "late", "left_running", "max_rss_kib", "out",
        "outcome", "pid", "slot", "started_at", "task_id",
    )

    def __init__(
        self, task_id: int, attempt: int, outcome: Outcome, pid: int, started_at: float,
        elapsed_s: float, out: Leak = NO_LEAK, err: Leak = NO_LEAK, cpu_s: float = 0.0,
        max_rss_kib: int = 0, slot: int = -1, late: bool = False, left_running: int = 0,
    ) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.outcome = outcome
        self.pid = pid
        self.started_at = started_at
        self.elapsed_s = elapsed_s
        self.out = out
        self.err = err
        self.cpu_s = cpu_s
        self.max_rss_kib = max_rss_kib
        self.slot = slot
        self.late = late
        self.left_running = left_running
