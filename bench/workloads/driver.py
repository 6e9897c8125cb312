"""W6: the driver alone, against engines that report every attempt as soon as they have it.

The engines are played by ``players/null_engines.py``; loop, scheduler, source and record are
the real ones. What is measured is the CPU of the driver's process from its first turn to its
last. How it grows with the number of engines and of tasks is what counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from harness import figures
from harness.kit import Kit, Section
from harness.load import Load
from harness.process import Command, Running
from harness.product import PREFIX, Product, complaint
from harness.targets import Target, at_most

PLAYER = Path(__file__).resolve().parents[1] / "players" / "null_driver.py"
SLOTS = 64
MOST_US = 8.0
FLAT = 1.25
"""The dearest of a series over the cheapest of it."""


@dataclass(frozen=True, slots=True)
class Size:
    """How wide a pool, how long a list."""

    engines: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.engines:,} engines, {self.tasks:,} tasks"


@dataclass(frozen=True, slots=True)
class Alone:
    """What one run cost the driver."""

    us: float  # of CPU, a task
    tasks_per_s: float
    peak_mb: float


def driver_alone(kit: Kit) -> Iterator[Section]:
    """W6."""
    if kit.ours is None:
        return
    middle = kit.sized(200_000, 2_000)
    widths = [Size(engines, middle) for engines in (1, 8, 64, 256, 1_000)]
    lengths = [Size(64, kit.sized(count, count // 100)) for count in (10_000, 100_000, 1_000_000)]
    sizes = list(dict.fromkeys([*widths, *lengths]))
    found: dict[Size, list[Alone]] = {size: [] for size in sizes}
    for _ in range(kit.sized(3, 1)):
        for size in sizes:
            one = alone(kit, kit.ours, size)
            if one is not None:
                found[size].append(one)
    us = {size: median(one.us for one in ones) for size, ones in found.items() if ones}
    yield Section(
        f"W6  the driver alone, {SLOTS} slots an engine, tasks that take no time",
        figures.table(
            ("size", "CPU us/task med (min, max)", "tasks/s", "driver peak MB"),
            [
                (
                    str(size), figures.spread([one.us for one in ones], ".1f"),
                    f"{median(one.tasks_per_s for one in ones):,.0f}",
                    f"{max(one.peak_mb for one in ones):.0f}",
                )
                for size, ones in found.items() if ones
            ],
        ),
        {str(size): [asdict(one) for one in ones] for size, ones in found.items()},
        [
            at_most("W6", f"driver CPU a task: {size}", MOST_US, us.get(size), " us")
            for size in sizes
        ] + [
            flatness("from 1 to 256 engines", [s for s in widths if s.engines <= 256], us),
            flatness("from the shortest list to the longest", lengths, us),
        ],
    )


def flatness(words: str, series: list[Size], us: dict[Size, float]) -> Target:
    """How much the dearest of a series costs over the cheapest."""
    known = [us[size] for size in series if size in us]
    ratio = max(known) / min(known) if len(known) == len(series) else None
    return at_most("W6", f"driver CPU a task, dearest over cheapest {words}", FLAT, ratio)


def alone(kit: Kit, ours: Product, size: Size) -> Alone | None:
    """One run; None, and said, when it failed."""
    load = Load("true", size.tasks, SLOTS)
    tasks = kit.written(load)
    processes = min(size.engines, os.cpu_count() or 1)
    arguments = (tasks, PREFIX, size.engines, SLOTS, processes)
    with kit.folder() as folder:
        running = Running(
            Command((str(ours.interpreter()), str(PLAYER), *map(str, arguments))), folder, kit.home
        )
        usage = running.finish(load.limit_s)
        wrong = running.last_words() if usage.status else complaint(folder, load)
        if wrong:
            kit.say(f"W6, {size}: status {usage.status}; {wrong}")
            return None
        said = json.loads((folder / "said").read_text())
    return Alone(
        said["cpu_s"] / size.tasks * 1e6, size.tasks / said["wall_s"], said["peak_kib"] / 1024
    )
