"""What a task writes: counted, both ends kept, in bounded memory - or kept whole in files.

All pipes share one buffer; what is read there is counted and forgotten.
"""

from __future__ import annotations

import os

from overnight.model.report import SNIPPET_END, Leak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.attempt import Attempt

_BUFFER = bytearray(65536)  # what a pipe holds
BUFFERS = (_BUFFER,)
"""Where a stream is read into, whichever it is."""

FOLDER_SIZE = 1000  # attempts whose files share a folder


class Pipe:
    """One stream of an attempt that comes to us.

    Attributes:
        fd: Where it is read; does not block.
        count: Bytes so far.
        is_open: Something may still come.
    """

    __slots__ = ("_head", "_tail", "count", "fd", "is_open")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.count = 0
        self.is_open = True
        self._head = b""
        self._tail = b""

    def read(self, most: int) -> None:
        """Read what is there, a buffer at a time and so many at most."""
        for _ in range(most):
            try:
                size = os.readv(self.fd, BUFFERS)
            except BlockingIOError:
                return
            if not size:
                self.is_open = False
                return
            self.keep(size)

    def keep(self, size: int) -> None:
        """Count what lies in the shared buffer."""
        self.count += size
        start = SNIPPET_END - len(self._head)
        if start:
            self._head += _BUFFER[:min(start, size)]
        if size - start >= SNIPPET_END:
            self._tail = bytes(_BUFFER[size - SNIPPET_END:size])
        elif size > start:
            self._tail = (self._tail + _BUFFER[start:size])[-SNIPPET_END:]

    def leak(self) -> Leak:
        """What came."""
        return Leak(self.count, bytes(self._head), self._tail)

    def close(self, may_be_written: bool) -> None:
        """Stop reading; who still writes gets SIGPIPE."""
        os.close(self.fd)


class OutputFile:
    """One stream of an attempt that goes to a file of its own, made here.

    It is gone again if it stays empty. The file may be taken away, or its file system may
    fail, while it is written: then less is known of it, and nothing else happens.

    Attributes:
        fd: Always -1: there is nothing to wait for.
        write_fd: Where the child writes; kept open here to look at the file by.
    """

    __slots__ = ("_path", "fd", "write_fd")

    is_open = False

    def __init__(self, path: str) -> None:
        """Make it.

        Raises:
            FileExistsError: There is one, which stays as it is: output of an earlier run.
            OSError: It cannot be made.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self.write_fd = os.open(path, flags, 0o666)
        self.fd = -1
        self._path = path

    @property
    def count(self) -> int:
        """Bytes so far, as far as the file system says."""
        try:
            return os.fstat(self.write_fd).st_size
        except OSError:
            return 0

    def read(self, most: int) -> None:
        """Nothing comes here."""

    def leak(self) -> Leak:
        """Size and both ends of the file as it is now."""
        count = self.count
        tail_at = max(SNIPPET_END, count - SNIPPET_END)
        try:
            head = os.pread(self.write_fd, SNIPPET_END, 0)
            return Leak(count, head, os.pread(self.write_fd, SNIPPET_END, tail_at))
        except OSError:
            return Leak(count)

    def close(self, may_be_written: bool) -> None:
        """Let go of the file, and remove it when it is empty and nobody will fill it."""
        is_empty = not self.count
        try:
            os.close(self.write_fd)
            if is_empty and not may_be_written:
                os.unlink(self._path)
        except OSError:  # contextlib costs a start 2 ms
            pass  # a task tidied its folder away, or the file system has failed


def output_files(folder: str, attempt: Attempt) -> tuple[OutputFile, OutputFile]:
    """Files for an attempt's standard output and error; the folder they lie in is there.

    They have the number of the attempt, or the next that is free: attempts of earlier runs
    have taken theirs, and what they wrote is kept.

    Raises:
        OSError: They cannot be made, and then there is none.
    """
    number = attempt.number
    while True:
        out_path, err_path = output_paths(folder, attempt.task.id, number)
        try:
            return _both(out_path, err_path)
        except FileExistsError:
            number += 1


def _both(out_path: str, err_path: str) -> tuple[OutputFile, OutputFile]:
    out = OutputFile(out_path)
    try:
        return out, OutputFile(err_path)
    except OSError:
        out.close(may_be_written=False)
        raise


def output_paths(folder: str, task_id: int, number: int) -> tuple[str, str]:
    """Names for both streams of an attempt, in a folder for a thousand tasks.

    >>> output_paths("logs", 13042, 2)
    ('logs/13/13042.2.out', 'logs/13/13042.2.err')
    """
    again = f".{number}" if number > 1 else ""
    stem = f"{folder}/{task_id // FOLDER_SIZE}/{task_id}{again}"
    return stem + ".out", stem + ".err"
