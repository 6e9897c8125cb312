"""How a runner learns that a child has ended where the kernel has no pidfd (before 5.3)."""

from __future__ import annotations

import os
from _signal import set_wakeup_fd, signal  # type: ignore[import-not-found]  # not in typeshed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from select import epoll

    from overnight.engine.running import Running

SIGCHLD = 17
EPOLLIN = 1


class SignalExits:
    """One descriptor for all: SIGCHLD writes to it, then each child is asked."""

    def __init__(self, poll: epoll) -> None:
        self._watched: dict[int, Running] = {}  # by pid
        self._read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        poll.register(self._read, EPOLLIN)
        signal(SIGCHLD, lambda *_: None)  # without a handler nothing is written
        set_wakeup_fd(write, warn_on_full_buffer=False)

    def watch(self, running: Running) -> None:
        """Learn of this child's end."""
        self._watched[running.pid] = running

    def ended(self, fd: int) -> list[Running]:
        """Who has ended, when ``fd`` is readable."""
        if fd != self._read:
            return []
        os.read(fd, 4096)
        return [self._watched.pop(pid) for pid in list(self._watched) if _has_ended(pid)]


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
