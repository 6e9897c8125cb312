"""A file that only grows, and is never torn by us in the middle.

*Written*: the file system has it; it survives all our processes. *Durable*: fdatasync
has returned; it survives the machine. What is not durable yet is kept here, so that
it can be written again when a flush failed: after a failed fsync the kernel may have
dropped pages and marked them clean.

A short write (a full disk gives one without an error) is finished at its own offset;
nothing is ever appended behind a torn row.
"""

from __future__ import annotations

import os

TAIL_SIZE = 256


class AppendFile:
    """Bytes waiting for a file, and how far the file has them.

    Attributes:
        path: Of the file; opened again there after a fault.
        durable_end: The file is durable up to this offset.
        written_end: The file system has taken everything up to this offset.
        lost_size: Bytes that had been durable and were taken away by somebody.
    """

    def __init__(self, path: str, fd: int, end: int) -> None:
        """Append to a file.

        Args:
            path: Where it lies.
            fd: Open for writing, not in append mode; owned by this object from now on.
            end: Its size: what is before it is taken as durable.
        """
        self.path = path
        self._fd = fd
        self.durable_end = end
        self.written_end = end
        self.lost_size = 0
        self._kept = bytearray()  # from durable_end on
        self._tail = b""  # what we last put before durable_end: nobody else's file has it there

    @property
    def fd(self) -> int:
        """For flushing in a helper thread; changes when the file is opened again."""
        return self._fd

    @property
    def end(self) -> int:
        """Where the file will end when everything is written."""
        return self.durable_end + len(self._kept)

    @property
    def undurable_size(self) -> int:
        """Bytes kept because a machine's loss would lose them."""
        return len(self._kept)

    def append(self, data: bytes) -> None:
        """Add bytes; ``write`` gives them to the file system."""
        self._kept += data

    def write(self) -> None:
        """Give everything to the file system.

        Raises:
            OSError: It did not take it all. What it took stays taken; call again.
        """
        if self.written_end < self.end and os.fstat(self._fd).st_size < self.written_end:
            raise OSError(f"{self.path} was cut")  # writing behind its end would leave a hole
        while self.written_end < self.end:
            start = self.written_end - self.durable_end
            self.written_end += os.pwrite(self._fd, self._kept[start:], self.written_end)

    def became_durable(self, end: int) -> None:
        """Everything before this offset has been flushed; it need not be kept."""
        if end > self.durable_end:
            self._tail = bytes(self._kept[: end - self.durable_end][-TAIL_SIZE:])
            del self._kept[: end - self.durable_end]
            self.durable_end = end

    def reopen(self) -> None:
        """Open the file anew and take nothing behind ``durable_end`` for written.

        A file that was removed is put back as it was. One that somebody has cut, or put there
        in its place, is gone on with at its end: nothing of theirs is overwritten.

        Raises:
            OSError: It cannot be opened.
        """
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self._put_back()
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        size = os.fstat(fd).st_size
        tail_at = self.durable_end - len(self._tail)
        if size >= self.durable_end and os.pread(fd, len(self._tail), tail_at) == self._tail:
            self._go_on_with(fd, self.durable_end)
            return
        self.lost_size += self.durable_end
        if size and os.pread(fd, 1, size - 1) != b"\n":
            self._kept[:0] = b"\n"
        self._tail = b""
        self._go_on_with(fd, size)

    @property
    def is_displaced(self) -> bool:
        """Whether its path leads to another file now, or to none."""
        try:
            there = os.stat(self.path)
        except OSError:
            return True
        here = os.fstat(self._fd)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _put_back(self) -> None:
        """Copy what was durable from the removed file, which lives as long as it is open."""
        draft = f"{self.path}.{os.getpid()}"
        with open(f"/proc/self/fd/{self._fd}", "rb") as old, open(draft, "xb") as new:
            left = self.durable_end
            while left and (block := old.read(min(left, 1 << 20))):
                new.write(block)
                left -= len(block)
            new.flush()
            os.fsync(new.fileno())
        os.rename(draft, self.path)

    def reopen_or_begin(self) -> None:
        """The same for a file that may have been removed or cut: it goes on where it ends.

        Raises:
            OSError: It can be neither opened nor made.
        """
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._go_on_with(fd, min(self.durable_end, os.fstat(fd).st_size))

    def _go_on_with(self, fd: int, end: int) -> None:
        _close(self._fd)
        self._fd = fd
        self.durable_end = self.written_end = end

    def close(self) -> None:
        """Close the file; what was not written is lost with this object.

        A line that the file system took in part is taken back, where that can be done: only
        a crash leaves a torn one.
        """
        taken = self._kept[: self.written_end - self.durable_end]
        torn = len(taken) - (taken.rfind(b"\n") + 1)
        if torn and self.written_end < self.end:
            _cut(self._fd, self.written_end, torn)
        _close(self._fd)


def create(path: str) -> AppendFile:
    """A new file, 0644 less umask.

    Raises:
        FileExistsError: Something lies there already; it is untouched.
        OSError: It cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return AppendFile(path, os.open(path, flags, 0o644), 0)


def continue_file(path: str) -> AppendFile:
    """An existing file, to go on at its end; made if it is missing.

    Raises:
        OSError: It cannot be opened.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    return AppendFile(path, fd, os.fstat(fd).st_size)


def _cut(fd: int, end: int, size: int) -> None:
    """Take the last bytes of a file back, if it ends there: rows written earlier may follow."""
    try:
        if os.fstat(fd).st_size == end:
            os.ftruncate(fd, end - size)
    except OSError:
        return  # whoever goes on in this file closes the torn line


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        # The descriptor is gone all the same. What a file system may complain of here are
        # writes that no flush has confirmed: they are kept, or nobody was told of them.
        return
