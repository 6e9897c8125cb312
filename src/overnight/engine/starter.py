"""How an attempt becomes a process: its environment, its output, bash or no bash."""

from __future__ import annotations

import os
import time

from overnight.engine.capture import OutputFile, Pipe, output_paths
from overnight.engine.lane import BASH, Lane
from overnight.engine.spawn import Spawner
from overnight.formats.environment import attempt_variables, marks, slot_environment
from overnight.guard.kin import Shell
from overnight.model.messages import PER_ENGINE_SLOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup

    Stream = Pipe | OutputFile

NO_ERRNO = 200
"""Code of what could not start for a reason that has no errno, as disBatch writes it."""


class CannotStart(Exception):
    """An attempt could not become a process.

    Attributes:
        code: errno, or ``NO_ERRNO``.
        reason: One line.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Running(Shell):
    """An attempt as a process.

    Attributes:
        slot: Where.
        attempt: What.
        out: Its standard output.
        err: Its standard error.
        started_at: Unix seconds.
        started_mono: The same moment by the clock that is never set back.
        elapsed_s: From there to its shell's end.
        is_over: Its shell has ended.
    """

    __slots__ = (
        "_setup", "attempt", "elapsed_s", "err", "is_over", "out", "slot", "started_at",
        "started_mono",
    )

    def __init__(
        self, pid: int, slot: int, attempt: Attempt, out: Stream, err: Stream,
        started_at: float, started_mono: float, setup: Setup,
    ) -> None:
        self.pid = pid
        self.usage = None
        self.signalled = _NOBODY
        self.slot = slot
        self.attempt = attempt
        self.out = out
        self.err = err
        self.started_at = started_at
        self.started_mono = started_mono
        self.elapsed_s = 0.0
        self.is_over = False
        self._setup = setup

    def marks(self) -> list[bytes]:
        """What the environments of its processes carry, and no others'."""
        return marks(self._setup, self.slot, self.attempt)


_NOBODY: frozenset[tuple[int, int]] = frozenset()


class Starter:
    """Starts the attempts of one runner, as one setup has it."""

    def __init__(
        self, setup: Setup, inherited: list[bytes], notice: Callable[[str, str], None]
    ) -> None:
        """Enter the tasks' directory.

        Args:
            setup: Of the run.
            inherited: The environment this engine was started with.
            notice: Takes level and text for the driver's log.
        """
        self._setup = setup
        self._inherited = inherited
        self._notice = notice
        self._spawner = Spawner()
        self._lane = Lane(self._spawner, setup)
        self._environments: dict[int, list[bytes]] = {}  # by slot, without the attempt's part
        self._made_folder = ""
        self._no_folder = _enter(setup.cwd)

    def start(self, slot: int, attempt: Attempt) -> Running:
        """Make a process of an attempt.

        Raises:
            CannotStart: There is none, and nothing of it is left.
        """
        if self._no_folder is not None:
            # A task in another directory would do its work in the wrong place.
            raise self._no_folder
        environment = self._environment(slot) + attempt_variables(attempt)
        try:
            out, err = self._streams(attempt, slot)
        except OSError as error:
            raise _cannot_start(error) from error
        started_at, started_mono = time.time(), time.monotonic()
        try:
            pid = self._spawn(attempt, slot, environment, out.write_fd, err.write_fd)
        except (OSError, ValueError) as error:
            _give_up(out)
            _give_up(err)
            raise _cannot_start(error) from error
        if out.is_ours:
            os.close(out.write_fd)
        if err.is_ours:
            os.close(err.write_fd)
        return Running(pid, slot, attempt, out, err, started_at, started_mono, self._setup)

    def _environment(self, slot: int) -> list[bytes]:
        known = self._environments.get(slot)
        if known is None:
            known = slot_environment(self._inherited, self._setup, slot)
            self._environments[slot] = known
        return known

    def _spawn(
        self, attempt: Attempt, slot: int, environment: list[bytes], out: int, err: int
    ) -> int:
        start = self._spawner.start
        program = self._lane.program(attempt, slot, environment)
        if program is not None:
            try:
                return start(*program, out, err)
            except OSError:
                pass  # bash then finds the same fault and says it as users know it
        arguments = (BASH, b"-c", attempt.task.command)
        return start(BASH, arguments, environment, out, err)

    def _streams(self, attempt: Attempt, slot: int) -> tuple[Stream, Stream]:
        folder = self._setup.output_dir
        if folder is not None and slot != PER_ENGINE_SLOT:
            try:
                return self._files(folder, attempt)
            except OSError as error:
                self._notice(
                    "ERROR",
                    f"output of task {attempt.task.id} is counted and not kept: {error}",
                )
        out = Pipe()
        try:
            return out, Pipe()
        except OSError:
            _give_up(out)
            raise

    def _files(self, folder: str, attempt: Attempt) -> tuple[Stream, Stream]:
        paths = output_paths(folder, attempt)
        parent = os.path.dirname(paths[0])
        if parent != self._made_folder:
            os.makedirs(parent, exist_ok=True)
            self._made_folder = parent
        out = OutputFile(paths[0])
        try:
            return out, OutputFile(paths[1])
        except OSError:
            _give_up(out)
            raise


def _give_up(stream: Stream) -> None:
    """Close a stream whose child there will not be."""
    if stream.is_ours:
        os.close(stream.write_fd)
    stream.close(may_be_written=False)


def _enter(folder: str) -> CannotStart | None:
    try:
        os.chdir(folder)
    except OSError as error:
        return CannotStart(error.errno or NO_ERRNO, f"cannot enter {folder!r}: {error.strerror}")
    return None


def _cannot_start(error: OSError | ValueError) -> CannotStart:
    if isinstance(error, OSError):
        return CannotStart(error.errno or NO_ERRNO, error.strerror or str(error))
    return CannotStart(NO_ERRNO, "the command holds a NUL byte")
