"""W4: what a handful of tasks costs, and how soon the first one runs.

The task writes down when it runs (bash's own clock, no further process), so the time to the
first task is measured in the same way for every contestant.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from harness import figures
from harness.kit import Kit, Section, contest_data
from harness.load import Load
from harness.process import plain_environment
from harness.product import Product
from harness.rounds import Contest, Sample
from harness.targets import Target, at_most

STAMP_LINE = "echo $EPOCHREALTIME >> stamps"
TOOLS = ("ours", "cloop", "xargs", "cf", "parallel", "hq", "disbatch3")


def wall_s(sample: Sample) -> float:
    """Start to exit."""
    return sample.wall_s


def first_task_s(sample: Sample) -> float:
    """Start to the moment the first task looked at the clock."""
    return sample.extra["first_task_s"]


def read_stamps(folder: Path, started_at: float) -> dict[str, float]:
    """When the first task ran, after the start."""
    stamps = map(float, (folder / "stamps").read_text().split())
    return {"first_task_s": min(stamps) - started_at}


def few_tasks(kit: Kit) -> Iterator[Section]:
    """One task, twenty tasks, and what is imported for them."""
    for count in (1, 20):
        yield from_cold(kit, count)
    if kit.ours:
        yield imports(kit, kit.ours)


def from_cold(kit: Kit, count: int) -> Section:
    """A whole command for this many tasks in two slots."""
    load = Load(STAMP_LINE, count, 2)
    contest = kit.race(load, kit.chosen(*TOOLS), read_stamps)
    lines = [*start_table(contest), *figures.conditions(contest)]
    return Section(f"W4  {load}", lines, contest_data(contest), start_targets(count, contest))


def start_table(contest: Contest) -> list[str]:
    """Seconds to the first task and to the exit."""
    heads = ("tool", "ms to exit med (min, max)", "ms to first task", "CPU ms", "ours / it")
    lines = [
        (
            name,
            figures.spread([s * 1000 for s in figures.values(contest, name, wall_s)]),
            figures.spread([s * 1000 for s in figures.values(contest, name, first_task_s)]),
            f"{median(figures.values(contest, name, lambda done: done.cpu_s)) * 1000:,.0f}",
            figures.times(figures.ratio(contest, "ours", name, wall_s)),
        )
        for name in contest.names
    ]
    return figures.table(heads, lines)


def start_targets(count: int, contest: Contest) -> list[Target]:
    """Wall time of ours over each that pays a start-up too."""
    name = f"W4 N={count}"
    promises = {"parallel": 1.0, "hq": 0.15, "disbatch3": 0.05}
    targets = [
        at_most(
            name, f"start to exit / {peer}", limit, figures.ratio(contest, "ours", peer, wall_s)
        )
        for peer, limit in promises.items()
    ]
    first = figures.ratio(contest, "ours", "parallel", first_task_s)
    return [*targets, at_most(name, "start to first task / parallel", 1.0, first)]


def imports(kit: Kit, ours: Product) -> Section:
    """CPU of importing what the driver imports for one task, beyond a bare interpreter."""
    modules = imported_modules(kit, ours)
    # A module looked for in vain was looked for by the driver, too.
    full = "\n".join(f"try: import {name}\nexcept ImportError: pass" for name in modules)
    costs = []
    for _ in range(kit.sized(12, 2)):
        full_s, bare_s = (interpreter_cpu_s(kit, ours, code) for code in (full, ""))
        costs.append((full_s - bare_s) * 1000)
    lines = [f"{len(modules)} modules, {figures.spread(costs, '.0f')} ms of CPU over bare"]
    target = at_most("W4", "import CPU", 60, median(costs), " ms")
    return Section("W4  imports", lines, {"modules": modules, "cpu_ms": costs}, [target])


def imported_modules(kit: Kit, ours: Product) -> list[str]:
    """The modules the driver loads for a list of one task, in the order they got ready."""
    load = Load("true", 1, 1)
    with kit.folder() as folder:
        command = ours.run(1, kit.written(load))
        seen = {**plain_environment(kit.home), "PYTHONPROFILEIMPORTTIME": "1"}
        done = subprocess.run(
            command.argv, cwd=folder, env=seen, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, check=True,
        )
    return module_names(done.stderr)


def module_names(import_times: str) -> list[str]:
    r"""The names in what ``-X importtime`` prints, without what every interpreter loads.

    >>> module_names("import time: self [us] | cumulative | imported package\n"
    ...                "import time:       114 |        114 |   _io\n"
    ...                "import time:      9 |       10 | site\n"
    ...                "import time:      3 |       13 | overnight.errors\n")
    ['overnight.errors']
    """
    names = [
        line.rpartition("|")[2].strip()
        for line in import_times.splitlines()
        if line.startswith("import time:") and "imported package" not in line
    ]
    # ``site`` is the last thing loaded before the program itself.
    begin = names.index("site") + 1 if "site" in names else 0
    return names[begin:]


def interpreter_cpu_s(kit: Kit, ours: Product, code: str) -> float:
    """CPU of one interpreter that runs this code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        (str(ours.interpreter()), "-c", code), check=True, timeout=60,
        env=plain_environment(kit.home), cwd=os.fspath(kit.scratch),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
