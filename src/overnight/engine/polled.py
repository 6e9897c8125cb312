"""A link in an epoll set: watched for reading, and for writing while something waits."""

from __future__ import annotations

import select
from select import EPOLLIN, EPOLLOUT

from overnight.net.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from select import epoll


class PolledLink(Link):
    """A link whose descriptors are in a set from its beginning to its end."""

    __slots__ = ("_is_writing", "_poll")

    def __init__(self, poll: epoll, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        self._poll = poll
        self._is_writing = False
        poll.register(read_fd, EPOLLIN)

    def push(self) -> None:
        """Write what goes, and be called again when more does."""
        self.flush()
        if self._is_writing != self.wants_write and not self.closed:
            self._is_writing = self.wants_write
            self._watch_writing()

    def _watch_writing(self) -> None:
        if self.write_fd == self.read_fd:
            mask = EPOLLIN | EPOLLOUT if self._is_writing else EPOLLIN
            self._poll.modify(self.read_fd, mask)
        elif self._is_writing:
            self._poll.register(self.write_fd, EPOLLOUT)
        else:
            self._poll.unregister(self.write_fd)

    def push_all(self, within_s: float) -> None:
        """Write what waits, waiting for the other side for so long at most."""
        self.flush()
        while self.wants_write and not self.closed:
            if not select.select((), (self.write_fd,), (), within_s)[1]:
                return
            self.flush()

    def close(self) -> None:
        """Close both descriptors; what was not flushed is lost."""
        self._unwatch()
        super().close()

    def _unwatch(self) -> None:
        # A copy of a descriptor that a child between vfork and exec holds would keep it in
        # the set, and its number may come back as another's.
        self._poll.unregister(self.read_fd)
        if self._is_writing and self.write_fd != self.read_fd:
            self._poll.unregister(self.write_fd)
