"""Whether the kernel has ended a process for want of memory since it was last asked."""

from __future__ import annotations

import os
import time

REFRESH_S = 1.0
"""A count older than this is read again before a start, so that a kill seen is recent."""


class OomCounter:
    """The kernel's count of such kills, in the nearest place that keeps one.

    That is the memory cgroup, version 2 or 1, or else the whole machine: another task's
    death at the same time may then be counted for one that somebody ended by SIGKILL.
    """

    def __init__(self) -> None:
        self._path, self._name = _counter()
        self._count = self._read()
        self._read_at = time.monotonic()

    def refresh(self, now: float) -> None:
        """Take what was counted so far for known, if that was not done lately."""
        if now - self._read_at >= REFRESH_S:
            self._count = self._read()
            self._read_at = now

    def has_grown(self) -> bool:
        """Whether there was a kill since the last call of either method."""
        before, self._count = self._count, self._read()
        return self._count > before

    def _read(self) -> int:
        for line in _lines(self._path):
            name, _, value = line.partition(b" ")
            if name == self._name and value.isdigit():
                return int(value)
        return 0


def _counter() -> tuple[str, bytes]:
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.decode("utf-8", "surrogateescape").split(":", 2)
        if not controllers:
            place = f"/sys/fs/cgroup{path}/memory.events"
        elif "memory" in controllers.split(","):
            place = f"/sys/fs/cgroup/memory{path}/memory.oom_control"
        else:
            continue
        if any(each.startswith(b"oom_kill ") for each in _lines(place)):
            return place, b"oom_kill"
    return "/proc/vmstat", b"oom_kill"


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.read(1 << 16) or b"").splitlines()
    except OSError:
        return []


def raise_oom_score(points: int = 300) -> None:
    """Let the kernel prefer this process and what it starts over engine and driver.

    Thousandths of the memory there is, added to what a process uses. Raising needs no
    privilege.
    """
    path = "/proc/self/oom_score_adj"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        score = int(os.read(fd, 32)) + points
        os.pwrite(fd, b"%d" % min(score, 1000), 0)
    except OSError:
        pass  # a sandbox forbids it: tasks then have the engine's score, as without us
    finally:
        os.close(fd)
