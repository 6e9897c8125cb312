"""A list in a regular file, read lazily: what is not started yet takes no memory."""

from __future__ import annotations

import errno
import os
import stat

from overnight.errors import ListRefused, UsageError
from overnight.formats.taskfile import SHOWN_FINDINGS, ListScan, refusal
from overnight.sources.blocks import LineBlocks, blocks_of
from overnight.sources.changes import Changes
from overnight.sources.lines import KEPT_WHEN_BEGUN, LineItems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overnight.formats.taskfile import Suspicion
    from overnight.model.task import Item, PlainTasks

BLOCK = 1 << 20
SCAN_LIMIT = 256 << 20
"""Lists up to this many bytes are looked through before the first task starts."""

BLOCKS_AHEAD = 4
"""Of a longer list, so many blocks are looked through with each read: about 4 ms, and far
more than the lines that are read then."""


class ListFile:
    """Items of a list file, in its order. The file is held open.

    Attributes:
        name: As the user gave it, for messages.
        total: Tasks, once ``scan`` has seen the whole file.
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
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if stat.S_ISDIR(mode):
            os.close(self._fd)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._is_lenient = is_lenient
        self._items = LineItems(path, is_lenient=is_lenient, warn=warn)
        self._changes = Changes(self._fd, path, warn)
        self._blocks = LineBlocks(self._fd, self._changes)
        self._look: _Look | None = None
        self._plain: PlainTasks | None = None  # tasks the next lines are, each looked at once
        self._plain_at = 0  # the next of those
        self._has_begun = False  # items of it were given

    def scan(self, limit: int = SCAN_LIMIT) -> None:
        """Look the file through for suspicious lines, and count its items.

        A file over the limit is looked through beside its run, ahead of what is read.

        Raises:
            ListRefused: It holds suspicious lines, and reading is not lenient.
        """
        self._look = _Look(self._fd)
        if os.fstat(self._fd).st_size <= limit:
            while not self._look.is_over:
                self._look.go_on()
            self._judge_look(self._look)

    def _look_ahead(self) -> None:
        look = self._look
        if look is None:
            return
        for _ in range(BLOCKS_AHEAD):
            look.go_on()
        if look.is_over or look.findings.first:
            self._judge_look(look)

    def _judge_look(self, look: _Look) -> None:
        self._look = None
        if look.findings.first and not self._is_lenient:
            refused = refusal(self.name, look.findings.first, look.findings.more)
            if self._has_begun:
                refused.kept = KEPT_WHEN_BEGUN
            raise refused
        self.total = look.scan.tasks if look.is_over else None

    def fileno(self) -> None:
        """A file never makes one wait."""

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items, at most ``count``, and whether the list is over.

        Raises:
            ListRefused: The next line is suspicious, or one further on that was met by the
                look ahead, and reading is not lenient.
        """
        self._changes.look()
        self._look_ahead()
        items: list[Item] = []
        plain = self._plain_tasks()
        if plain is not None:
            items.extend(plain.tasks(self._plain_at, self._plain_at + count))
            self._pass_plain(len(items))
        if len(items) < count:
            try:
                items += self._items.take(count - len(items), self._next_line)
            except ListRefused:
                if not items:
                    raise  # else it is said by the next call
        self._has_begun = self._has_begun or bool(items)
        return items, self._is_over and not self._items.is_refused

    def take_plain(self) -> PlainTasks | None:
        """Take the tasks that come next, where the next lines are simply tasks: some thousands.

        Raises:
            ListRefused: As ``read`` does for what the look ahead has met.
        """
        self._changes.look()
        self._look_ahead()
        plain = self._plain_tasks()
        if plain is None:
            return None
        taken = plain.behind(self._plain_at)
        self._pass_plain(len(taken.commands))
        self._has_begun = True
        return taken

    @property
    def has_changed(self) -> bool:
        """Whether the file was seen to be changed since it was opened."""
        return self._changes.was_changed

    def blocks(self) -> Iterator[list[bytes]]:
        """All lines as they are now, without their LF; what is read is not moved by it."""
        return blocks_of(self._fd)

    @property
    def _is_over(self) -> bool:
        return self._items.is_between_lines and self._blocks.is_over

    def _next_line(self) -> bytes | None:
        self._plain = None
        return self._blocks.next_line()

    def _plain_tasks(self) -> PlainTasks | None:
        """The plain tasks that the next lines are part of; those from ``_plain_at`` on are left."""
        if self._plain is not None:
            return self._plain
        if not self._items.is_between_lines or self._items.is_refused:
            return None
        if not self._blocks.fill():
            return None
        plain = self._items.plain_tasks(self._blocks.lines, self._blocks.at)
        self._plain, self._plain_at = (plain, 0) if plain.commands else (None, 0)
        return self._plain

    def _pass_plain(self, count: int) -> None:
        self._blocks.at += count
        self._plain_at += count
        self._items.pass_tasks(count)
        if self._plain is not None and self._plain_at == len(self._plain.commands):
            self._plain = None

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class _Look:
    """A look through a file, a block at a time, apart from where it is read.

    Attributes:
        scan: What it counts.
        findings: What it has found.
        is_over: It has seen the whole file.
    """

    def __init__(self, fd: int) -> None:
        self.scan = ListScan()
        self.findings = _Findings()
        self.is_over = False
        self._fd = fd
        self._at = 0

    def go_on(self) -> None:
        """Look at the next block."""
        if self.is_over:
            return
        block = os.pread(self._fd, BLOCK, self._at)
        self._at += len(block)
        if block:
            self.findings.add(self.scan.feed(block))
        else:
            self.findings.add(self.scan.finish())
            self.is_over = True


class _Findings:
    """Suspicions of a scan: the first few, and how many there are besides."""

    def __init__(self) -> None:
        self.first: list[Suspicion] = []
        self.more = 0

    def add(self, found: Sequence[Suspicion]) -> None:
        room = SHOWN_FINDINGS - len(self.first)
        self.first += found[:room]
        self.more += len(found[room:])
