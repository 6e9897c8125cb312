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
class Watch:
    """What was last seen of each process of a run, the tasks' left out."""

    roles: dict[int, str] = field(default_factory=dict)
    own: dict[int, OwnCpu] = field(default_factory=dict)
    peak_rss_kib: dict[int, int] = field(default_factory=dict)

    def look(self, driver: int) -> None:
        """Look at every process once."""
        for pid, role in tree.roles(driver).items():
            seen = tree.own_cpu(pid) if role != "tasks" else None
            peak = tree.peak_rss_kib(pid) if seen else 0
            if seen and peak:
                self.roles[pid], self.own[pid] = role, seen
                self.peak_rss_kib[pid] = peak

    def cpu(self, *roles: str) -> OwnCpu:
        """Time of all processes in these roles together."""
        found = [own for pid, own in self.own.items() if self.roles[pid] in roles]
        return OwnCpu(sum(one.user_s for one in found), sum(one.system_s for one in found))

    def count(self, role: str) -> int:
        """Processes seen in this role."""
        return sum(seen == role for seen in self.roles.values())

    def largest_kib(self, *roles: str) -> int:
        """The most memory any process in these roles has had resident."""
        peaks = (self.peak_rss_kib[pid] for pid in self.own if self.roles[pid] in roles)
        return max(peaks, default=0)


def watch(running: process.Running, limit_s: float, interval_s: float = INTERVAL_S) -> Watch:
    """Watch a run to its end or its limit."""
    seen, limit_mono = Watch(), time.monotonic() + limit_s
    while not running.has_ended(interval_s) and time.monotonic() < limit_mono:
        seen.look(running.pid)
    return seen
