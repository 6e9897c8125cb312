"""How a runner learns that a child has ended: a pidfd for each, or SIGCHLD where there is none."""

from __future__ import annotations

import os
from _signal import set_wakeup_fd, signal  # type: ignore[import-not-found]  # not in typeshed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from select import epoll

    from overnight.engine.starter import Running

SIGCHLD = 17
EPOLLIN = 1


class PidfdExits:
    """One descriptor a child; readable when it has ended. Linux 5.3, Python 3.9."""

    def __init__(self, poll: epoll) -> None:
        self._register = poll.register
        self._unregister = poll.unregister
        self._watched: dict[int, Running] = {}  # by pidfd

    def watch(self, running: Running) -> None:
        """Learn of this child's end."""
        fd = os.pidfd_open(running.pid)
        self._watched[fd] = running
        self._register(fd, EPOLLIN)

    def ended(self, fd: int) -> tuple[Running, ...] | None:
        """Who has ended, when ``fd`` is readable; None when it is not one of these."""
        running = self._watched.pop(fd, None)
        if running is None:
            return None
        # Unregistered first: right after vfork the child may hold a copy of the
        # descriptor for a moment, and the kernel would go on reporting it.
        self._unregister(fd)
        os.close(fd)
        return (running,)


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

    def ended(self, fd: int) -> tuple[Running, ...] | None:
        """Who has ended, when ``fd`` is readable; None when it is not one of these."""
        if fd != self._read:
            return None
        os.read(fd, 4096)
        return tuple(self._watched.pop(pid) for pid in list(self._watched) if _has_ended(pid))


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
