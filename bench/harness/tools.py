"""The contestants: how each is told to run a load, and how its result is checked.

Every one starts one ``bash -c LINE`` a task, except where ours takes its shell-free lane
and ``ours-shell`` is measured beside it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import product
from harness.load import Load
from harness.process import Command
from harness.product import Product

OURS = "ours"
PLAYERS = Path(__file__).resolve().parent.parent / "players"

Commander = Callable[[Load, Path], Command]
Check = Callable[[Path, Load], str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A contestant.

    Attributes:
        name: As tables and ``--only`` have it.
        keeps: What it records of a task.
        command: What to start for a load whose list lies at a path.
        complaint: What is wrong with the files a run left, '' when nothing is.
        version: As it names itself.
    """

    name: str
    keeps: str
    command: Commander
    complaint: Check
    version: str


def no_record(folder: Path, load: Load) -> str:
    """A tool without a record has nothing to check but its exit status."""
    return ""


def cloop(program: Path, load: Load, tasks: Path) -> Command:
    """The C loop takes its line from the command line."""
    slots, count = str(load.slots), str(load.count)
    return Command((str(program), slots, count, "/bin/bash", "-c", load.line))


def xargs(program: Path, load: Load, tasks: Path) -> Command:
    """One line, one bash."""
    slots = str(load.slots)
    argv = (str(program), "-d", "\\n", "-n", "1", "-P", slots, "/bin/bash", "-c")
    return Command(argv, stdin=tasks)


def parallel(program: Path, load: Load, tasks: Path) -> Command:
    """With its record on, as a user who wants to know what failed has it."""
    options = ("--will-cite", "--joblog", "log.of.parallel", "-j", str(load.slots))
    return Command((str(program), *options, "-a", str(tasks)))


def joblog_complaint(folder: Path, load: Load) -> str:
    """GNU parallel's record: a heading and a line for each task."""
    with open(folder / "log.of.parallel", "rb") as lines:
        count = sum(1 for _ in lines) - 1
    return "" if count == load.count else f"{count} lines in the joblog"


def scripted(python: Path, script: str, *more: str) -> Commander:
    """A contestant that is a script of ours around a library."""

    def command(load: Load, tasks: Path) -> Command:
        return Command((str(python), str(PLAYERS / script), str(load.slots), str(tasks), *more))

    return command


def disbatch3(program: Path, load: Load, tasks: Path) -> Command:
    """DisBatch 3.0; on loopback, for a machine whose name is not its address."""
    slots = f"localhost:{load.slots}"
    options = ("--use-address", "localhost:0", "-s", slots, "-p", product.PREFIX)
    return Command((str(program), *options, str(tasks)))


def status_complaint(folder: Path, load: Load) -> str:
    """One row a task, all exit codes 0; disBatch 3.0's file has our columns."""
    return product.complaint(folder, load)


def peer_tool(name: str, program: Path, version: str) -> Tool:
    """The contestant of this name, at this path."""
    sqlite = functools.partial(scripted, program, "concurrent_list.py")
    shapes: dict[str, tuple[str, Commander, Check]] = {
        "cloop": ("nothing", functools.partial(cloop, program), no_record),
        "xargs": ("nothing", functools.partial(xargs, program), no_record),
        "cf": ("in memory", sqlite(), no_record),
        "parallel": ("joblog", functools.partial(parallel, program), joblog_complaint),
        "hq": ("server state", scripted(program, "hyperqueue_list.py"), no_record),
        "disbatch3": ("status file", functools.partial(disbatch3, program), status_complaint),
    }
    keeps, command, check = shapes[name]
    return Tool(name, keeps, command, check, version)


def sqlite_tool(synchronous: str) -> Tool:
    """concurrent.futures with an SQLite transaction for each task."""
    command = scripted(Path(sys.executable), "concurrent_list.py", synchronous)
    return Tool(f"sqlite-{synchronous}", "SQLite, WAL", command, no_record, "")


def our_tool(ours: Product, name: str, version: str, *options: str) -> Tool:
    """Ours, with these options."""

    def command(load: Load, tasks: Path) -> Command:
        return ours.run(load.slots, tasks, *options)

    return Tool(name, "status file", command, status_complaint, version)
