"""A thread that copies files to descriptors.

A pager that nobody scrolls, or a terminal stopped with Ctrl-S, holds up who writes to it.
That must not be the loop: a run would stand still until somebody comes. What waits to be
shown lies on disk, so any number of files can wait for such a reader.
"""

from __future__ import annotations

import _thread
import os
import select
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

BLOCK = 1 << 16
NOWHERE = -1


class Copier:
    """Copies whole files, one after the other, in the order they were given.

    A descriptor whose reader has gone gets nothing more. Files that were not shown stay.
    """

    def __init__(self, *, removes: bool) -> None:
        """Start the thread.

        Args:
            removes: A file that was shown whole is removed.
        """
        self._removes = removes
        self._waiting: deque[tuple[str, int, bytes]] = deque()
        self._gone: set[int] = set()
        bell, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        self._is_over = _thread.allocate_lock()
        self._is_over.acquire()
        _thread.start_new_thread(self._run, (bell,))

    def copy(self, path: str, fd: int, tag: bytes = b"") -> None:
        """Show a file, if there is one, with a tag before each of its lines."""
        self._give(path, fd, tag)

    def drop(self, path: str) -> None:
        """Remove a file, if there is one, that nobody wants to see."""
        self._give(path, NOWHERE, b"")

    def _give(self, path: str, fd: int, tag: bytes) -> None:
        self._waiting.append((path, fd, tag))
        try:
            os.write(self._bell, b"f")
        except BlockingIOError:
            return  # the bell is full: it rings anyway

    def finish(self) -> None:
        """Wait until all that was given has been copied, and end the thread."""
        os.close(self._bell)
        self._is_over.acquire()

    def _run(self, bell: int) -> None:
        has_more = True
        while has_more:
            has_more = bool(os.read(bell, 4096))
            while self._waiting:
                path, fd, tag = self._waiting.popleft()
                if fd == NOWHERE or (self._copy(path, fd, tag) and self._removes):
                    _remove(path)
        os.close(bell)
        self._is_over.release()

    def _copy(self, path: str, fd: int, tag: bytes) -> bool:
        """Whether the file was there and was shown whole."""
        try:
            with open(path, "rb") as file:
                pieces = _tagged(file, tag) if tag else iter(lambda: file.read(BLOCK), b"")
                return all(self._write(fd, piece) for piece in pieces)
        except OSError:
            return False  # an empty stream has no file; one that cannot be read stays

    def _write(self, fd: int, data: bytes) -> bool:
        if fd in self._gone:
            return False
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(fd, view):]
            except BlockingIOError:  # somebody else made it non-blocking
                _wait_for_room(fd)
            except OSError:
                self._gone.add(fd)
                return False
        return True


def _tagged(file: BinaryIO, tag: bytes) -> Iterator[bytes]:
    for line in file:
        yield tag + line if line.endswith(b"\n") else tag + line + b"\n"


def _wait_for_room(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    poll.poll()


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
