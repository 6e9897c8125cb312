"""What a workload is handed: the contestants, a place to work in, and how much to do."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import figures, process
from harness.load import Load
from harness.process import Command
from harness.product import Product
from harness.rounds import Contest, Sample, play
from harness.targets import Target
from harness.tools import Tool

Reader = Callable[[Path, float], dict[str, float]]
"""Gives further figures from a finished run's folder and its start time."""


def nothing_more(folder: Path, started_at: float) -> dict[str, float]:
    """The reader of workloads that need no further figure."""
    return {}


@dataclass(frozen=True, slots=True)
class Section:
    """What a workload found: lines to print, figures to keep, targets to judge."""

    title: str
    lines: Sequence[str]
    data: Mapping[str, Any]  # whatever JSON can hold
    targets: Sequence[Target] = ()


@dataclass(slots=True)
class Kit:
    """A workload's surroundings.

    Attributes:
        tools: Contestants that are there, by name.
        ours: The commands measured, or None where they are not installed.
        scratch: A folder on the file system measured.
        rounds: Rounds to count.
        is_quick: Small numbers, to see that everything works; no figure is worth keeping.
        is_big: The longest workloads too.
        say: Prints a line.
    """

    tools: Mapping[str, Tool]
    ours: Product | None
    scratch: Path
    rounds: int
    is_quick: bool
    is_big: bool
    say: Callable[[str], None]
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.scratch / "home"
        self.home.mkdir(exist_ok=True)

    def sized(self, full: int, quick: int) -> int:
        """The full number, or the one for a quick look."""
        return quick if self.is_quick else full

    def chosen(self, *names: str) -> dict[str, Tool]:
        """Those of these contestants that are there, in this order."""
        return {name: self.tools[name] for name in names if name in self.tools}

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder for one run, gone afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def written(self, load: Load) -> Path:
        """The list of a load; written anew, so the last one does not pile up."""
        return load.write_list(self.scratch / "Tasks")

    def measure(self, command: Command, folder: Path, limit_s: float) -> process.Usage:
        """Run a command to its end."""
        return process.measure(command, folder, self.home, limit_s)

    def race(
        self, load: Load, tools: Mapping[str, Tool], read: Reader = nothing_more
    ) -> Contest:
        """Let contestants run the same load in turns.

        Args:
            load: What each runs.
            tools: Who takes part.
            read: Gives further figures of each run.
        """
        tasks = self.written(load)

        players = {
            name: functools.partial(self.sample, tool, load, tasks, read)
            for name, tool in tools.items()
        }
        return play(players, self.rounds, self.say)

    def sample(self, tool: Tool, load: Load, tasks: Path, read: Reader) -> Sample:
        """One run of one contestant, checked."""
        with self.folder() as folder:
            running = process.Running(tool.command(load, tasks), folder, self.home)
            usage = running.finish(load.limit_s)
            wrong = objection(usage, running) or tool.complaint(folder, load)
            extra = {} if wrong else read(folder, running.started_at)
        extra["strays"] = usage.stray_count
        return Sample(load.count, usage.wall_s, usage.cpu_s, wrong, extra)


def objection(usage: process.Usage, running: process.Running) -> str:
    """Why a run cannot count, seen from outside; '' when it ended well."""
    if usage.was_cut_off:
        return "it, or what it left behind, had to be ended"
    if usage.status != 0:
        return f"exit status {usage.status}: {running.last_words()}"
    return ""


def contest_data(contest: Contest) -> dict[str, Any]:
    """A contest as JSON holds it: every sample of every round that counts."""
    return {
        "rounds": [
            {
                "steal": played.spent.steal,
                "others": played.others,
                "samples": {name: asdict(done) for name, done in played.samples.items()},
            }
            for played in contest.rounds
        ],
        "set_aside": contest.set_aside,
        "withdrawn": contest.withdrawn,
    }


def race_section(title: str, contest: Contest, targets: Sequence[Target] = ()) -> Section:
    """The usual section: a race, ours against each, the C loop as the floor."""
    lines = [*figures.race_table(contest, "ours", "cloop"), *figures.conditions(contest)]
    return Section(title, lines, contest_data(contest), targets)
