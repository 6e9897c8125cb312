"""Engines as they are noted beside a run, so that a later driver finds what lived on.

A line of ``<prefix>_engines.json`` names an engine's process, where it listens while it
is alone and where it keeps reports then. It is written before the engine can have got a
task. The driver that owns the prefix is the only one that writes the file.
"""

from __future__ import annotations

import os

from overnight.errors import ResumeRefused
from overnight.formats.tasklog import json_value
from overnight.guard.leftovers import GoneEngine, is_same_process
from overnight.guard.processes import boot_id, place, process_identity

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
        host: Where its number means something (``guard.processes.place``).
        node: The same as rows have it.
        run: DISBATCH_JOBID of its tasks.
        rank: DISBATCH_ENGINE_RANK of its tasks.
        attach: Socket it listens on while it is alone.
        spools: Files in which it may keep reports; no other engine has these.
        folders: The run's folder, under the names that PWD may give it.
        key: Of one that joins by itself: it calls its run under this name, again and again.
        label: Of the context of such a one.
        ssh: What ssh calls its host; empty where it was started without ssh.
        step: Of Slurm, ``JOB.STEP``, where it is part of one.
    """

    __slots__ = (
        "attach", "boot", "folders", "host", "key", "label", "node", "pid", "rank", "run",
        "spools", "ssh", "start", "step",
    )

    def __init__(
        self, pid: int, start: int, boot: str, host: str, node: str, run: str, rank: int,
        attach: str, spools: Sequence[str], folders: Sequence[str], *,
        key: str = "", label: str = "", ssh: str = "", step: str = "",
    ) -> None:
        self.ssh = ssh
        self.pid = pid
        self.start = start
        self.boot = boot
        self.host = host
        self.node = node
        self.run = run
        self.rank = rank
        self.attach = attach
        self.spools = spools
        self.folders = folders
        self.key = key
        self.label = label
        self.step = step

    @property
    def is_here(self) -> bool:
        """Whether it was started on this host."""
        return self.host == place()

    @property
    def is_of_this_boot(self) -> bool:
        """Whether this host has not been started anew since; else nothing of it is left."""
        return self.boot == boot_id()

    def lives(self) -> bool:
        """Whether its process, on this host, has not ended."""
        return self.is_of_this_boot and is_same_process(self.pid, self.start)

    def gone(self) -> GoneEngine:
        """The same, once its process has ended: whose leftovers are to be looked for."""
        return GoneEngine(self.run, self.rank, self.pid, self.start, self.folders)

    def line(self) -> bytes:
        """As it is noted."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json_value(fields).replace("\n", "").encode() + b"\n"


def engine_of(pid: int, setup: Setup, node: str) -> NotedEngine:
    """An engine on this host that has just been started with these settings."""
    start, boot = process_identity(pid)
    folders = [setup.cwd, *([os.environ["PWD"]] if "PWD" in os.environ else [])]
    return NotedEngine(pid, start, boot, place(), node, setup.run, setup.rank, setup.attach,
                       setup.spools, folders)


def note(files: RunFiles, engine: NotedEngine) -> None:
    """Write down how a later driver of this run finds the engine.

    An engine on another machine outlives this one: its note has to be on the disk.

    Raises:
        OSError: It cannot be written; the engine must not get a task then.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(files.engines, flags, 0o644)
    try:
        line = _after_torn(fd) + engine.line()
        if os.write(fd, line) < len(line):
            raise OSError(28, os.strerror(28), files.engines)  # a full disk gives a short write
        if engine.ssh or engine.key:
            os.fsync(fd)
            _sync_folder(os.path.dirname(files.engines))
    finally:
        os.close(fd)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError:
        pass  # some network file systems have no such thing, and need none
    finally:
        os.close(fd)


def _after_torn(fd: int) -> bytes:
    """What ends a line that a driver killed in the middle of it has left."""
    size = os.fstat(fd).st_size
    return b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""


def noted_engines(files: RunFiles) -> list[NotedEngine]:
    """Engines of this run, in the order of their start; none if none was noted.

    Raises:
        ResumeRefused: A whole line cannot be understood: its engine may live.
    """
    try:
        with open(files.engines, "rb") as file:
            *lines, _torn = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    return [engine for line in lines if (engine := _parse(line, files)) is not None]


def _parse(line: bytes, files: RunFiles) -> NotedEngine | None:
    """The engine of a whole line; None where a torn one was closed by a later driver.

    The engine of a torn line had got no task yet. A line that another version of this
    program wrote may name an engine that lives.
    """
    import json  # only a resume reads notes, and pays 3 ms for it

    try:
        fields = json.loads(line)
    except ValueError:
        return None
    try:
        return NotedEngine(**fields)
    except TypeError as error:
        raise ResumeRefused(
            f"an engine is noted in words of another version: {error}", where=files.engines,
            kept="nothing was started; the engine may still run tasks",
            do="resume with the version that ran it; or, if you know that nothing of it runs"
               " any more, remove that file",
        ) from error


def note_again(files: RunFiles, engines: Sequence[NotedEngine]) -> None:
    """Let these be all the engines of the run that are noted; the file is whole or as it was.

    Raises:
        OSError: It cannot be written.
    """
    draft = f"{files.engines}.{os.urandom(4).hex()}"
    with open(draft, "wb") as file:
        file.write(b"".join(engine.line() for engine in engines))
        file.flush()
        os.fsync(file.fileno())  # spools that are durable are found through it alone
    os.replace(draft, files.engines)
