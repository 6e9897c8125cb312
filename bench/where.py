"""Where the CPU of a run goes: driver, engine, runners, tasks.

    python bench/where.py                    5,000 times `true` in 2 slots
    python bench/where.py 2000 8 /bin/true   so many, slots, line

Explains a target that was missed. The whole is what wait4 says of the command and all below
it. Driver, engine and runners are watched in /proc while they live; a last task that sleeps
keeps them there for a look after the work. Tasks are what is left of the whole, so the
time between the last look and the exit counts as theirs: read to about a hundredth. The
C loop of the same line, run before and after, says what the tasks alone would cost.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import peers
from harness import machine, process, sampling, tree
from harness.figures import table
from harness.load import Load
from harness.process import Usage
from harness.product import Product, complaint, dis_batch
from harness.sampling import Watch
from harness.tools import cloop

BENCH = Path(__file__).resolve().parent
LAST_LINE = "sleep 0.5"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Split the CPU of a run by process.")
    parser.add_argument("count", nargs="?", type=int, default=5_000)
    parser.add_argument("slots", nargs="?", type=int, default=2)
    parser.add_argument("line", nargs="?", default="true")
    parser.add_argument("--option", action="append", default=[], help="passed on to disBatch")
    return parser.parse_args()


def split_run(load: Load, options: list[str], folder: Path) -> tuple[Usage, Watch]:
    """Run ours on the load and one sleeper behind it, watched."""
    tasks = load.write_list(folder / "Tasks")
    with open(tasks, "a") as more:
        more.write(LAST_LINE + "\n")
    command = Product(dis_batch(BENCH.parent)).run(load.slots, tasks, *options)
    running = process.Running(command, folder, folder)
    seen = sampling.watch(running, load.limit_s)
    usage = running.finish(load.limit_s)
    wrong = complaint(folder, Load(load.line, load.count + 1, load.slots))
    if usage.status != 0 or wrong:
        raise SystemExit(f"status {usage.status}; {wrong} {running.last_words()}")
    return usage, seen


def floor_us(load: Load, folder: Path) -> float:
    """CPU microseconds a task of the C loop on the same line."""
    program = peers.spawn_loop().path
    command = cloop(program, load, folder / "Tasks")
    return process.measure(command, folder, folder, load.limit_s).cpu_s / load.count * 1e6


def split_lines(load: Load, usage: Usage, seen: Watch) -> list[str]:
    """The table: whose, how many processes, microseconds a task in user and system mode."""
    found = {role: seen.cpu(role) for role in tree.ROLES if role != "tasks"}
    user_s = usage.user_s - sum(own.user_s for own in found.values())
    system_s = usage.system_s - sum(own.system_s for own in found.values())
    found["tasks"] = tree.OwnCpu(user_s, system_s)
    found["all"] = tree.OwnCpu(usage.user_s, usage.system_s)
    lines = [
        (
            role, str(len(seen.those(role)) or "-"), *(
                f"{seconds / load.count * 1e6:,.0f}"
                for seconds in (own.user_s, own.system_s, own.total_s)
            ),
            f"{own.total_s / usage.cpu_s:.1%}",
        )
        for role, own in found.items()
    ]
    heads = ("whose", "processes", "user us/task", "system us/task", "us/task", "share")
    return table(heads, lines)


def main() -> int:
    """Measure and print."""
    options = arguments()
    process.adopt_orphans()
    load = Load(options.line, options.count, options.slots)
    with tempfile.TemporaryDirectory(prefix="where-") as name:
        folder, before = Path(name), machine.cpu_time()
        floors = [floor_us(load, folder)]
        usage, seen = split_run(load, options.option, folder)
        floors.append(floor_us(load, folder))
    spent = machine.cpu_time() - before
    print(f"{load}: {load.count / usage.wall_s:,.0f} tasks/s with a last `{LAST_LINE}`\n")
    print("\n".join(split_lines(load, usage, seen)))
    print(f"\nC loop of the same line: {statistics.mean(floors):,.0f} us/task", end="; ")
    print(f"steal {spent.steal:.1%}, machine busy {spent.busy_s / spent.total_s:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
