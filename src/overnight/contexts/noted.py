"""Engines as they are noted beside a run, so that a later driver finds what lived on.

A line of ``<prefix>_engines.json`` names an engine's process, where it listens while it
is alone and where it keeps reports then. It is written before the engine can have got a
task. The driver that owns the prefix is the only one that writes the file.
"""

from __future__ import annotations

import json
import os

from overnight.guard.processes import boot_id, process_identity
from overnight.guard.sweep import is_same_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.model.messages import Setup
    from overnight.model.run import RunFiles


class NotedEngine:
    """An engine of this or of an earlier driver.

    Attributes:
        pid: Of its process.
        start: Start time of that, in clock ticks since boot.
        boot: Boot id of its host.
        host: Name of that host.
        node: The same as rows have it.
        run: DISBATCH_JOBID of its tasks.
        rank: DISBATCH_ENGINE_RANK of its tasks.
        attach: Socket it listens on while it is alone.
        spools: Files in which it may keep reports; no other engine has these.
    """

    __slots__ = ("attach", "boot", "host", "node", "pid", "rank", "run", "spools", "start")

    def __init__(
        self, pid: int, start: int, boot: str, host: str, node: str, run: str, rank: int,
        attach: str, spools: Sequence[str],
    ) -> None:
        self.pid = pid
        self.start = start
        self.boot = boot
        self.host = host
        self.node = node
        self.run = run
        self.rank = rank
        self.attach = attach
        self.spools = spools

    @property
    def is_here(self) -> bool:
        """Whether it was started on this host."""
        return self.host == os.uname().nodename

    @property
    def is_of_this_boot(self) -> bool:
        """Whether this host has not been started anew since; else nothing of it is left."""
        return self.boot == boot_id()

    def lives(self) -> bool:
        """Whether its process, on this host, has not ended."""
        return self.is_of_this_boot and is_same_process(self.pid, self.start)

    def line(self) -> bytes:
        """As it is noted."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields).encode() + b"\n"


def engine_of(pid: int, setup: Setup, node: str) -> NotedEngine:
    """An engine on this host that has just been started with these settings."""
    start, boot = process_identity(pid)
    return NotedEngine(pid, start, boot, os.uname().nodename, node, setup.run, setup.rank,
                       setup.attach, setup.spools)


def note(files: RunFiles, engine: NotedEngine) -> None:
    """Write down how a later driver of this run finds the engine.

    Raises:
        OSError: It cannot be written; the engine must not get a task then.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(files.engines, flags, 0o644)
    try:
        line = _after_torn(fd) + engine.line()
        if os.write(fd, line) < len(line):
            raise OSError(28, os.strerror(28), files.engines)  # a full disk gives a short write
    finally:
        os.close(fd)


def _after_torn(fd: int) -> bytes:
    """What ends a line that a driver killed in the middle of it has left."""
    size = os.fstat(fd).st_size
    return b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""


def noted_engines(files: RunFiles) -> list[NotedEngine]:
    """Engines of this run, in the order of their start; none if none was noted."""
    try:
        with open(files.engines, "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    return [engine for line in lines if (engine := _parse(line)) is not None]


def _parse(line: bytes) -> NotedEngine | None:
    """The engine of a line; None for a torn one, whose engine had got no task yet."""
    try:
        return NotedEngine(**json.loads(line))
    except (ValueError, TypeError):
        return None


def note_again(files: RunFiles, engines: Sequence[NotedEngine]) -> None:
    """Let these be all the engines of the run that are noted; the file is whole or as it was.

    Raises:
        OSError: It cannot be written.
    """
    draft = f"{files.engines}.{os.urandom(4).hex()}"
    with open(draft, "wb") as file:
        file.write(b"".join(engine.line() for engine in engines))
    os.replace(draft, files.engines)
