"""A list in a regular file, read lazily: what is not started yet takes no memory."""

from __future__ import annotations

import io
import os

from overnight.formats.taskfile import ListScan, refusal
from overnight.sources.lines import LineItems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.model.task import Item

BLOCK = 1 << 20
SCAN_LIMIT = 256 << 20
"""Lists up to this many bytes are looked through before the first task starts."""


class ListFile:
    """Items of a list file, in its order. The file is held open.

    Attributes:
        name: As the user gave it, for messages.
        total: Tasks and barriers, once ``scan`` has seen the whole file.
    """

    def __init__(self, path: str, *, is_lenient: bool, warn: Callable[[str], None]) -> None:
        """Open the list.

        Args:
            path: Of the file.
            is_lenient: Whether suspicious lines are read, with a warning each.
            warn: Told of those that are.

        Raises:
            OSError: It cannot be opened.
        """
        self.name = path
        self.total: int | None = None
        self._file = io.BufferedReader(io.FileIO(path), BLOCK)
        self._is_lenient = is_lenient
        self._warn = warn
        self._items = LineItems(path, is_lenient=is_lenient, warn=warn)
        self._stamp = self._stamp_now()

    def scan(self, limit: int = SCAN_LIMIT) -> None:
        """Look the whole file through for suspicious lines, and count its items.

        A file over the limit is not scanned: its lines are judged as they are read.

        Raises:
            ListRefused: It holds suspicious lines, and reading is not lenient.
        """
        if os.fstat(self._file.fileno()).st_size > limit:
            return
        scan, found = ListScan(), []
        with open(self.name, "rb", buffering=0) as file:
            while block := file.read(BLOCK):
                found += scan.feed(block)
        found += scan.finish()
        if found and not self._is_lenient:
            raise refusal(self.name, found)
        self.total = scan.items

    def fileno(self) -> None:
        """A file never makes one wait."""

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items, at most ``count``, and whether the list is over.

        Raises:
            ListRefused: The next line is suspicious, and reading is not lenient.
        """
        items = self._items.take(count, self._next_line)
        is_over = self._items.is_between_lines and not self._file.peek(1)
        if is_over and self._stamp != self._stamp_now():
            self._warn(f"{self.name} was changed while it was being run: lines that were added"
                       " at its end have run, other changes may not have been seen")
            self._stamp = self._stamp_now()
        return items, is_over and not self._items.is_refused

    def _next_line(self) -> bytes | None:
        return self._file.readline() or None

    def _stamp_now(self) -> tuple[int, int]:
        now = os.fstat(self._file.fileno())
        return now.st_size, now.st_mtime_ns

    def close(self) -> None:
        """Close the file."""
        self._file.close()
