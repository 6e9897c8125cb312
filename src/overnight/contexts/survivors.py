"""What outlived earlier drivers of a run: engines that live on, and what others wrote down.

A driver that resumes connects to the engines that live, proves that nothing runs any more
of those that do not, and reads the spools of those. An engine it cannot ask about stops
the resume: its tasks may still run, and none may run twice at once.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

from overnight.contexts.local import NotDialled
from overnight.contexts.noted import note_again, noted_engines
from overnight.core.events import KeptReports
from overnight.core.recorded import Recorded, key
from overnight.errors import LinkBroken, ResumeRefused
from overnight.formats.spool import parse_spool
from overnight.formats.statusfile import parse_row
from overnight.guard.leftovers import end_leftovers
from overnight.guard.processes import read_process, signal_process
from overnight.ports import Survivors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Set

    from overnight.contexts.noted import NotedEngine
    from overnight.contexts.ssh import SshEngine
    from overnight.contexts.survivors_far import FarSurvivors
    from overnight.core.kept import Pair
    from overnight.core.recorded import Commands
    from overnight.formats.spool import Spooled
    from overnight.formats.statusfile import OldRow
    from overnight.model.messages import Setup
    from overnight.model.run import RunFiles

ANSWER_WITHIN_S = 15.0
LOOK_EVERY_S = 0.02
NO_ENGINE = -1
KILL_AFTER_S = 2.0
SIGKILL = 9


class AttachedEngine(NotDialled):
    """An engine of an earlier driver, connected again."""

    is_survivor = True

    def __init__(
        self, link: socket.socket, noted: NotedEngine, setup: Setup,
        read_kept: Callable[[NotedEngine], Sequence[KeptReports]], recorded: Recorded,
    ) -> None:
        """Take over a connection.

        Args:
            link: To the engine; it has said nothing yet.
            noted: Who it is.
            setup: What it will be told.
            read_kept: Reads what an engine that is gone has left in its spools.
            recorded: Rows that stand already.
        """
        self.setup = setup
        self.node = noted.node
        self.read_fd = self.write_fd = link.detach()
        self.noted = noted
        self._read_kept = read_kept
        self._recorded = recorded

    def is_gone(self) -> bool:
        """Whether its process has ended."""
        return not self.noted.lives()

    def end(self) -> None:
        """End its process now, if it is still the one that was noted."""
        process = read_process(self.noted.pid)
        if process is not None and process.start == self.noted.start:
            signal_process(process, SIGKILL)

    def reports_left(self) -> Sequence[KeptReports]:
        """What it kept: it left, or died, before it could say so on its link.

        Raises:
            ResumeRefused: It lives on: it has another driver, which is not older than this.
        """
        give_up_at = time.monotonic() + ANSWER_WITHIN_S
        while self.noted.lives():
            if time.monotonic() > give_up_at:
                raise _unwilling(self.noted)
            time.sleep(LOOK_EVERY_S)
        return self._read_kept(self.noted)

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        """End whatever it had started, but what finished tasks were allowed to leave.

        Returns:
            Numbers of processes that cannot be ended; none: nothing of it runs any more.
        """
        while self.noted.lives():
            time.sleep(LOOK_EVERY_S)
        return leftovers_of(self.noted, self.setup, released, self._recorded)


def leftovers_of(
    noted: NotedEngine, setup: Setup, released: Set[int], recorded: Recorded
) -> list[int]:
    """End what an engine whose process has ended here had started, but what was let go.

    Returns:
        Numbers of processes that cannot be ended.
    """
    def is_released(task_id: int, started_at: float) -> bool:
        return task_id in released or recorded.is_released(task_id, started_at)

    gone = noted.gone()
    left = end_leftovers(gone, setup.kill_after_s, is_released)
    if setup.run != gone.run:
        gone.run = setup.run  # it took tasks under this run's name as well
        left += end_leftovers(gone, setup.kill_after_s, is_released)
    return [process.pid for process in left]


def find_survivors(
    own: RunFiles, runs: Sequence[RunFiles], status_files: Sequence[str], commands: Commands,
    make_setup: Callable[[NotedEngine], Setup], reach: Callable[[NotedEngine], SshEngine],
) -> Survivors:
    """What is left of these runs' drivers. What is found is noted for the driver after this one.

    Args:
        own: Files of the run that takes them over; their prefix is the caller's.
        runs: Earlier drivers' runs, ``own`` among them where it is gone on with.
        status_files: Where their rows are: what has one already is not taken again.
        commands: Per-engine commands of the list, for rows of those that ran meanwhile.
        make_setup: The settings for an engine that is taken over.
        reach: The handle of one that was started through ssh.

    Raises:
        ResumeRefused: An engine or a driver may still run tasks of these runs.
    """
    found = list(_noted_in(runs))
    recorded = _recorded(status_files, commands) if found else Recorded()
    far = _look_for_far([reach(noted) for noted, _ in found if noted.ssh], recorded)
    living, gone, awaited = [], [], []
    for noted, files in found:
        if noted.ssh:
            continue
        is_over = bool(noted.step) and _step_has_ended(noted)
        if is_over and not noted.is_here:
            _sweep_step(noted, files)
            gone.append(noted)
            continue
        if not is_over and _calls_again(noted, files, own):
            awaited.append(noted)
            continue
        if not ((noted.is_here and not noted.step) or is_over or has_left(noted)):
            raise _elsewhere(noted, files)
        link = _connect(noted)
        if link is None:
            _end_left_behind(noted, recorded)
            with suppress(OSError):
                os.unlink(noted.attach)  # one that was killed left it
            gone.append(noted)
        else:
            living.append((link, noted))
    spooled = [noted for noted in gone if any(map(os.path.exists, noted.spools))]
    _note_what_is_left(own, [
        *(noted for _, noted in living), *spooled, *awaited, *(noted for _, noted in far.kept),
        *(handle.noted for handle in far.living if handle.noted),
    ])
    if not living and not spooled and not awaited and not far.living and not far.kept:
        return Survivors()
    spools = Spools(recorded)
    return Survivors(
        [*(AttachedEngine(link, noted, make_setup(noted), spools.read, recorded)
           for link, noted in living), *far.living],
        [event for noted in spooled for event in spools.read(noted)]
        + [event for data, noted in far.kept for event in spools.sort_out(data, noted)],
        recorded,
        [path for noted in (*spooled, *(noted for _, noted in (*living, *far.kept)))
         for path in noted.spools],
        awaited,
    )


def _sweep_step(noted: NotedEngine, files: RunFiles) -> None:
    """What it may have left on its node is ended.

    Raises:
        ResumeRefused: Nobody could look, or something cannot be ended.
    """
    from overnight.contexts.stepsweep import sweep

    if not has_left(noted) and sweep(noted, files.engine_file, KILL_AFTER_S, ()):
        raise _elsewhere(noted, files)


def _step_has_ended(noted: NotedEngine) -> bool:
    """Whether Slurm says so of the step that an engine was part of.

    One whose engine has ended here is about to end: its other processes end what they run.
    """
    from overnight.guard.slurmproof import has_ended

    give_up_at = time.monotonic() + ANSWER_WITHIN_S
    while not has_ended(noted.step, noted.node):
        is_ending = noted.is_here and not noted.lives()
        if not is_ending or time.monotonic() > give_up_at:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def _calls_again(noted: NotedEngine, files: RunFiles, own: RunFiles) -> bool:
    """Whether the engine, as far as anybody here can tell, lives and will call this driver.

    It reads the join file of the run that it has joined, so another run cannot await it.
    """
    if not noted.key or files.prefix != own.prefix or has_left(noted):
        return False
    return noted.lives() or not noted.is_here


def has_left(noted: NotedEngine) -> bool:
    """Whether the engine has written down that it left, with nothing running.

    Raises:
        ResumeRefused: Its spool cannot be read.
    """
    return bool(noted.key) and any(
        _read_spool(path).has_closed for path in noted.spools if os.path.exists(path)
    )


def _look_for_far(handles: Sequence[SshEngine], recorded: Recorded) -> FarSurvivors:
    from overnight.contexts.survivors_far import FarSurvivors, look_for_far

    return look_for_far(handles, recorded) if handles else FarSurvivors()


class Spools:
    """Reads what engines kept, without what has a row already."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def read(self, noted: NotedEngine) -> list[KeptReports]:
        """What this engine left in its spools.

        Raises:
            ResumeRefused: One cannot be read.
        """
        return self.sort_out(
            [_read_spool(path) for path in noted.spools if os.path.exists(path)], noted
        )

    def sort_out(self, spools: Sequence[Spooled], noted: NotedEngine) -> list[KeptReports]:
        """What is new in these spools of an engine."""
        new = self._recorded.news([spooled.kept for spooled in spools])
        return [self._kept(pairs, spooled, noted)
                for pairs, spooled in zip(new, spools, strict=True)]

    def _kept(
        self, new: Sequence[Pair], spooled: Spooled, noted: NotedEngine
    ) -> KeptReports:
        recorded = self._recorded
        return KeptReports(
            NO_ENGINE, 0, new, noted.node, noted.rank,
            [(recorded.command(at_start, report.task_id), report)
             for at_start, report in spooled.commands if not recorded.has_command(report)],
        )


def _noted_in(runs: Sequence[RunFiles]) -> Iterator[tuple[NotedEngine, RunFiles]]:
    """Engines of all these runs, each process once, and where each is noted."""
    seen = set()
    for files in runs:
        for noted in noted_engines(files):
            identity = (noted.pid, noted.start, noted.boot, noted.run, noted.host)
            if identity not in seen:
                seen.add(identity)
                yield noted, files


def _elsewhere(noted: NotedEngine, files: RunFiles) -> ResumeRefused:
    return ResumeRefused(
        f"an engine of this run was on {noted.node} (process {noted.pid}), and from here nobody"
        " can tell whether its tasks still run", where=files.engines,
        kept="nothing was started",
        do="resume there; or, if you know that nothing of it runs there, remove"
           " that file",
    )


def _note_what_is_left(own: RunFiles, left: Sequence[NotedEngine]) -> None:
    """Should this driver be killed too, the next one finds no less, and nothing settled."""
    if left or noted_engines(own):
        note_again(own, left)


def _connect(noted: NotedEngine) -> socket.socket | None:
    """A connection to the engine, or None once it is sure that nothing of it runs."""
    give_up_at = time.monotonic() + ANSWER_WITHIN_S
    while noted.lives():
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(noted.attach)
            return link
        except OSError:
            link.close()
        if time.monotonic() > give_up_at:
            raise _unwilling(noted)
        time.sleep(LOOK_EVERY_S)
    return None


def _unwilling(noted: NotedEngine) -> ResumeRefused:
    return ResumeRefused(
        f"an engine of this run lives (process {noted.pid}) and does not answer",
        where=noted.attach, kept="nothing was started; its tasks may still run",
        do="wait for it, or end that process, and resume again",
    )


def _end_left_behind(noted: NotedEngine, recorded: Recorded) -> None:
    """An engine that was killed may have left tasks: they must not run beside their rerun."""
    if not noted.is_of_this_boot:
        return
    finished = {
        attempt.task.id: report.started_at + report.elapsed_s
        for path in noted.spools if os.path.exists(path)
        for attempt, report in _read_spool(path).kept
    }

    def is_released(task_id: int, started_at: float) -> bool:
        return started_at <= finished.get(task_id, 0.0) or recorded.is_released(
            task_id, started_at
        )

    left = end_leftovers(noted.gone(), is_released=is_released)
    if left:
        raise ResumeRefused(
            "processes of this run's tasks cannot be ended: "
            + ", ".join(str(process.pid) for process in left),
            where=noted.node, kept="nothing was started",
            do="see what they hang on (a dead file system?), end them, and resume again",
        )


def _read_spool(path: str) -> Spooled:
    try:
        with open(path, "rb") as file:
            return parse_spool(file.read())
    except (OSError, LinkBroken) as error:
        reason = error.what if isinstance(error, LinkBroken) else error.strerror
        raise ResumeRefused(
            f"reports of an engine cannot be read: {reason}", where=path,
            kept="nothing was started", do="move that file away to run its tasks again",
        ) from error


def _recorded(status_files: Iterable[str], commands: Commands) -> Recorded:
    row_times: dict[int, tuple[float, float]] = {}
    command_keys = set()
    for row in _rows_in(status_files):
        if row.kind == "P":
            command_keys.add(key(row.id, row.pid, row.started_at))
        elif row.kind in "NZ":
            times = (row.started_at, row.finished_at)
            row_times[row.id] = max(times, row_times.get(row.id, times))
    return Recorded(row_times, command_keys, commands)


def _rows_in(status_files: Iterable[str]) -> Iterator[OldRow]:
    for path in status_files:
        with open(path, "rb") as file:
            for line in file:
                # A last row without its end may be cut: it settles nothing here.
                row = parse_row(line) if line.endswith(b"\n") else None
                if row is not None:
                    yield row
