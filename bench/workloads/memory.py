"""W5: memory with a long queue while every slot is taken.

Every line is the same sleeper of 90 bytes, so whatever order a tool takes, its slots are
full at once and the rest of the list waits. When the memory has come to rest, the
proportional set sizes of all processes of the tool are added up, the tasks' left out. What
a queued task costs is the slope between a short list and a long one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import figures, process, tree
from harness.kit import Kit, Section
from harness.load import Load
from harness.process import Command
from harness.product import Product, write_earlier
from harness.targets import Target, at_most

SLOTS = 2
SHORT = 1_000
SLEEPER = "sleep 987654"
LINE = f"{SLEEPER} # ".ljust(89, "x")  # 90 bytes with its newline
REST_S = 2.0
"""Memory is at rest when it has not grown for so long."""
REST_LIMIT_S = 180.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Proportional set sizes in KiB."""

    driver: int  # the process started
    engine: int
    runners: int
    runner_count: int
    other: int  # of a peer's further processes
    driver_peak: int  # most resident memory the driver has had

    @property
    def total(self) -> int:
        """Everything but the tasks."""
        return self.driver + self.engine + self.runners + self.other


@dataclass(frozen=True, slots=True)
class Case:
    """A tool with a queue of a length.

    Attributes:
        name: As the table has it.
        short: Tasks of the short list.
        long: Tasks of the long list.
        command: Gives what to start for a list in a folder.
    """

    name: str
    short: int
    long: int
    command: Callable[[Load, Path, Path], Command]


def is_sleeper(pid: int) -> bool:
    """Whether this process is a task of ours to the tool, not the tool."""
    return SLEEPER.split()[1].encode() in tree.read(pid, "cmdline")


def weigh(root: int) -> Memory:
    """The memory of a tool's processes at this moment."""
    sizes = dict.fromkeys(tree.ROLES, 0)
    roles = {pid: role for pid, role in tree.roles(root).items() if not is_sleeper(pid)}
    for pid, role in roles.items():
        sizes[role] += tree.pss_kib(pid)
    count = sum(role == "runners" for role in roles.values())
    peak = tree.peak_rss_kib(root)
    return Memory(sizes["driver"], sizes["engine"], sizes["runners"], count, sizes["tasks"], peak)


def slots_are_full(root: int) -> bool:
    """Whether as many sleepers run as there are slots."""
    sleepers = sum(tree.read(pid, "comm") == b"sleep\n" for pid in tree.descendants(root))
    return sleepers >= SLOTS


def at_rest(running: process.Running) -> Memory | None:
    """The memory once it stopped growing with all slots full; None when that never came."""
    limit_mono = time.monotonic() + REST_LIMIT_S
    last, since_mono = 0, time.monotonic()
    while time.monotonic() < limit_mono and not running.has_ended(0.25):
        memory = weigh(running.pid)
        if not slots_are_full(running.pid) or abs(memory.total - last) > 0.002 * last:
            last, since_mono = memory.total, time.monotonic()
        elif time.monotonic() - since_mono > REST_S:
            return memory
    return None


def stop(running: process.Running) -> None:
    """End a tool in the midst of its sleepers: asked first, then by force."""
    os.kill(running.pid, signal.SIGTERM)
    if not running.has_ended(10):
        os.kill(running.pid, signal.SIGKILL)
    # What it left - sleepers, of most peers - is not worth waiting for.
    tree.kill_all(tree.descendants(running.pid) + tree.descendants(os.getpid()))
    running.finish(10)


def weigh_case(kit: Kit, case: Case, count: int) -> Memory | None:
    """Start the tool with a queue of this length, weigh it, end it."""
    load = Load(LINE, count, SLOTS)
    with kit.folder() as folder:
        tasks = kit.written(load)
        running = process.Running(case.command(load, tasks, folder), folder, kit.home)
        memory = at_rest(running)
        if memory is None:
            kit.say(f"{case.name}, {count:,} tasks: never at rest; {running.last_words()}")
        stop(running)
    return memory


def our_cases(kit: Kit, ours: Product) -> list[Case]:
    """A plain run, one that resumes, one that shuffles."""

    def plain(load: Load, tasks: Path, folder: Path) -> Command:
        return ours.run(load.slots, tasks)

    def resumed(load: Load, tasks: Path, folder: Path) -> Command:
        # All are done but the first few, which then fill the slots.
        done = range(load.slots, load.count)
        earlier = write_earlier(folder / "earlier_status.txt", done, load.line)
        return ours.run(load.slots, tasks, "-r", str(earlier))

    def shuffled(load: Load, tasks: Path, folder: Path) -> Command:
        return ours.own_run(load.slots, tasks, "--shuffle=1")

    short, long = kit.sized(SHORT, 100), kit.sized(1_000_000, 2_000)
    cases = [
        Case("ours", short, long, plain),
        Case("ours -r", short, long, resumed),
        Case("ours --shuffle", short, long, shuffled),
    ]
    return [*cases, Case("ours, 10^7", short, 10_000_000, plain)] if kit.is_big else cases


PEER_QUEUES = {"xargs": 1_000_000, "parallel": 1_000_000, "cf": 200_000, "hq": 100_000}
"""How long a peer's queue is: those that hold it in memory get a shorter one."""


def peer_cases(kit: Kit) -> list[Case]:
    """Each peer with a queue it can hold."""

    def command_of(name: str) -> Callable[[Load, Path, Path], Command]:
        return lambda load, tasks, folder: kit.tools[name].command(load, tasks)

    return [
        Case(name, kit.sized(SHORT, 100), kit.sized(PEER_QUEUES[name], 2_000), command_of(name))
        for name in kit.chosen(*PEER_QUEUES)
    ]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Both ends of the slope."""

    case: Case
    short: Memory
    long: Memory

    @property
    def bytes_per_task(self) -> float:
        """What one more queued task costs."""
        grown = (self.long.total - self.short.total) * 1024
        return grown / (self.case.long - self.case.short)


def queues(kit: Kit) -> Iterator[Section]:
    """W5: the slope for each tool, and what our processes weigh."""
    cases = (our_cases(kit, kit.ours) if kit.ours and "ours" in kit.tools else []) + peer_cases(kit)
    weighed = []
    for case in cases:
        short, long = (weigh_case(kit, case, count) for count in (case.short, case.long))
        if short and long:
            weighed.append(Weighed(case, short, long))
    yield Section(
        f"W5  `{SLEEPER} # xxx...` of 90 bytes, {SLOTS} slots, all taken",
        memory_table(weighed), {one.case.name: data(one) for one in weighed},
        memory_targets({one.case.name: one for one in weighed}),
    )


def memory_table(weighed: Sequence[Weighed]) -> list[str]:
    """Megabytes at both ends, bytes a task between, and who holds them."""
    heads = (
        "tool", "N", "MB at short", "MB at N", "bytes/task", "driver MB", "its peak", "engine MB",
        "runners MB",
    )
    lines = [
        (
            one.case.name, f"{one.case.long:,}", mb(one.short.total), mb(one.long.total),
            f"{one.bytes_per_task:.2f}", mb(one.long.driver), mb(one.long.driver_peak),
            mb(one.long.engine), f"{mb(one.long.runners)} ({one.long.runner_count})",
        )
        for one in weighed
    ]
    return figures.table(heads, lines)


def mb(kib: float) -> str:
    """Megabytes, of 10^6 bytes."""
    return f"{kib * 1024 / 1e6:,.1f}"


def data(weighed: Weighed) -> dict[str, object]:
    """For the JSON."""
    return {
        "tasks": [weighed.case.short, weighed.case.long],
        "short_kib": asdict(weighed.short),
        "long_kib": asdict(weighed.long),
        "bytes_per_task": weighed.bytes_per_task,
    }


def memory_targets(weighed: dict[str, Weighed]) -> list[Target]:
    """Slopes, and the size of each process of ours with the long plain list."""

    def slope(name: str) -> float | None:
        return weighed[name].bytes_per_task if name in weighed else None

    plain = weighed["ours"].long if "ours" in weighed else None
    driver_mb = plain.driver * 1024 / 1e6 if plain else None
    engine_mb = (plain.engine + plain.runners) * 1024 / 1e6 if plain else None
    allowed = 15 + 4 * (plain.runner_count if plain else 0)
    return [
        at_most("W5", "a queued task", 2, slope("ours"), " B"),
        at_most("W5", "a row with -r", 8, slope("ours -r"), " B"),
        at_most("W5", "a line with --shuffle", 8, slope("ours --shuffle"), " B"),
        at_most("W5", "driver", 40, driver_mb, " MB"),
        at_most("W5", "engine and runners", allowed, engine_mb, " MB"),
        *(
            [at_most("W5", "a queued task of 10^7", 2, slope("ours, 10^7"), " B")]
            if "ours, 10^7" in weighed else []
        ),
    ]
