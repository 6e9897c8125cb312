"""How an attempt becomes a process: its environment, its output, bash or no bash."""

from __future__ import annotations

import os
import time

from overnight.engine.capture import output_files, output_paths
from overnight.engine.lane import BASH, Lane
from overnight.engine.running import Running
from overnight.engine.spawn import Spawner
from overnight.formats.environment import attempt_variables, slot_environment
from overnight.model.messages import PER_ENGINE_SLOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.engine.capture import OutputFile
    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup

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
        base = self._environments.get(slot) or self._slot_environment(slot)
        environment = base + attempt_variables(attempt)
        if self._setup.output_dir is not None and slot != PER_ENGINE_SLOT:
            try:
                files = self._files(self._setup.output_dir, attempt)
            except OSError as error:
                self._say_not_kept(attempt, error)
            else:
                return self._start_into_files(slot, attempt, environment, *files)
        fds: tuple[int, ...] = ()
        try:
            fds = os.pipe2(os.O_CLOEXEC)
            fds += os.pipe2(os.O_CLOEXEC)
            out_fd, out, err_fd, err = fds
            os.set_blocking(out_fd, False)
            os.set_blocking(err_fd, False)
            started_at, started_mono = time.time(), time.monotonic()
            pid = self._spawn(attempt, slot, environment, out, err)
        except (OSError, ValueError) as error:
            for fd in fds:
                os.close(fd)
            raise _cannot_start(error) from error
        os.close(out)
        os.close(err)
        return Running(
            pid, slot, attempt, out_fd, err_fd, started_at, started_mono, self._setup
        )

    def _start_into_files(
        self, slot: int, attempt: Attempt, environment: list[bytes],
        out: OutputFile, err: OutputFile,
    ) -> Running:
        started_at, started_mono = time.time(), time.monotonic()
        try:
            pid = self._spawn(attempt, slot, environment, out.write_fd, err.write_fd)
        except (OSError, ValueError) as error:
            out.close(may_be_written=False)
            err.close(may_be_written=False)
            raise _cannot_start(error) from error
        running = Running(pid, slot, attempt, -1, -1, started_at, started_mono, self._setup)
        running.write_to(out, err)
        return running

    def _slot_environment(self, slot: int) -> list[bytes]:
        environment = slot_environment(self._inherited, self._setup, slot)
        self._environments[slot] = environment
        return environment

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

    def _say_not_kept(self, attempt: Attempt, error: OSError) -> None:
        task = attempt.task
        self._notice("ERROR", f"output of task {task.id} is counted and not kept: {error}")

    def _files(self, folder: str, attempt: Attempt) -> tuple[OutputFile, OutputFile]:
        parent = os.path.dirname(output_paths(folder, attempt.task.id, attempt.number)[0])
        if parent != self._made_folder:
            os.makedirs(parent, exist_ok=True)
            self._made_folder = parent
        return output_files(folder, attempt)


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
