"""The thread that makes a file durable while the loop goes on.

fdatasync takes 0.2 to 20 ms and may take seconds on a busy network file system; the
loop must not wait for it. One flush is under way at most; the loop asks for the next.
"""

from __future__ import annotations

import _thread
import errno
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
        """Start the thread: later, when tasks run, a user may have no process left to start.

        Args:
            done: Called in the thread with the request's two numbers and the fault, if any.

        Raises:
            OSError: No thread can be started.
        """
        self._done = done
        self._request = (-1, 0, 0)
        self._is_closed = False
        self._lock = _thread.allocate_lock()
        bell, self._bell = os.pipe()
        try:
            _thread.start_new_thread(self._run, (bell,))
        except RuntimeError as error:
            os.close(bell)
            os.close(self._bell)
            raise OSError(errno.EAGAIN, str(error)) from error

    def flush(self, fd: int, end: int, number: int) -> None:
        """Make the file durable; ``end`` and ``number`` come back through ``done``.

        The caller has heard ``done`` for the request before. That it waits until then
        matters: after a flush that failed, another one of the same descriptor would
        succeed and mean nothing.
        """
        self._request = (fd, end, number)
        os.write(self._bell, b"f")

    def _run(self, bell: int) -> None:
        while os.read(bell, 1):
            fd, end, number = self._request
            fault = None
            try:
                datasync(fd)
            except OSError as error:
                fault = error
            with self._lock:
                if not self._is_closed:
                    self._done(end, number, fault)
        os.close(bell)

    def close(self) -> None:
        """Let the thread end when its present flush is over; ``done`` is not called again."""
        with self._lock:
            self._is_closed = True
        os.close(self._bell)


datasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
"""Make durable what is written to the file of this descriptor, whoever wrote it."""
