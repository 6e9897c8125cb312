"""How a run went so far, in bounded memory."""

from __future__ import annotations

from overnight.core.estimate import Durations
from overnight.core.summary.causes import (
    Causes,
    Named,
    ending,
    last_words,
    named_command,
    named_task,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.report import Report
    from overnight.model.task import PerEngine, Task

MEMORY_FLOOR_KIB = 32 << 10
"""Peak memory from here on is the task's own."""

MEMORY_FLOOR_SHARE = 1.25
"""Less memory than so many times the least of all tasks is what every task has."""

NOTABLE_LIMIT = 5
"""Tasks named as the slowest, and as the largest."""


class Notables:
    """The few tasks with the greatest of some measure, greatest first."""

    __slots__ = ("floor", "ranked")

    def __init__(self) -> None:
        self.floor = 0.0  # what a task must exceed to be among them
        self.ranked: list[tuple[float, Named]] = []

    def add(self, measure: float, task: Task) -> None:
        """Take a task in that exceeds the floor."""
        self.ranked.append((measure, named_task(task)))
        self.ranked.sort(key=lambda entry: -entry[0])
        if len(self.ranked) >= NOTABLE_LIMIT:
            del self.ranked[NOTABLE_LIMIT:]
            self.floor = self.ranked[-1][0]


class Summary:
    """How a run went so far.

    Attributes:
        done: Tasks that ended with 0.
        failed: Tasks that ended otherwise by themselves, were killed, lost or never started.
        cut_off: Tasks that we ended.
        skipped: Tasks an earlier run had settled; not in the counts above.
        skipped_failed: Those of them that had failed there.
        per_engine_failed: Per-engine commands that failed.
        retried: Tasks that took more than one attempt.
        released: Processes left alive by tasks at a normal end.
        without_row: Tasks of the list that no row tells of, or None if that is not known.
        first_started_at, last_finished_at: Of all attempts, Unix seconds; 0 when no task ran.
        pause_s: Of the time between these, what lay between a run and its resume.
        task_s, cpu_s: Time and CPU time of all attempts, as far as known.
        nodes: Names of nodes seen, not more than two of them.
        durations: Of the tasks that ran, by their last attempts: what ``estimate`` reads.
        slowest, largest: By seconds elapsed, and by KiB of peak memory.
        least_kib: The least peak memory of any task, as far as known; 0 if it is not.
        causes: The failures, per-engine commands and cut-off tasks included.
    """

    __slots__ = (
        "causes", "cpu_s", "cut_off", "done", "durations", "failed", "first_started_at",
        "largest", "last_finished_at", "least_kib", "nodes", "pause_s", "per_engine_failed",
        "released", "retried", "skipped", "skipped_failed", "slowest", "task_s", "without_row",
    )

    def __init__(self) -> None:
        self.done = self.failed = self.cut_off = 0
        self.skipped = self.skipped_failed = 0
        self.per_engine_failed = self.retried = self.released = 0
        self.without_row: int | None = None
        self.first_started_at = self.last_finished_at = 0.0
        self.pause_s = self.task_s = self.cpu_s = 0.0
        self.nodes: list[str] = []
        self.durations = Durations()
        self.slowest = Notables()
        self.largest = Notables()
        self.least_kib = 0
        self.causes = Causes()

    def add(self, task: Task, report: Report, node: str) -> None:
        """Count a task that was run, by its last attempt; once a task."""
        elapsed_s = report.elapsed_s
        self.durations.add(elapsed_s)
        self.add_time(report)
        if elapsed_s > self.slowest.floor:
            self.slowest.add(elapsed_s, task)
        if report.max_rss_kib > self.largest.floor:
            self.largest.add(report.max_rss_kib, task)
        if report.max_rss_kib and not 0 < self.least_kib <= report.max_rss_kib:
            self.least_kib = report.max_rss_kib
        if report.attempt > 1:
            self.retried += 1
        if report.left_running:
            self.released += report.left_running
        if node not in self.nodes and len(self.nodes) < 2:
            self.nodes.append(node)
        if report.outcome.code == 0:
            self.done += 1
        else:
            self._add_failure(task, report, node)

    def add_time(self, report: Report) -> None:
        """Count the time of an attempt; of one that was followed by another, that is all."""
        started_at, ended_at = report.started_at, report.started_at + report.elapsed_s
        self.task_s += report.elapsed_s
        self.cpu_s += report.cpu_s
        if started_at < self.first_started_at or not self.last_finished_at:
            self.first_started_at = started_at
        if ended_at > self.last_finished_at:
            self.last_finished_at = ended_at

    def skip(self, code: int = 0, count: int = 1) -> None:
        """Count tasks that an earlier run had settled with this exit code."""
        self.skipped += count
        if code != 0:
            self.skipped_failed += count

    def add_per_engine(self, command: PerEngine, report: Report, node: str) -> None:
        """Count a per-engine command; only its failure is remembered."""
        if report.outcome.code == 0:
            return
        self.per_engine_failed += 1
        words = f"per-engine command, {ending(report)}"
        self.causes.add(words, last_words(report), node, lambda: named_command(command))

    @property
    def settled(self) -> int:
        """Tasks whose fate is known."""
        return self.done + self.failed + self.cut_off + self.skipped

    @property
    def large(self) -> list[tuple[float, Named]]:
        """Those of the largest whose memory was measured, greatest first.

        The kernel counts for each task what its runner had when it started it: about 10 MiB.
        """
        floor = MEMORY_FLOOR_SHARE * self.least_kib
        return [
            (kib, named) for kib, named in self.largest.ranked
            if kib > floor or kib >= MEMORY_FLOOR_KIB
        ]

    @property
    def has_run(self) -> bool:
        """Whether anything was run: a task, or an attempt that is to be followed by another."""
        return self.last_finished_at > 0.0

    @property
    def left(self) -> int | None:
        """Tasks that are to be run yet, those that were cut off included, where that is known."""
        return None if self.without_row is None else self.without_row + self.cut_off

    @property
    def wall_s(self) -> float:
        """From the first start to the last end, less ``pause_s``."""
        return max(0.0, self.last_finished_at - self.first_started_at - self.pause_s)

    def _add_failure(self, task: Task, report: Report, node: str) -> None:
        if report.outcome.kind == "cancelled":
            self.cut_off += 1
        else:
            self.failed += 1
        self.causes.add(ending(report), last_words(report), node, lambda: named_task(task))
