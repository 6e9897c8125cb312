"""Shows how far a run is, and holds its summary for the end."""

from __future__ import annotations

from overnight.core.effects import CommandEnded, TaskEnded, TasksSkipped
from overnight.core.summary import Summary
from overnight.core.summary.causes import ending, last_words
from overnight.core.summary.warned import Warned
from overnight.model.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.core.effects import Entry
    from overnight.core.scheduler import Scheduler
    from overnight.model.attempt import Attempt
    from overnight.ports import Screen

SHOW_EVERY_S = 0.25
RATE_OVER_S = 10.0


class ProgressObserver:
    """Feeds a screen and a summary.

    Attributes:
        summary: Of everything recorded so far.
        warned: What was warned of so far.
    """

    def __init__(
        self, scheduler: Scheduler, screen: Screen | None, total: Callable[[], int | None]
    ) -> None:
        """Show nothing yet.

        Args:
            scheduler: Whose counts are shown.
            screen: Where; None only sums up.
            total: Tasks in the list, once that is known.
        """
        self.summary = Summary()
        self.warned = Warned()
        self._scheduler = scheduler
        self._screen = screen
        self._total = total
        self._started_at: float | None = None
        self._shown_at = 0.0
        self._last_failure = ""
        self._marks: list[tuple[float, int, float]] = []  # (time, tasks ended, their seconds)
        self._task_s = 0.0
        self._given_at: dict[int, float] = {}  # live tasks: when an engine got them
        self._now = 0.0

    def recorded(self, entries: Sequence[Entry]) -> None:
        """Sum up what was written."""
        for entry in entries:
            if type(entry) is TaskEnded:
                self._given_at.pop(entry.task.id, None)
                if entry.settles:
                    self._task_ended(entry)
                else:
                    self.summary.add_time(entry.report)
                    self._task_s += entry.report.elapsed_s
            elif type(entry) is TasksSkipped:
                self.summary.skip(entry.done.code, entry.done.count)
            elif type(entry) is CommandEnded:
                self.summary.add_per_engine(entry.command, entry.report, entry.node)

    def _task_ended(self, entry: TaskEnded) -> None:
        report = entry.report
        self._task_s += report.elapsed_s
        self.summary.add(entry.task, report, entry.node)
        if report.outcome.code != 0:
            words = last_words(report)
            self._last_failure = f"task {entry.task.id} (line {entry.task.line}): " \
                                 f"{ending(report)}" + (f": {words}" if words else "")

    def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
        """Remember since when, for the ages of what runs."""
        if self._screen is not None:
            for attempt in attempts:
                self._given_at[attempt.task.id] = self._now

    def told(self, level: str, text: str) -> None:
        """Notices for a person stand above the block; warnings are kept for the end too."""
        if level in ("warning", "error"):
            self.warned.add(text)
        if self._screen is not None and level != "info":
            self._screen.say(text)

    def turn(self, now: float) -> float | None:
        """Show how far the run is, a few times a second at most."""
        self._now = now
        if self._started_at is None:
            self._started_at = now
        if self._screen is None:
            return None
        if now - self._shown_at >= SHOW_EVERY_S:
            self._shown_at = now
            self._screen.show(self.progress(now))
        return self._shown_at + max(SHOW_EVERY_S, 1.0 if self._is_calm else 0.0)

    @property
    def _is_calm(self) -> bool:
        """Nothing has ended lately: only the clock would move."""
        return len(self._marks) > 1 and self._marks[-1][1] == self._marks[-2][1]

    def progress(self, now: float) -> Progress:
        """How far the run is."""
        scheduler = self._scheduler
        counts = scheduler.counts
        running = sum(min(len(engine.held), engine.slots) for engine in scheduler.pool)
        progress = Progress(
            self._total(), counts.done,
            counts.failed + counts.cut, counts.skipped, running, self._started_at or now, now,
            self._rate(now, counts.done + counts.failed), scheduler.pool.slots,
            scheduler.barrier_line, self._last_failure, retry_count=len(scheduler.waiting),
        )
        progress.range_text = self._range_text(progress, running)
        return progress

    def _range_text(self, progress: Progress, running: int) -> str:
        from overnight.core.estimate import range_text, time_left

        if progress.total is None or not progress.slots:
            return ""
        left = max(0, progress.total - progress.settled - running)
        oldest = sorted(self._given_at.values())[: progress.slots]
        ages = [progress.now - given_at for given_at in oldest]
        busy = self._busy_share(progress.slots)
        return range_text(time_left(self.summary.durations, left, ages, progress.slots, busy))

    def _rate(self, now: float, ended: int) -> float:
        marks = self._marks
        marks.append((now, ended, self._task_s))
        while len(marks) > 2 and marks[0][0] < now - RATE_OVER_S:
            marks.pop(0)
        (first_at, first, _), (last_at, last, _) = marks[0], marks[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0

    def _busy_share(self, slots: int) -> float:
        """Share of the slots' time, of late, in which a task ran."""
        (first_at, first, first_s), (last_at, last, last_s) = self._marks[0], self._marks[-1]
        if last == first or last_at <= first_at:
            return 1.0
        return min(1.0, (last_s - first_s) / (slots * (last_at - first_at)))

    def close(self) -> None:
        """Leave the screen."""
        if self._screen is not None:
            self._screen.close()
