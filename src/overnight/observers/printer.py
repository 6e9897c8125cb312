"""Each task's output on the screen, whole, when the task ends (``--print``)."""

from __future__ import annotations

import heapq
import os

from overnight.core.effects import BarrierMet, TaskEnded, TaskSkipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.effects import Entry
    from overnight.model.attempt import Attempt

BLOCK = 1 << 16


def output_path(directory: str, task_id: int, attempt: int, ending: str) -> str:
    """Where a stream of an attempt is kept: at most 1,000 tasks a folder.

    >>> output_path("out", 13042, 1, "out"), output_path("out", 13042, 2, "err")
    ('out/13/13042.out', 'out/13/13042.2.err')
    """
    number = "" if attempt == 1 else f".{attempt}"
    return f"{directory}/{task_id // 1000}/{task_id}{number}.{ending}"


class PrintObserver:
    """Copies kept output to two descriptors, in order of completion or of the list."""

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
        self._fds = {"out": out_fd, "err": err_fd}
        self._keeps_order = keeps_order
        self._tags = tags
        self._removes = removes
        self._next_id = 0
        self._held: list[tuple[int, int]] = []  # heap of (task id, attempt; 0 for no output)

    def recorded(self, entries: Sequence[Entry]) -> None:
        """Print what was settled, or hold it until its turn."""
        for entry in entries:
            if type(entry) is TaskEnded:
                if entry.settles:
                    self._end(entry.task.id, entry.report.attempt)
            elif type(entry) is BarrierMet:
                self._end(entry.barrier.id, 0)
            elif type(entry) is TaskSkipped:
                self._end(entry.done.task.id, 0)

    def _end(self, task_id: int, attempt: int) -> None:
        if not self._keeps_order:
            self._print(task_id, attempt)
            return
        heapq.heappush(self._held, (task_id, attempt))
        while self._held and self._held[0][0] <= self._next_id:
            self._next_id = self._held[0][0] + 1
            self._print(*heapq.heappop(self._held))

    def _print(self, task_id: int, attempt: int) -> None:
        if not attempt:
            return
        for ending, fd in self._fds.items():
            path = output_path(self._directory, task_id, attempt, ending)
            try:
                with open(path, "rb") as file:
                    self._copy(file, fd, f"{task_id}\t".encode() if self._tags else b"")
            except FileNotFoundError:
                continue  # an empty stream has no file
            except OSError:
                return  # nobody reads our output any more: the run goes on
            if self._removes:
                os.unlink(path)

    def _copy(self, file: object, fd: int, tag: bytes) -> None:
        if tag:
            for line in file:  # type: ignore[attr-defined]  # an open binary file
                _write(fd, tag + line if line.endswith(b"\n") else tag + line + b"\n")
            return
        while block := file.read(BLOCK):  # type: ignore[attr-defined]
            _write(fd, block)

    def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
        """Nothing to print yet."""

    def told(self, level: str, text: str) -> None:
        """Notices go to the screen's own observer."""

    def turn(self, now: float) -> None:
        """It never wants to be called."""

    def close(self) -> None:
        """Print what still waits for tasks that were never run, and tidy up."""
        while self._held:
            self._print(*heapq.heappop(self._held))
        if self._removes:
            _remove_folders(self._directory)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def _remove_folders(directory: str) -> None:
    """Remove what is empty; output that was not printed stays."""
    try:
        for name in os.listdir(directory):
            os.rmdir(os.path.join(directory, name))
        os.rmdir(directory)
    except OSError:
        return
