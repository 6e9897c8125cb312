"""Writing reports down while no driver listens: whole frames, on disk before they count."""

from __future__ import annotations

import os

from overnight.formats.link import frame
from overnight.model.messages import MAGIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Spool:
    """The first of several files that can be written.

    A file that fails is left at its last whole frame, and the next one is tried; both
    count then.

    Attributes:
        paths: To be tried in this order.
    """

    def __init__(self, notice: Callable[[str, str], None]) -> None:
        """Nothing is made before there is something to write.

        Args:
            notice: Takes level and text for the driver's log.
        """
        self.paths: Sequence[str] = ()
        self._notice = notice
        self._waiting: list[tuple[int, bytes]] = []  # sequence number and frame
        self._written: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self._waiting)

    def add(self, sequence: int, kind: int, payload: bytes) -> None:
        """Have a frame written with the next ``write``."""
        self._waiting.append((sequence, frame(kind, payload)))

    def write(self) -> list[int]:
        """Write all that waits; sequence numbers of what is safe now."""
        waiting = self._waiting
        if not waiting:
            return []
        data = b"".join(each for _, each in waiting)
        for path in self.paths:
            if self._append(path, data):
                self._waiting = []
                return [sequence for sequence, _ in waiting]
        return []

    def _append(self, path: str, data: bytes) -> bool:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            self._notice("WARNING", f"no reports can be kept in {path}: {error.strerror}")
            return False
        end = -1
        try:
            end = os.lseek(fd, 0, os.SEEK_END)
            _write_all(fd, data if end else MAGIC + data)
            os.fsync(fd)
        except OSError as error:
            self._notice("WARNING", f"no reports can be kept in {path}: {error.strerror}")
            self._cut(fd, path, end)
            return False
        finally:
            os.close(fd)
        self._written.add(path)
        return True

    def _cut(self, fd: int, path: str, end: int) -> None:
        """Nothing may follow half a frame: take it back, or never write there again."""
        try:
            if end >= 0:
                os.ftruncate(fd, end)
        except OSError:
            self.paths = [each for each in self.paths if each != path]

    def forget(self) -> None:
        """Remove what was written: a driver has acknowledged all of it."""
        for path in self._written:
            try:
                os.unlink(path)
            except OSError as error:
                self._notice("WARNING", f"{path} could not be removed: {error.strerror}")
        self._written.clear()


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data):]
