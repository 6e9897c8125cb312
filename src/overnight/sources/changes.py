"""Whether a list is still what it was when its run began."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Changes:
    """Watches a list that is held open, and tells of each kind of change once.

    Attributes:
        was_changed: The file is not what it was when the run began.
    """

    def __init__(self, fd: int, name: str, warn: Callable[[str], None]) -> None:
        """Remember the list as it is now.

        Args:
            fd: The list, held open.
            name: Its path.
            warn: Told what a change means.
        """
        self._fd = fd
        self._name = name
        self._warn = warn
        self._before = os.fstat(fd)
        self.was_changed = False
        self._was_replaced = False

    def look(self) -> None:
        """Tell what has happened since, if it was not told before."""
        now = os.fstat(self._fd)
        if not self.was_changed and _stamp(now) != _stamp(self._before):
            self.was_changed = True
            self._warn(f"{self._name} was changed while it is being run: lines that are added"
                       " at its end are run too, other changes may not be seen")
        if not self._was_replaced and self._has_other_file():
            self._was_replaced = True
            self._warn(f"{self._name} is another file now: the run goes on with the lines of"
                       " the one it began with")

    def _has_other_file(self) -> bool:
        try:
            there = os.stat(self._name)
        except OSError:
            return False  # removed, as scripts do with lists they made
        return (there.st_dev, there.st_ino) != (self._before.st_dev, self._before.st_ino)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
