"""Slots on this machine: one engine, a child of the driver, over a socketpair."""

from __future__ import annotations

import os
import signal
import socket
import sys

from overnight.contexts.noted import engine_of, note
from overnight.errors import NoResources
from overnight.formats.bootstrap import engine_command
from overnight.guard.leftovers import end_leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set
    from typing import Any

    from overnight.contexts.noted import NotedEngine
    from overnight.core.events import KeptReports
    from overnight.model.messages import Setup
    from overnight.model.run import RunFiles


class NotDialled:
    """What handles have in common of engines whose link is not dialled from here."""

    is_far = False
    is_survivor = False
    opening: Sequence[bytes] = ()

    def begin(self) -> None:
        """It has been started, or has come."""

    def meet(self, hello: Mapping[str, Any]) -> Sequence[str]:
        """Nothing to learn: what its host gives is known."""
        return ()

    def redial(self, released: Set[int]) -> None:
        """Nothing: its link ends with it, or it comes again by itself."""

    def words(self) -> str:
        """Why its link has ended."""
        return "its process ended"


class LocalEngine(NotDialled):
    """An engine process started by this driver."""

    def __init__(self, noted: NotedEngine, link: socket.socket, setup: Setup) -> None:
        self.pid = noted.pid
        self.setup = setup
        self.node = noted.node
        self.noted = noted
        self.read_fd = self.write_fd = link.detach()
        self._is_reaped = False

    def is_gone(self) -> bool:
        """Whether its process has ended; reaps it."""
        if not self._is_reaped:
            try:
                self._is_reaped = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
            except ChildProcessError:
                self._is_reaped = True
        return self._is_reaped

    def end(self) -> None:
        """End its process now. It is a child not yet reaped: its number is its own."""
        if not self.is_gone():
            os.kill(self.pid, signal.SIGKILL)

    def reports_left(self) -> Sequence[KeptReports]:
        """None: it has had no other driver. Its process is ended if need be."""
        self.end()
        return ()

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        """End whatever it had started, but what these tasks were allowed to leave.

        Returns:
            Numbers of processes that cannot be ended; none: nothing of it runs any more.
        """
        left = end_leftovers(
            self.noted.gone(), self.setup.kill_after_s,
            lambda task_id, started_at: task_id in released,
        )
        return [process.pid for process in left]


def start_local(files: RunFiles, label: str, node: str, setup: Setup) -> LocalEngine:
    """Start an engine on this machine.

    It is executed, never forked from the driver: a driver may run in a thread of
    somebody's program, and a fork of a process with memory costs milliseconds.

    Raises:
        NoResources: The process could not be started, or not be noted.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = _spawn(theirs, files.engine_file, files.engine_log(label, node, setup.rank))
        except OSError as error:
            ours.close()
            raise NoResources(
                f"the engine on this machine could not be started: {error.strerror}",
                where=error.filename or sys.executable,
            ) from error
    noted = engine_of(pid, setup, node)
    engine = LocalEngine(noted, ours, setup)
    try:
        note(files, noted)
    except OSError as error:
        engine.end()  # nobody would find it again; it has nothing to do yet
        os.close(engine.read_fd)
        raise NoResources(
            f"the engine on this machine cannot be noted: {error.strerror}",
            where=files.engines,
        ) from error
    return engine


def _spawn(theirs: socket.socket, engine_file: str, log: str) -> int:
    os.set_inheritable(theirs.fileno(), True)
    return os.posix_spawn(
        sys.executable,
        engine_command(sys.executable, engine_file, theirs.fileno()),
        dict(callers_environment()),
        file_actions=_streams(log),
    )


def _streams(log: str) -> list[tuple[int, int, str, int, int] | tuple[int, int, int]]:
    writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, writing, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]


def callers_environment() -> Mapping[bytes, bytes]:
    """The environment this process was given, without what the interpreter added.

    In a C locale Python sets LC_CTYPE for itself (PEP 538); tasks are to have the
    environment of whoever typed the command.
    """
    environment = dict(os.environb)
    if b"LC_CTYPE" in environment and not _was_given(b"LC_CTYPE"):
        del environment[b"LC_CTYPE"]
    return environment


def _was_given(name: bytes) -> bool:
    try:
        with open("/proc/self/environ", "rb") as file:
            return any(line.startswith(name + b"=") for line in file.read().split(b"\0"))
    except OSError:
        return True
