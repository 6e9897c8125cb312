"""The processes below one: who they are, their own CPU time and their share of memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine import TICK_S

PROC = Path("/proc")


def parents() -> dict[int, int]:
    """The parent of every process of the machine, by process id."""
    found = {}
    for entry in os.listdir(PROC):
        if entry.isdigit():
            stat = read(int(entry), "stat")
            if stat:
                # The name stands in brackets and may itself hold blanks and brackets.
                found[int(entry)] = int(stat.rpartition(b")")[2].split()[1])
    return found


def descendants(root: int) -> list[int]:
    """All processes below ``root``, parents before their children, without ``root``."""
    return below(root, parents())


def below(root: int, parent_of: Mapping[int, int]) -> list[int]:
    """The descendants of ``root`` among these processes, parents before their children.

    >>> below(1, {2: 1, 3: 2, 4: 1, 6: 5})
    [2, 4, 3]
    """
    children: dict[int, list[int]] = {}
    for pid, parent in sorted(parent_of.items()):
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        next_ones = children.get(waiting.pop(0), [])
        found += next_ones
        waiting += next_ones
    return found


def read(pid: int, name: str) -> bytes:
    """A file of /proc/PID, or b'' when the process is gone."""
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def kill_all(pids: list[int]) -> None:
    """End these processes at once; one that is gone already is passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def pss_kib(pid: int) -> int:
    """Proportional set size: shared pages are counted by the share of each user of them."""
    return field_kib(read(pid, "smaps_rollup"), b"Pss:")


def peak_rss_kib(pid: int) -> int:
    """The most memory this process has had resident so far."""
    return field_kib(read(pid, "status"), b"VmHWM:")


def field_kib(text: bytes, name: bytes) -> int:
    r"""The number behind ``name`` at a line's start, 0 when it is not there.

    >>> field_kib(b"Rss: 12 kB\nPss:  7 kB\n", b"Pss:")
    7
    """
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


@dataclass(frozen=True, slots=True)
class OwnCpu:
    """CPU time of one process alone, its children not counted."""

    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s


def own_cpu(pid: int) -> OwnCpu | None:
    """What the process itself has used; None when it is gone."""
    stat = read(pid, "stat")
    if not stat:
        return None
    user, system = map(int, stat.rpartition(b")")[2].split()[11:13])
    return OwnCpu(user * TICK_S, system * TICK_S)


ROLES = ("driver", "engine", "runners", "tasks")


def roles(driver: int) -> dict[int, str]:
    """What each process of a run of ours is to it, by process id.

    An engine runs the engine file, which its command line names; its runners are forked
    from it and keep that command line. Everything else below the driver is a task's.
    """
    found, above = {driver: "driver"}, parents()
    for pid in below(driver, above):
        if b"_engine.pyz" not in read(pid, "cmdline"):
            found[pid] = "tasks"
        elif found[above[pid]] in ("engine", "runners"):
            found[pid] = "runners"
        else:
            found[pid] = "engine"
    return found
