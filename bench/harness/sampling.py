"""Where a run's CPU goes: each process of ours watched while it lives.

The kernel's sum over a finished tree says how much, not who. So the long-lived processes
are looked at every so often, their own time alone, children not counted; the last look
before an end stands for the end. What is left of the sum is the tasks'.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from harness import process, tree
from harness.tree import OwnCpu

INTERVAL_S = 0.1


@dataclass(slots=True)
class Seen:
    """What was last seen of one process, and how often it was there."""

    role: str
    own: OwnCpu
    peak_rss_kib: int
    looks: int


@dataclass(slots=True)
class Watch:
    """The processes of a run, the tasks' left out, by process id."""

    processes: dict[int, Seen] = field(default_factory=dict)

    def look(self, driver: int) -> None:
        """Look at every process once."""
        for pid, role in tree.roles(driver).items():
            own = tree.own_cpu(pid) if role != "tasks" else None
            peak = tree.peak_rss_kib(pid) if own else 0
            if own and peak:
                before = self.processes.get(pid)
                looks = before.looks + 1 if before else 1
                self.processes[pid] = Seen(role, own, peak, looks)

    def those(self, *roles: str) -> list[Seen]:
        """The processes in these roles.

        One seen a single time is passed over: a task between its fork and its exec looks
        like the runner it comes from.
        """
        return [seen for seen in self.processes.values() if seen.role in roles and seen.looks > 1]

    def cpu(self, *roles: str) -> OwnCpu:
        """Time of all processes in these roles together."""
        found = [seen.own for seen in self.those(*roles)]
        return OwnCpu(sum(one.user_s for one in found), sum(one.system_s for one in found))

    def largest_kib(self, *roles: str) -> int:
        """The most memory any process in these roles has had resident."""
        return max((seen.peak_rss_kib for seen in self.those(*roles)), default=0)


def watch(running: process.Running, limit_s: float, interval_s: float = INTERVAL_S) -> Watch:
    """Watch a run to its end or its limit."""
    seen, limit_mono = Watch(), time.monotonic() + limit_s
    while not running.has_ended(interval_s) and time.monotonic() < limit_mono:
        seen.look(running.pid)
    return seen
