"""W7: what keeping the record costs, what a killed driver loses, how soon a resume works."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import peers
from harness import figures, process, product, tree
from harness.kit import Kit, Section, contest_data
from harness.load import Load
from harness.process import Command
from harness.product import PREFIX, STATUS_FILE, Product, write_earlier
from harness.rounds import Contest
from harness.targets import Target, at_most
from harness.tools import Tool, sqlite_tool, status_complaint

SIDE_LINE = "echo $DISBATCH_TASKID $EPOCHREALTIME >> side"
"""Each task leaves its id and the time; one write to a file opened for appending."""
SEED = 20250101
RESUME_LIMIT_S = 120.0


def durability(kit: Kit) -> Iterator[Section]:
    """W7."""
    if kit.ours and "ours" in kit.tools:
        yield commits(kit, kit.ours)
        yield kills(kit, kit.ours)
        yield resumes(kit, kit.ours)


def preloaded(ours: Product, preload: Path, wish: str) -> Tool:
    """Ours with durable writes made (``pass``) or only pretended (``skip``)."""

    def command(load: Load, tasks: Path) -> Command:
        extra = {"LD_PRELOAD": str(preload), "BENCH_SYNC": wish}
        return replace(ours.run(load.slots, tasks), extra=extra)

    names = {"pass": "ours", "skip": "ours, no sync"}
    return Tool(names[wish], "status file", command, status_complaint, "")


def commits(kit: Kit, ours: Product) -> Section:
    """W1 with and without durable writes, and what a transaction a task costs."""
    load = Load("true", kit.sized(5_000, 40), 2)
    preload = peers.no_sync_preload()
    tools = [preloaded(ours, preload, wish) for wish in ("pass", "skip")]
    tools += [sqlite_tool(level) for level in ("normal", "full")]
    contest = kit.race(load, {**{tool.name: tool for tool in tools}, **kit.chosen("cf")})
    lines = [*figures.race_table(contest, "ours", "ours, no sync"), *figures.conditions(contest)]
    return Section(
        f"W7  commit: {load}", lines, contest_data(contest), commit_targets(contest)
    )


def commit_targets(contest: Contest) -> list[Target]:
    """Durable writes against pretended ones, in time and in CPU."""
    slower = figures.ratio(contest, "ours, no sync", "ours", figures.rate)
    dearer = figures.ratio(contest, "ours", "ours, no sync", figures.cpu_us)
    return [
        at_most("W7", "commit: time with / without", 1.03, slower),
        at_most("W7", "commit: CPU with / without", 1.03, dearer),
    ]


@dataclass(frozen=True, slots=True)
class Kill:
    """What one kill of the driver and the resume after it left.

    Attributes:
        after_s: When the driver was killed, from its start.
        recorded: Rows on disk at that moment.
        unrecorded: Tasks that had run by then and had no row; the engine may still hold
            their reports.
        oldest_ms: How long before the kill the first of these ran, 0 when there was none.
        lost_ms: The same among those whose reports were lost: they had to run again.
        rerun: Tasks that ran twice.
        rerun_recorded: Those of them that had a row: must be none.
        not_once: Tasks without exactly one good row at the end: must be none.
        torn: Torn rows at the end: must be none.
        complaint: Why the resume failed, '' when it ended well.
    """

    after_s: float
    recorded: int
    unrecorded: int
    oldest_ms: float
    lost_ms: float
    rerun: int
    rerun_recorded: int
    not_once: int
    torn: int
    complaint: str


def recorded_ids(status_file: Path) -> Counter[int]:
    """Good rows by task; of a file that is not there, none."""
    if not status_file.exists():
        return Counter()
    return Counter(row.task_id for row in product.rows(status_file) if row and row.exit_code == 0)


def side_entries(folder: Path, until: float = float("inf")) -> list[tuple[int, float]]:
    """Task and moment of each entry of the side file, up to a moment."""
    side = folder / "side"
    text = side.read_text() if side.exists() else ""
    entries = [(int(task), float(at)) for task, at in map(str.split, text.splitlines())]
    return [(task, at) for task, at in entries if at <= until]


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known when the driver was killed."""

    after_s: float
    at: float  # Unix seconds
    recorded: Counter[int]  # good rows on disk, by task
    ran: list[tuple[int, float]]  # task and time, as the tasks wrote them

    def ms_since(self, moments: Iterable[float]) -> float:
        """How long ago the earliest of these was, 0 when there are none."""
        return (self.at - min(moments, default=self.at)) * 1000


def kill_once(kit: Kit, ours: Product, load: Load, after_s: float) -> Kill:
    """Kill the driver at a moment, resume, and compare the record with the side file."""
    tasks = kit.written(load)
    with kit.folder() as folder:
        running = process.Running(ours.run(load.slots, tasks), folder, kit.home)
        running.has_ended(after_s)
        at = time.time()
        os.kill(running.pid, signal.SIGKILL)
        running.reap()
        recorded = recorded_ids(folder / STATUS_FILE)
        moment = Moment(after_s, at, recorded, side_entries(folder, until=at))
        complaint = resume(kit, ours, load, tasks, folder)
        return compare(load, folder, moment, complaint)


def resume(kit: Kit, ours: Product, load: Load, tasks: Path, folder: Path) -> str:
    """Go on in the same files; what is wrong with how that ended, '' when nothing is."""
    begun = (folder / STATUS_FILE).exists()
    # Killed before it had a status file, a run is begun again under the same prefix.
    options = ("-r", f"{PREFIX}_status.txt") if begun else ()
    running = process.Running(ours.run(load.slots, tasks, *options), folder, kit.home)
    usage = running.finish(load.limit_s)
    if usage.was_cut_off:
        return "the resume, or what it left behind, had to be ended"
    return f"status {usage.status}: {running.last_words()}" if usage.status else ""


def compare(load: Load, folder: Path, moment: Moment, complaint: str) -> Kill:
    """Set the record of a killed and resumed run against what its tasks wrote down."""
    unrecorded = {task: at for task, at in moment.ran if task not in moment.recorded}
    runs = Counter(task for task, _ in side_entries(folder))
    twice = {task for task, count in runs.items() if count > 1}
    status_file = folder / STATUS_FILE
    good_rows = recorded_ids(status_file)
    return Kill(
        after_s=moment.after_s,
        recorded=len(moment.recorded),
        unrecorded=len(unrecorded),
        oldest_ms=moment.ms_since(unrecorded.values()),
        lost_ms=moment.ms_since(at for task, at in unrecorded.items() if task in twice),
        rerun=len(twice),
        rerun_recorded=len(twice & moment.recorded.keys()),
        not_once=sum(good_rows[task] != 1 or not runs[task] for task in range(load.count)),
        torn=sum(row is None for row in product.rows(status_file)) if status_file.exists() else 0,
        complaint=complaint,
    )


def kills(kit: Kit, ours: Product) -> Section:
    """Kill the driver at random moments of its life."""
    load, chance = Load(SIDE_LINE, kit.sized(500, 60), 2), random.Random(SEED)
    whole_s = whole_run_s(kit, ours, load)
    moments = [chance.uniform(0, whole_s) for _ in range(kit.sized(20, 3))]
    seen = [kill_once(kit, ours, load, after_s) for after_s in moments]
    lines = [
        f"{len(seen)} kills between 0 and {whole_s:.2f} s, seed {SEED}",
        *figures.table(KILL_HEADS, [kill_line(kill) for kill in seen]),
    ]
    return Section(
        f"W7  kill -9 and resume: {load}", lines, {"kills": [asdict(kill) for kill in seen]},
        kill_targets(seen),
    )


def whole_run_s(kit: Kit, ours: Product, load: Load) -> float:
    """How long a run lasts that nobody kills; the median of three."""
    tasks, walls = kit.written(load), []
    for _ in range(3):
        with kit.folder() as folder:
            walls.append(kit.measure(ours.run(load.slots, tasks), folder, load.limit_s).wall_s)
    return median(walls)


KILL_HEADS = (
    "killed after", "rows", "ran without row", "oldest", "ran twice", "of them recorded",
    "not once", "torn", "",
)


def kill_line(kill: Kill) -> tuple[str, ...]:
    """A kill for the table."""
    return (
        f"{kill.after_s:.3f} s", str(kill.recorded), str(kill.unrecorded),
        f"{kill.oldest_ms:.0f} ms", str(kill.rerun), str(kill.rerun_recorded),
        str(kill.not_once), str(kill.torn), kill.complaint,
    )


def kill_targets(seen: list[Kill]) -> list[Target]:
    """What no kill may bring about."""
    lost_ms = max(kill.lost_ms for kill in seen)
    return [
        at_most("W7", "kill: rows lost, oldest", 100, lost_ms, " ms"),
        at_most("W7", "kill: recorded tasks run again", 0, sum(k.rerun_recorded for k in seen)),
        at_most("W7", "kill: tasks not recorded once", 0, sum(k.not_once for k in seen)),
        at_most("W7", "kill: torn rows", 0, sum(k.torn for k in seen)),
        at_most("W7", "kill: resumes that failed", 0, sum(bool(k.complaint) for k in seen)),
    ]


@dataclass(frozen=True, slots=True)
class Resume:
    """A way to resume a long run of which one task is left.

    Attributes:
        name: As the table has it.
        new_id_is_last: Whether the task that is left is the last of the list or the first.
        keeps_file: Whether the run goes on in the status file, or writes one of its own.
    """

    name: str
    new_id_is_last: bool
    keeps_file: bool


RESUMES = (
    Resume("first task left, same file", False, True),
    Resume("last task left, same file", True, True),
    Resume("last task left, new file", True, False),
)


@dataclass(frozen=True, slots=True)
class LongRun:
    """A run of which one task is left: its list, and the status file as it was left."""

    tasks: Path
    slots: int
    earlier: Path


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a resume took."""

    first_s: float  # from its start to the new task
    cpu_s: float  # of the whole run
    peak_mb: float  # most memory its driver had resident


def resumes(kit: Kit, ours: Product) -> Section:
    """A million rows, one task left: how soon does it run, and with how much memory?"""
    load = Load("echo $EPOCHREALTIME >> stamps", kit.sized(1_000_000, 1_000), 2)
    found = {way: resume_samples(kit, ours, load, way) for way in RESUMES}
    heads = ("way", "s to the new task med (min, max)", "CPU s", "driver peak MB")
    lines = [
        (
            way.name, figures.spread([one.first_s for one in samples], ".2f"),
            f"{median(one.cpu_s for one in samples):.2f}",
            f"{max(one.peak_mb for one in samples):.0f}",
        )
        for way, samples in found.items() if samples
    ]
    return Section(
        f"W7  resume of {load.count:,} rows", figures.table(heads, lines),
        {way.name: [asdict(one) for one in samples] for way, samples in found.items()},
        [
            at_most("W7", f"resume of {load.count:,} rows: {way.name}", 1.5,
                    median(one.first_s for one in samples) if samples else None, " s")
            for way, samples in found.items()
        ],
    )


def resume_samples(kit: Kit, ours: Product, load: Load, way: Resume) -> list[Resumed]:
    """The same resume several times; those that failed are said and left out."""
    left = load.count - 1 if way.new_id_is_last else 0
    done = (task for task in range(load.count) if task != left)
    earlier = write_earlier(kit.scratch / "earlier_status.txt", done, load.line)
    run = LongRun(kit.written(load), load.slots, earlier)
    tries = [resume_once(kit, ours, run, way) for _ in range(kit.sized(3, 1))]
    earlier.unlink()
    return [sample for sample in tries if sample]


def resume_once(kit: Kit, ours: Product, run: LongRun, way: Resume) -> Resumed | None:
    """One resume; None, and said, when it failed."""
    with kit.folder() as folder:
        status_file = run.earlier
        if way.keeps_file:
            status_file = Path(shutil.copy(run.earlier, folder / STATUS_FILE))
        command = ours.run(run.slots, run.tasks, "-r", os.path.relpath(status_file, folder))
        running = process.Running(command, folder, kit.home)
        peak_mb = peak_of_driver_mb(running)
        usage = running.finish(RESUME_LIMIT_S)
        stamps = (folder / "stamps").read_text().split() if (folder / "stamps").exists() else []
        if usage.status == 0 and len(stamps) == 1:
            return Resumed(float(stamps[0]) - running.started_at, usage.cpu_s, peak_mb)
        kit.say(f"resume, {way.name}: status {usage.status}, {len(stamps)} tasks ran; "
                f"{running.last_words()}")
        return None


def peak_of_driver_mb(running: process.Running) -> float:
    """Watch a run to its end, or the limit, for the most memory its driver has resident."""
    peak_kib, limit_mono = 0, time.monotonic() + RESUME_LIMIT_S
    while not running.has_ended(0.05) and time.monotonic() < limit_mono:
        peak_kib = max(peak_kib, tree.peak_rss_kib(running.pid))
    return peak_kib * 1024 / 1e6
