"""How far a run is, at one moment, for a screen."""

from __future__ import annotations


class Progress:
    """What a screen shows of a run: plain numbers and words, made afresh for each look.

    Attributes:
        total: Tasks in the list, or None where it has no known end (a stream).
        done: Tasks that ended with 0.
        failed: Tasks that ended otherwise, cut-off ones included.
        skipped: Tasks an earlier run had done.
        running: Attempts in slots now, or None where that is not known.
        started_at: Start of the run, Unix seconds.
        now: Moment of this look, same clock.
        rate: Tasks that ended per second, lately.
        slots: Open slots; means nothing where ``running`` is not known.
        barrier_line: Line of the barrier that is waited for, or None.
        last_failure: The latest failure and its last words, or empty.
        range_text: What is left, as ``estimate.range_text`` says it, or empty.
        retry_count: Tasks that failed and wait to be tried again.
    """

    __slots__ = (
        "barrier_line", "done", "failed", "last_failure", "now", "range_text", "rate",
        "retry_count", "running", "skipped", "slots", "started_at", "total",
    )

    def __init__(
        self, total: int | None, done: int, failed: int, skipped: int, running: int | None,
        started_at: float, now: float, rate: float, slots: int,
        barrier_line: int | None = None, last_failure: str = "", range_text: str = "",
        retry_count: int = 0,
    ) -> None:
        self.total = total
        self.done = done
        self.failed = failed
        self.skipped = skipped
        self.running = running
        self.started_at = started_at
        self.now = now
        self.rate = rate
        self.slots = slots
        self.barrier_line = barrier_line
        self.last_failure = last_failure
        self.range_text = range_text
        self.retry_count = retry_count

    @property
    def settled(self) -> int:
        """Tasks whose fate is known."""
        return self.done + self.failed + self.skipped

    @property
    def elapsed_s(self) -> float:
        """Since the start, never negative (a clock may be set back)."""
        return max(0.0, self.now - self.started_at)
