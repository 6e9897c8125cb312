"""Each task's output on the screen, whole, when the task ends (``--print``)."""

from __future__ import annotations

import heapq
import os

from overnight.core.effects import BarrierMet, TaskEnded, TasksSkipped
from overnight.observers.copier import Copier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.effects import Entry
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report

NO_ATTEMPT = 0
"""In the place of an attempt's number where nothing was run."""

ENDINGS = ("out", "err")


def output_path(directory: str, task_id: int, attempt: int, ending: str) -> str:
    """Where a stream of an attempt is kept: at most 1,000 tasks a folder.

    >>> output_path("out", 13042, 1, "out"), output_path("out", 13042, 2, "err")
    ('out/13/13042.out', 'out/13/13042.2.err')
    """
    number = "" if attempt == 1 else f".{attempt}"
    return f"{directory}/{task_id // 1000}/{task_id}{number}.{ending}"


class PrintObserver:
    """Copies kept output to two descriptors, in order of completion or of the list.

    Of a task that was tried again the last attempt's output is shown. Attempts of earlier
    runs may have taken an attempt's number: the engine then took the next that was free, and
    so what was written last is what this attempt wrote.
    """

    def __init__(
        self, directory: str, out_fd: int, err_fd: int, *, keeps_order: bool, tags: bool,
        removes: bool,
    ) -> None:
        """Print what lies in this directory.

        Args:
            directory: Where the engine keeps output.
            out_fd: For standard output of tasks.
            err_fd: For their error output.
            keeps_order: A task waits for those before it in the list.
            tags: The task's id and a TAB stand before each line.
            removes: What was printed is removed: nobody asked for files.
        """
        self._directory = directory
        self._fds = dict(zip(ENDINGS, (out_fd, err_fd), strict=True))
        self._keeps_order = keeps_order
        self._tags = tags
        self._removes = removes
        self._copier = Copier(removes=removes)
        self._next_id = 0
        # A heap of what waits for its turn: first and last task id, attempt, has it written.
        self._held: list[tuple[int, int, int, bool]] = []

    def recorded(self, entries: Sequence[Entry]) -> None:
        """Print what was settled, or hold it until its turn."""
        for entry in entries:
            if type(entry) is TaskEnded:
                if entry.settles:
                    self._end(entry.task.id, entry.report.attempt, _has_written(entry.report))
                elif self._removes:
                    self._drop(entry.task.id, entry.report.attempt)
            elif type(entry) is BarrierMet:
                self._end(entry.barrier.id)
            elif type(entry) is TasksSkipped:
                self._end(entry.done.id, count=entry.done.count)

    def _end(
        self, task_id: int, attempt: int = NO_ATTEMPT, has_written: bool = False, count: int = 1
    ) -> None:
        if not self._keeps_order:
            self._print(task_id, attempt, has_written)
            return
        heapq.heappush(self._held, (task_id, task_id + count - 1, attempt, has_written))
        while self._held and self._held[0][0] <= self._next_id:
            first, last, attempt, has_written = heapq.heappop(self._held)
            self._next_id = max(self._next_id, last + 1)  # a late report may be of any task
            self._print(first, attempt, has_written)

    def _print(self, task_id: int, attempt: int, has_written: bool) -> None:
        if attempt == NO_ATTEMPT or not (has_written or self._removes):
            return
        kept = self._kept(task_id, attempt)
        if kept and has_written:
            shown = max(kept)
            kept.remove(shown)
            self._show(task_id, shown[1])
        if self._removes:
            for _, number in kept:
                self._drop(task_id, number)

    def _kept(self, task_id: int, attempt: int) -> list[tuple[int, int]]:
        """When files of an attempt, or behind its number, were last written, and their number."""
        kept: list[tuple[int, int]] = []
        while written_at := self._written_at(task_id, attempt):
            kept.append((written_at, attempt))
            attempt += 1
        return kept

    def _written_at(self, task_id: int, number: int) -> int:
        """When files of this number were last written; 0 where there is none."""
        return max(_modified_at(output_path(self._directory, task_id, number, ending))
                   for ending in ENDINGS)

    def _show(self, task_id: int, number: int) -> None:
        tag = b"%d\t" % task_id if self._tags else b""
        for ending, fd in self._fds.items():
            self._copier.copy(output_path(self._directory, task_id, number, ending), fd, tag)

    def _drop(self, task_id: int, number: int) -> None:
        for ending in ENDINGS:
            self._copier.drop(output_path(self._directory, task_id, number, ending))

    def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
        """Nothing to print yet."""

    def told(self, level: str, text: str) -> None:
        """Notices go to the screen's own observer."""

    def turn(self, now: float) -> None:
        """It never wants to be called."""

    def close(self) -> None:
        """Print what still waits for tasks that were never run, and tidy up."""
        while self._held:
            first, _, attempt, has_written = heapq.heappop(self._held)
            self._print(first, attempt, has_written)
        self._copier.finish()
        if self._removes:
            _remove_empty_folders(self._directory)


def _has_written(report: Report) -> bool:
    return bool(report.out.count or report.err.count)


def _modified_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _remove_empty_folders(directory: str) -> None:
    """Remove the folders of kept output; what was not printed stays, in its folder."""
    try:
        folders = [os.path.join(directory, name) for name in os.listdir(directory)]
    except OSError:
        return
    for folder in [*folders, directory]:
        try:
            os.rmdir(folder)
        except OSError:
            continue  # not empty
