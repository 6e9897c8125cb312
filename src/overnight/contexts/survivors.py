"""Engines that outlive their driver: how they are noted, found again and collected.

Before an engine gets its first task, a line in ``<prefix>_engines.json`` names its
process and where it listens while it is alone. A later driver of the run connects to
those that live, and reads the spools of those that have left.
"""

from __future__ import annotations

import json
import os
import socket
import time

from overnight.core.events import KeptReports
from overnight.driver.loop import Survivors
from overnight.errors import LinkBroken, ResumeRefused
from overnight.formats.spool import parse_spool
from overnight.formats.statusfile import read_rows
from overnight.guard.processes import boot_id, process_identity
from overnight.guard.sweep import end_marked, is_same_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup
    from overnight.model.report import Report
    from overnight.model.run import RunFiles

ANSWER_WITHIN_S = 15.0
LOOK_EVERY_S = 0.02
BLOCK = 1 << 20
NO_ENGINE = -1


def note_engine(files: RunFiles, pid: int, setup: Setup, node: str) -> None:
    """Write down how a later driver finds this engine.

    Raises:
        OSError: It cannot be written; the engine must not get a task then.
    """
    start, boot = process_identity(pid)
    line = json.dumps({
        "pid": pid, "start": start, "boot": boot, "host": os.uname().nodename, "node": node,
        "run": setup.run, "rank": setup.rank, "attach": setup.attach, "spools": setup.spools,
    })
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(files.engines, flags, 0o644)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)


class AttachedEngine:
    """An engine of an earlier driver, connected again."""

    def __init__(self, link: socket.socket, noted: dict[str, Any], setup: Setup) -> None:
        self.setup = setup
        self.node = str(noted["node"])
        self.read_fd = self.write_fd = link.detach()
        self._noted = noted

    def is_gone(self) -> bool:
        """Whether its process has ended."""
        return not _lives(self._noted)

    def end(self) -> None:
        """End its process now, if it is still the one that was noted."""
        if _lives(self._noted):
            os.kill(int(self._noted["pid"]), 9)

    def prove_ended(self) -> None:
        """End whatever it had started and wait for that."""
        while _lives(self._noted):
            time.sleep(LOOK_EVERY_S)
        _end_left_behind(self._noted)


def find_survivors(
    runs: Sequence[RunFiles], status_files: Sequence[str], make_setup: Callable[[int], Setup]
) -> Survivors:
    """What is left of these runs' drivers.

    Args:
        runs: Earlier drivers' runs.
        status_files: Where their rows are: what has one already is not taken again.
        make_setup: The settings for an engine with this rank.

    Raises:
        ResumeRefused: An engine lives and does not answer: its tasks may still run.
    """
    engines, kept = [], []
    for files in runs:
        for noted in _noted_engines(files):
            link = _connect(noted)
            if link is not None:
                engines.append(AttachedEngine(link, noted, make_setup(int(noted["rank"]))))
            else:
                kept += list(_kept_by(noted))
    if not engines and not kept:
        return Survivors()
    recorded = set(_recorded_attempts(status_files))
    events = [
        KeptReports(NO_ENGINE, 0, new, node, rank)
        for pairs, node, rank in kept
        if (new := [pair for pair in pairs if _key(pair[1]) not in recorded])
    ]
    return Survivors(engines, events, lambda attempt, report: _key(report) in recorded)


def spools_of(runs: Sequence[RunFiles]) -> list[str]:
    """Spool files of engines that have left: to be removed once their rows are durable."""
    return [
        path for files in runs for noted in _noted_engines(files) if not _lives(noted)
        for path in noted["spools"] if os.path.exists(path)
    ]


def _noted_engines(files: RunFiles) -> list[dict[str, Any]]:
    try:
        with open(files.engines, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    noted = []
    for line in lines:
        try:
            noted.append(json.loads(line))
        except ValueError:
            continue  # torn: its engine had got no task yet
    here = os.uname().nodename
    return [one for one in noted if one["host"] == here]


def _lives(noted: dict[str, Any]) -> bool:
    return noted["boot"] == boot_id() and is_same_process(int(noted["pid"]), int(noted["start"]))


def _connect(noted: dict[str, Any]) -> socket.socket | None:
    """A connection to the engine, or None once it is sure to be gone."""
    give_up_at = time.monotonic() + ANSWER_WITHIN_S
    while _lives(noted):
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(noted["attach"])
            return link
        except OSError:
            link.close()
        if time.monotonic() > give_up_at:
            raise ResumeRefused(
                f"an engine of this run lives (process {noted['pid']}) and does not answer",
                where=noted["attach"], kept="nothing was started; its tasks may still run",
                do="wait for it, or end that process, and resume again",
            )
        time.sleep(LOOK_EVERY_S)
    _end_left_behind(noted)
    return None


def _end_left_behind(noted: dict[str, Any]) -> None:
    """An engine that was killed may have left tasks: they must not run beside their rerun."""
    if noted["boot"] == boot_id():
        end_marked(noted["run"], int(noted["rank"]), engine_pid=int(noted["pid"]))


def _kept_by(
    noted: dict[str, Any],
) -> Iterator[tuple[list[tuple[Attempt, Report]], str, int]]:
    for path in noted["spools"]:
        try:
            with open(path, "rb") as file:
                spooled = parse_spool(file.read())
        except FileNotFoundError:
            continue
        except LinkBroken as error:
            raise ResumeRefused(
                f"reports of an engine cannot be read: {error.what}", where=path,
                kept="nothing was started", do="move that file away to run its tasks again",
            ) from error
        yield spooled.kept, str(noted["node"]), int(noted["rank"])


def _recorded_attempts(status_files: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    for path in status_files:
        with open(path, "rb", buffering=0) as file:
            blocks = iter(lambda file=file: file.read(BLOCK), b"")  # type: ignore[misc]
            for row in read_rows(blocks):
                if row.kind == "N" or row.kind == "Z":
                    yield row.id, row.pid, f"{row.started_at:.3f}"


def _key(report: Report) -> tuple[int, int, str]:
    """What tells one execution from all others in a status file."""
    return report.task_id, report.pid, f"{report.started_at:.3f}"
