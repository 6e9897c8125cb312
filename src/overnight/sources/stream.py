"""A live stream of task lines: a line that arrives is an item at once."""

from __future__ import annotations

import os
import select
from collections import deque

from overnight.sources.lines import LineItems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.model.task import Item

READ_SIZE = 1 << 16


class Stream:
    """Items of a stream, in the order in which their lines arrive.

    The descriptor is never made non-blocking: standard input is often shared with the
    user's shell, which would then find its terminal broken. It is read only when it has
    something.
    """

    total: int | None = None  # nobody knows how much will come

    def __init__(
        self, fd: int, name: str, *, is_lenient: bool, warn: Callable[[str], None],
        owns: bool = False,
    ) -> None:
        """Read from a descriptor.

        Args:
            fd: A pipe, a terminal, a file.
            name: For messages.
            is_lenient: Whether suspicious lines are read, with a warning each.
            warn: Told of those that are.
            owns: It is closed with the stream; otherwise it stays its owner's.
        """
        self._fd = fd
        self._owns = owns
        self._items = LineItems(name, is_lenient=is_lenient, warn=warn)
        self._lines: deque[bytes] = deque()
        self._unfinished: list[bytes] = []
        self._has_ended = False

    def fileno(self) -> int:
        """To be waited for when ``read`` gave nothing."""
        return self._fd

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """What has arrived, at most ``count`` items, and whether that was the end.

        Raises:
            ListRefused: The next line is suspicious, and reading is not lenient.
        """
        items = self._items.take(count, self._next_line)
        is_over = self._has_ended and not self._lines and self._items.is_between_lines
        return items, is_over and not self._items.is_refused

    def _next_line(self) -> bytes | None:
        while not self._lines and not self._has_ended and _has_data(self._fd):
            try:
                self._receive(os.read(self._fd, READ_SIZE))
            except BlockingIOError:  # whoever else reads here was quicker
                break
        return self._lines.popleft() if self._lines else None

    def _receive(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._unfinished.append(first)
        for line in others:
            self._lines.append(b"".join(self._unfinished))
            self._unfinished = [line]
        if not data:
            self._has_ended = True
            last = b"".join(self._unfinished)
            if last:
                self._lines.append(last)

    def close(self) -> None:
        """Nothing more will be read."""
        if self._owns:
            os.close(self._fd)


def open_stream(path: str, *, is_lenient: bool, warn: Callable[[str], None]) -> Stream:
    """A list that can be read once: a named pipe, what a shell makes of ``<(command)``.

    Raises:
        OSError: It cannot be opened.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return Stream(fd, path, is_lenient=is_lenient, warn=warn, owns=True)


def _has_data(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
