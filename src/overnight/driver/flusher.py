"""The thread that makes a file durable while the loop goes on.

fdatasync takes 0.2 to 20 ms and may take seconds on a busy network file system; the
loop must not wait for it. One flush is under way at most; the loop asks for the next.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Done = Callable[[int, int, OSError | None], None]


class Flusher:
    """Flushes what it is asked to, one request at a time, in a thread of its own.

    The documented low-level ``_thread`` serves: importing ``threading`` would cost a
    short run more than its task.
    """

    def __init__(self, done: Done) -> None:
        """Start nothing yet.

        Args:
            done: Called in the thread with the request's two numbers and the fault, if any.
        """
        self._done = done
        self._request: tuple[int, int, int] | None = None
        self._bell: tuple[int, int] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a flush is under way."""
        return self._request is not None

    def flush(self, fd: int, end: int, number: int) -> None:
        """Make the file durable; ``end`` and ``number`` come back through ``done``.

        The caller must not have one under way.
        """
        if self._bell is None:
            self._bell = os.pipe()
            _thread.start_new_thread(self._run, (self._bell[0],))
        self._request = (fd, end, number)
        os.write(self._bell[1], b"f")

    def _run(self, bell: int) -> None:
        while os.read(bell, 1):
            request = self._request
            if request is None:
                continue
            fd, end, number = request
            fault = None
            try:
                _datasync(fd)
            except OSError as error:
                fault = error
            self._request = None
            self._done(end, number, fault)
        os.close(bell)

    def close(self) -> None:
        """Let the thread end when its present flush is over."""
        if self._bell is not None:
            os.close(self._bell[1])
            self._bell = None


_datasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
