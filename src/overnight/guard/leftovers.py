"""What an engine that is gone has left running: found by its marks, and proved ended.

A task may be given out again only when nothing of its earlier attempt runs. The engine
knew that of its children; once it and its runners are gone, marks in environments are
what is left. They are compared with care, since another run may have the same name:

* the marks of the run and the engine stand in the process's environment;
* it was started after the engine, and in the run's folder;
* no runner or engine is among its ancestors, or that one answers for it;
* it is not a process that a finished task was allowed to leave.

Where its parent is, does not matter: orphans go to whatever subreaper stood above them,
which need not stand above the one who asks.
"""

from __future__ import annotations

import os
import time

from overnight.guard.processes import (
    ancestors,
    read_environment,
    read_process,
    signal_process,
    survey,
    with_descendants,
)
from overnight.guard.sweep import LOOK_S, SIGKILL, Sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.guard.processes import Process

    Released = Callable[[int, float], bool]
    """Whether a process of this task, started then (Unix seconds), was let go."""

RUNNERS_WITHIN_S = 10.0
"""How long runners of a dead engine get beyond the grace of their tasks, before SIGKILL."""

SOMETHING_LEFT = 3
"""Exit status of ``engine/sweep`` when processes are alive in spite of SIGKILL."""

ENGINE_FILE = b"engine.pyz"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class GoneEngine:
    """An engine whose process has ended.

    Attributes:
        run: DISBATCH_JOBID of its tasks.
        rank: DISBATCH_ENGINE_RANK of its tasks.
        pid: Of its process; the session of its runners.
        start: Start of that, clock ticks since boot.
        folders: The run's folder, under the names that PWD may give it.
    """

    __slots__ = ("folders", "pid", "rank", "run", "start")

    def __init__(self, run: str, rank: int, pid: int, start: int, folders: Sequence[str]) -> None:
        self.run = run
        self.rank = rank
        self.pid = pid
        self.start = start
        self.folders = folders


def end_leftovers(
    engine: GoneEngine, kill_after_s: float = 2.0,
    is_released: Released = lambda task_id, started_at: False,
    runners_within_s: float = RUNNERS_WITHIN_S,
) -> list[Process]:
    """End everything that a gone engine has left, and wait for that.

    Args:
        engine: Whose.
        kill_after_s: Between SIGTERM and SIGKILL.
        is_released: Tells processes that finished tasks were allowed to leave.
        runners_within_s: How long its runners get beyond that grace to end their tasks.

    Returns:
        What is alive in spite of SIGKILL: hung in the kernel. Empty: it is proved that
        nothing of the engine runs.
    """
    left = _see_runners_off(engine, kill_after_s + runners_within_s)
    sweep = Sweep(lambda: leftovers(engine, is_released), kill_after_s, time.monotonic())
    sweep.look(time.monotonic())
    while not sweep.is_over:
        time.sleep(LOOK_S)
        sweep.look(time.monotonic())
    return left + sweep.found


def leftovers(engine: GoneEngine, is_released: Released) -> list[Process]:
    """What is alive of a gone engine's tasks now."""
    table = survey()
    keepers = {pid for pid in table if _is_engine_or_runner(pid)}
    marks = {
        b"DISBATCH_JOBID=" + os.fsencode(engine.run),
        b"DISBATCH_ENGINE_RANK=%d" % engine.rank,
    }
    spared = ancestors(table, os.getpid()) | {os.getpid()} | keepers
    roots = [
        process.pid for process in table.values()
        if process.start >= engine.start and process.pid not in spared
        and _is_left_by(process, marks, engine.folders, is_released)
        and not ancestors(table, process.pid) & keepers
    ]
    found = (table[pid] for pid in with_descendants(table, roots))
    # Looked at again: a task may have ended since, and with it the runner it was told by.
    return [
        process for process in found
        if process.pid not in spared and is_same_process(process.pid, process.start)
    ]


def _is_left_by(
    process: Process, marks: set[bytes], folders: Sequence[str], is_released: Released
) -> bool:
    entries = read_environment(process.pid)
    if not marks <= entries:
        return False
    named = {name: value for name, _, value in (entry.partition(b"=") for entry in entries)}
    folder = named.get(b"PWD")
    if folder is not None and os.fsdecode(folder) not in folders:
        return False  # another run of this name, in another folder
    task_id = named.get(b"DISBATCH_TASKID", b"")
    return not (task_id.isdigit() and is_released(int(task_id), started_at(process)))


def started_at(process: Process) -> float:
    """When a process was started, Unix seconds, to about a hundredth."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - now + process.start / _TICKS_A_SECOND


def _is_engine_or_runner(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return any(word.endswith(ENGINE_FILE) for word in file.read(4096).split(b"\0"))
    except OSError:
        return False


def _see_runners_off(engine: GoneEngine, most_s: float) -> list[Process]:
    """Wait for a dead engine's runners, which end their tasks by themselves; then end them.

    A runner that was stopped, or hangs, would let its tasks run on for ever.
    """
    give_up_at = time.monotonic() + most_s
    killed_at = None
    while runners := _runners_of(engine):
        now = time.monotonic()
        if now >= give_up_at:
            if killed_at is not None and now >= killed_at + RUNNERS_WITHIN_S:
                return runners
            killed_at = killed_at or now
            for runner in runners:
                signal_process(runner, SIGKILL)
        time.sleep(LOOK_S)
    return []


def _runners_of(engine: GoneEngine) -> list[Process]:
    now = read_process(engine.pid)
    if now is not None and now.start != engine.start:
        # Its number is another's now: nothing of its session was left, or it would be taken.
        return []
    return [
        process for process in survey().values()
        if process.session == engine.pid and not process.is_dead
        and process.start >= engine.start and _is_engine_or_runner(process.pid)
    ]


def is_same_process(pid: int, start: int) -> bool:
    """Whether the process that had this number and start time still lives."""
    process = read_process(pid)
    return process is not None and process.start == start and not process.is_dead
