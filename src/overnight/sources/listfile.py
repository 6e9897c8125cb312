"""A list in a regular file, read lazily: what is not started yet takes no memory."""

from __future__ import annotations

import io
import os
import stat

from overnight.errors import UsageError
from overnight.formats.taskfile import SHOWN_FINDINGS, ListScan, refusal
from overnight.sources.changes import Changes
from overnight.sources.lines import LineItems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.formats.taskfile import Suspicion
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
            UsageError: It is no regular file: looking it through would use it up.
        """
        self.name = path
        self.total: int | None = None
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a directory has its own error
            raise UsageError(f"{path} is no regular file, it can only be read as a stream",
                             kept="nothing was started", do="pipe it in, and name - as the list")
        self._file = io.BufferedReader(io.FileIO(path), BLOCK)
        self._is_lenient = is_lenient
        self._items = LineItems(path, is_lenient=is_lenient, warn=warn)
        self._changes = Changes(self._file.fileno(), path, warn)

    def scan(self, limit: int = SCAN_LIMIT) -> None:
        """Look the whole file through for suspicious lines, and count its items.

        A file over the limit is not scanned: its lines are judged as they are read.

        Raises:
            ListRefused: It holds suspicious lines, and reading is not lenient.
        """
        fd = self._file.fileno()
        if os.fstat(fd).st_size > limit:
            return
        scan = ListScan()
        findings = _Findings()
        at = 0
        while block := os.pread(fd, BLOCK, at):
            at += len(block)
            findings.add(scan.feed(block))
        findings.add(scan.finish())
        if findings.first and not self._is_lenient:
            raise refusal(self.name, findings.first, findings.more)
        self.total = scan.items

    def fileno(self) -> None:
        """A file never makes one wait."""

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items, at most ``count``, and whether the list is over.

        Raises:
            ListRefused: The next line is suspicious, and reading is not lenient.
        """
        self._changes.look()
        items = self._items.take(count, self._next_line)
        is_over = self._items.is_between_lines and not self._file.peek(1)
        return items, is_over and not self._items.is_refused

    def _next_line(self) -> bytes | None:
        return self._file.readline() or None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Findings:
    """Suspicions of a scan: the first few, and how many there are besides."""

    def __init__(self) -> None:
        self.first: list[Suspicion] = []
        self.more = 0

    def add(self, found: Sequence[Suspicion]) -> None:
        room = SHOWN_FINDINGS - len(self.first)
        self.first += found[:room]
        self.more += len(found[room:])
