"""A driver for engines under test: it starts a real one, talks to it, and waits on conditions.

Every wait has a limit; at the end of the test nothing of the engine is left, or the
test fails.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from overnight.driver.package import pack
from overnight.formats import link as f
from overnight.formats.bootstrap import engine_command
from overnight.guard.leftovers import GoneEngine, end_leftovers
from overnight.guard.processes import process_identity, survey
from overnight.model import messages as m
from overnight.model.attempt import Attempt
from overnight.model.report import Report
from overnight.model.task import NO_REPEAT, PerEngine, Task
from overnight.net.link import Link

LIMIT_S = 20.0


def attempt(id: int, command: bytes | str = b"true", number: int = 1) -> Attempt:
    """An attempt at a task in line ``id + 1``."""
    data = command.encode() if isinstance(command, str) else command
    return Attempt(Task(id, id + 1, NO_REPEAT, data), number)


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    """Wait for a condition, or fail and say which."""
    give_up_at = time.monotonic() + LIMIT_S
    nap = select.poll()
    while not is_true():
        assert time.monotonic() < give_up_at, f"waited {LIMIT_S:g} s for this: {what}"
        nap.poll(5)


def setup_for(folder: Path, **changes: object) -> m.Setup:
    """A setup of a run in this folder."""
    values: dict[str, object] = {
        "run": f"run_{folder.name}_{os.getpid()}", "name_tasks": "Tasks", "generation": 1,
        "rank": 0, "slots": 2, "cores_per_task": 1, "cwd": str(folder), "variables": [],
        "always_shell": False, "late_output_s": 5.0, "leaves_children": True,
        "timeout_s": None, "kill_after_s": 2.0, "output_dir": None,
        "spools": [str(folder / "spool")], "attach": str(folder / "door" / "attach"),
        "keep_reports_s": 3600.0,
    }
    return m.Setup(**(values | changes))  # type: ignore[arg-type]


class Driver:
    """The driver's end of one engine.

    Attributes:
        setup: What the engine is told.
        reports: Of tasks, in the order they came.
        commands: Reports of per-engine commands, each with whether it was a START.
        kept: Reports with their attempts, from a time without driver.
        recalled: Ids handed back.
        notices: Texts for the log.
        rooms: Numbers of slots, where they were not what it was told.
        kinds: Of all frames, in order.
    """

    def __init__(self, setup: m.Setup, fd: int, acknowledges: bool = True) -> None:
        self.setup = setup
        self.link = Link(fd, fd, awaits_magic=True)
        self.hello: dict[str, object] = {}
        self.running: list[Attempt] = []
        self.reports: list[Report] = []
        self.commands: list[tuple[bool, Report]] = []
        self.kept: list[tuple[Attempt, Report]] = []
        self.recalled: list[int] = []
        self.notices: list[str] = []
        self.rooms: list[int] = []
        self.kinds: list[int] = []
        self.last_sequence = 0
        self._acknowledges = acknowledges

    # ---- saying

    def send(self, kind: int, payload: bytes = b"") -> None:
        self.link.send(kind, payload)
        self.link.flush()

    def set_up(self) -> None:
        self.send(m.SETUP, f.encode_control(f.setup_to_mapping(self.setup)))

    def open(self, commands: Sequence[PerEngine] = ()) -> None:
        """Bring the engine to where it takes tasks."""
        self.wait(lambda: bool(self.hello), "hello")
        self.set_up()
        self.send(m.START, f.encode_commands(commands))
        self.wait(lambda: m.OPENED in self.kinds, "opened")

    def assign(self, *attempts: Attempt) -> None:
        self.send(m.ASSIGN, f.encode_attempts(attempts))

    def run(self, *commands: bytes | str) -> list[Report]:
        """Have commands run; their reports in the order of the commands."""
        first = max((r.task_id for r in self.reports), default=-1) + 1
        ids = range(first, first + len(commands))
        self.assign(*[attempt(id, command) for id, command in zip(ids, commands, strict=True)])
        return [self.report_of(id) for id in ids]

    def assign_and_end(self, id: int) -> Report:
        """Have a long task started and ended; its report."""
        mark = f"started.{id}"
        self.assign(attempt(id, f"touch {mark}; sleep 600 & wait; sleep 600"))
        wait_until((Path(self.setup.cwd) / mark).exists, "a task to be ended runs")
        self.end([id])
        return self.report_of(id)

    def end(self, ids: Sequence[int] | None, reason: str = "test", **changes: object) -> None:
        mapping: dict[str, object] = {
            "ids": None if ids is None else list(ids), "reason": reason, "signal": 15,
            "kill_after_s": 2.0, "timed_out": False,
        }
        self.send(m.END, f.encode_control(mapping | changes))

    def acknowledge(self) -> None:
        self.send(m.ACK, f.encode_number(self.last_sequence))

    def close(self, runs_stop: bool = True) -> None:
        """Let the engine finish and leave."""
        self.send(m.CLOSE, f.encode_control({"run_stop": runs_stop}))
        self.wait(lambda: self.link.closed, "the engine leaves")

    def hang_up(self) -> None:
        """Be gone, as a driver that was killed is."""
        if not self.link.closed:
            self.link.close()

    # ---- listening

    def wait(self, is_true: Callable[[], bool], what: str) -> None:
        """Take what the engine says until a condition holds."""
        give_up_at = time.monotonic() + LIMIT_S
        poll = select.poll()
        if not self.link.closed:
            poll.register(self.link.read_fd, select.POLLIN)
        while not is_true():
            left_s = give_up_at - time.monotonic()
            assert left_s > 0, f"waited {LIMIT_S:g} s for this: {what}"
            assert not self.link.closed, f"the link ended while waiting for this: {what}"
            poll.poll(min(left_s, 0.05) * 1000)
            self.listen()

    def listen(self) -> None:
        for kind, payload in self.link.receive():
            self.kinds.append(kind)
            self._take(kind, payload)
        if self.link.wants_write:
            self.link.flush()

    def _take(self, kind: int, payload: bytes) -> None:
        sequence = 0
        if kind == m.HELLO:
            self.hello = f.decode_control(payload)
        elif kind == m.RUNNING:
            self.running += f.decode_attempts(payload)
        elif kind == m.ENDED:
            sequence, reports = f.decode_reports(payload)
            self.reports += reports
        elif kind == m.KEPT:
            sequence, kept = f.decode_kept(payload)
            self.kept += kept
        elif kind == m.PE_ENDED:
            sequence, commands = f.decode_per_engine_reports(payload)
            self.commands += commands
        elif kind == m.RECALLED:
            self.recalled += f.decode_ids(payload)
        elif kind in (m.ROOM, m.NOTICE):
            self._note(f.decode_control(payload))
        if sequence:
            self.last_sequence = sequence
            if self._acknowledges:
                self.acknowledge()

    def _note(self, said: dict[str, Any]) -> None:
        if "slots" in said:
            self.rooms.append(said["slots"])
        else:
            self.notices.append(str(said["text"]))

    def report_of(self, id: int) -> Report:
        """The report of a task, waited for."""
        self.wait(lambda: any(r.task_id == id for r in self.reports), f"report of task {id}")
        return next(r for r in self.reports if r.task_id == id)


class Started:
    """An engine's process, with a driver connected to it."""

    def __init__(self, driver: Driver, pid: int, log: Path) -> None:
        self.driver = driver
        self.pid = pid
        self.log = log
        self.status: int | None = None
        self._start = process_identity(pid)[0]

    def gone(self) -> GoneEngine:
        """Whose leftovers are to be looked for, once it has ended."""
        setup = self.driver.setup
        folders = [setup.cwd, os.environ.get("PWD", setup.cwd)]
        return GoneEngine(setup.run, setup.rank, self.pid, self._start, folders)

    def has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def runners(self) -> list[int]:
        """Pids of its runners."""
        return [p.pid for p in survey().values() if p.parent == self.pid and not p.is_dead]

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)


_packed: dict[str, str] = {}


def engine_file(folder: Path) -> str:
    """The engine file, packed once a session."""
    key = str(os.getpid())
    if key not in _packed or not os.path.exists(_packed[key]):
        path = str(folder / "engine.pyz")
        pack(path)
        _packed[key] = path
    return _packed[key]


@contextmanager
def started(
    folder: Path, python: str = sys.executable, environment: dict[str, str] | None = None,
    acknowledges: bool = True, through: Sequence[str] = (), launch: str = "", **changes: object,
) -> Iterator[Started]:
    """An engine in its own process; ended at the end, and looked for afterwards.

    ``through`` is a command that becomes the one given to it; ``launch`` the name of a step
    of which the engine is the first rank.
    """
    setup = setup_for(folder, **changes)
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    log = folder / "engine.log"
    writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    command = [*through, *engine_command(python, engine_file(folder), theirs.fileno())]
    command += ["--launch", launch] if launch else []
    pid = os.posix_spawn(
        command[0], command,
        os.environ if environment is None else environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), writing, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    theirs.close()
    engine = Started(Driver(setup, ours.detach(), acknowledges), pid, log)
    try:
        yield engine
    finally:
        engine.driver.hang_up()
        _end(engine, setup)
    assert log.read_text() == "", "the engine complained"


def _end(engine: Started, setup: m.Setup) -> None:
    if not engine.has_ended():
        os.kill(engine.pid, signal.SIGTERM)
        give_up_at = time.monotonic() + LIMIT_S
        nap = select.poll()
        while not engine.has_ended():
            if time.monotonic() > give_up_at:
                os.kill(engine.pid, signal.SIGKILL)
                os.waitpid(engine.pid, 0)
                break
            nap.poll(5)
    assert end_leftovers(engine.gone()) == [], "what it left can be ended"
