"""The state of the machine: what was stolen from it, who else used it, what it is."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """The first line of /proc/stat, in seconds summed over the processors."""

    busy_s: float
    idle_s: float
    stolen_s: float

    def __sub__(self, earlier: CpuTime) -> CpuTime:
        return CpuTime(
            self.busy_s - earlier.busy_s,
            self.idle_s - earlier.idle_s,
            self.stolen_s - earlier.stolen_s,
        )

    @property
    def total_s(self) -> float:
        """Everything these processors could have done."""
        return self.busy_s + self.idle_s + self.stolen_s

    @property
    def steal(self) -> float:
        """Share of it that the host gave to somebody else, from 0 to 1."""
        return self.stolen_s / self.total_s if self.total_s > 0 else 0.0


def parse_cpu_time(stat_line: str) -> CpuTime:
    """Read the ``cpu`` line of /proc/stat.

    Guest time is left out: the kernel counts it in user time already.

    >>> parse_cpu_time("cpu  100 0 50 800 10 0 5 35 0 0").steal
    0.035
    """
    user, nice, system, idle, waiting, irq, softirq, stolen = map(int, stat_line.split()[1:9])
    busy = user + nice + system + irq + softirq
    return CpuTime(busy * TICK_S, (idle + waiting) * TICK_S, stolen * TICK_S)


def cpu_time() -> CpuTime:
    """Where the processors' time has gone since the machine started."""
    with open("/proc/stat", encoding="ascii") as stat:
        return parse_cpu_time(stat.readline())


def first_line_of(*argv: str) -> str:
    """The first line a command prints, or '' when it cannot be had."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).partition("\n")[0].strip()


def sync_cost_ms(folder: Path, tries: int = 50) -> float:
    """Median time of writing 4 kB and making it durable in this folder.

    Says how much of a durability figure is the disk's: a virtual disk may answer in
    0.2 ms what a real one does in 10.
    """
    target, times = folder / "sync-probe", []
    with open(target, "wb", buffering=0) as probe:
        for _ in range(tries):
            started = time.perf_counter()
            probe.write(bytes(4096))
            os.fdatasync(probe.fileno())
            times.append(time.perf_counter() - started)
    target.unlink()
    return sorted(times)[tries // 2] * 1000


def describe(folder: Path) -> dict[str, str]:
    """What a reader must know of the machine to judge a figure measured on it."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        model = next((line.split(":")[1] for line in info if line.startswith("model name")), "?")
    return {
        "processors": f"{os.cpu_count()} x {model.strip()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "bash": first_line_of("bash", "--version"),
        "file system": first_line_of("findmnt", "-n", "-o", "FSTYPE", "-T", str(folder)),
        "fdatasync of 4 kB": f"{sync_cost_ms(folder):.2f} ms",
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
