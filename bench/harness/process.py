"""One command, started and waited for by ourselves, with what the kernel charged it for.

CPU is the sum over every process that was waited for by its parent, up to the command
itself (wait4). What a command leaves behind would escape that sum, so this process makes
itself the reaper of orphans, waits for them too and adds their time; how many there were
stands beside the figure. One command runs at a time: all our children are its children.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import tree

PR_SET_CHILD_SUBREAPER = 36
LAST_LINES = 6
STRAY_LIMIT_S = 5.0
"""How long what a command left behind may go on after it before it is ended."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, and with what beside the plain environment."""

    argv: tuple[str, ...]
    stdin: Path | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run of a command took."""

    status: int  # exit status, or minus the signal that ended it
    wall_s: float
    user_s: float
    system_s: float
    stray_count: int  # processes it left behind, their CPU included above
    was_cut_off: bool = False  # it, or what it left behind, ran past the limit

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


def adopt_orphans() -> None:
    """Make this process the parent of whatever a command leaves behind."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def plain_environment(home: Path) -> dict[str, str]:
    """The environment every contestant gets: small, and the same for all.

    Each variable exported to a task costs it time, so the caller's own would both blur
    the figures and favour nobody knows whom.
    """
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "SHELL": "/bin/bash",
    }


class Running:
    """A command on its way: started at construction, over after ``finish``."""

    def __init__(self, command: Command, folder: Path, home: Path) -> None:
        self._folder = folder
        with (
            open(command.stdin or os.devnull, "rb") as given,
            open(folder / "stdout", "wb") as out,
            open(folder / "stderr", "wb") as err,
        ):
            self.started_at = time.time()
            self._started_mono = time.monotonic()
            self._child = subprocess.Popen(
                command.argv, stdin=given, stdout=out, stderr=err, cwd=folder,
                env={**plain_environment(home), **command.extra}, start_new_session=True,
            )
        self.pid = self._child.pid
        self._pidfd = os.pidfd_open(self.pid)

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Whether the command is over, waiting for that at most so long."""
        watch = select.poll()
        watch.register(self._pidfd, select.POLLIN)
        return bool(watch.poll(max(within_s, 0.0) * 1000))

    def finish(self, limit_s: float) -> Usage:
        """Wait for the command and for what it left behind; end both at the limit."""
        ran_over = not self.has_ended(limit_s)
        if ran_over:
            tree.kill_all([self.pid, *tree.descendants(self.pid)])
        status, wall_s, used = self.reap()
        user_s, system_s, strays, lingered = reap_strays()
        return Usage(
            status, wall_s, used.ru_utime + user_s, used.ru_stime + system_s, strays,
            ran_over or lingered,
        )

    def reap(self) -> tuple[int, float, resource.struct_rusage]:
        """Wait for the command alone: its status, wall time and usage."""
        _, wait_status, used = os.wait4(self.pid, 0)
        wall_s = time.monotonic() - self._started_mono
        os.close(self._pidfd)
        self._child.returncode = os.waitstatus_to_exitcode(wait_status)
        return self._child.returncode, wall_s, used

    def last_words(self) -> str:
        """The last lines it wrote to standard error, in one."""
        lines = (self._folder / "stderr").read_text(errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-LAST_LINES:])


def reap_strays() -> tuple[float, float, int, bool]:
    """Wait for all that is left below us.

    Returns:
        User and system seconds, the number of processes that became ours, and whether
        some had to be ended because they went on.
    """
    deadline_mono = time.monotonic() + STRAY_LIMIT_S
    user_s, system_s, count, lingered = 0.0, 0.0, 0, False
    while True:
        try:
            pid, _, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return user_s, system_s, count, lingered
        if pid:
            user_s, system_s, count = user_s + used.ru_utime, system_s + used.ru_stime, count + 1
            continue
        if time.monotonic() > deadline_mono:
            tree.kill_all(tree.descendants(os.getpid()))
            lingered = True
        time.sleep(0.01)


def measure(command: Command, folder: Path, home: Path, limit_s: float) -> Usage:
    """Run a command to its end in ``folder`` and say what it took."""
    return Running(command, folder, home).finish(limit_s)
