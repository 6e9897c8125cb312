"""The processes of a case: known by the mark in their environment, whoever their parent is now.

Every process that a case starts inherits ``STUB_DIR=<folder of the case>``. What is left of it at
the end is found and ended by that mark, never by a name that somebody else's process may share.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "STUB_DIR"
POLL_S = 0.05


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Look again and again until ``condition`` holds; False when the time is over first."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


@dataclass(frozen=True, slots=True)
class Process:
    """A process as /proc shows it."""

    pid: int
    parent: int
    command: str  # the words of its command line, one blank between them
    mark: str | None  # the mark it carries, None without one or when it cannot be read


def _read(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


def _mark_of(pid: int) -> str | None:
    wanted = os.fsencode(MARK) + b"="
    with suppress(OSError):
        for variable in _read(pid, "environ").split(b"\0"):
            if variable.startswith(wanted):
                return os.fsdecode(variable.removeprefix(wanted))
    return None


def _process(pid: int) -> Process | None:
    try:
        after_name = _read(pid, "stat").rpartition(b")")[2].split()
        command = _read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return None
    return Process(pid, int(after_name[1]), command.strip(), _mark_of(pid))


def processes() -> Iterator[Process]:
    """All processes of this machine that are there to be seen."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and (process := _process(int(name))):
            yield process


def marked(mark: Path) -> list[Process]:
    """What is alive and carries this mark."""
    return [process for process in processes() if process.mark == str(mark)]


def descendants(pid: int) -> list[Process]:
    """The tree below a process, nearer ones first."""
    all_processes = list(processes())
    found: list[Process] = []
    parents = {pid}
    while children := [p for p in all_processes if p.parent in parents and p not in found]:
        found += children
        parents = {child.pid for child in children}
    return found


def _kill(process: Process, mark: Path) -> None:
    """End a process if it still is the one that carries the mark."""
    with suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            # Read again behind the handle: until now the number may have changed its owner.
            if _mark_of(process.pid) == str(mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def end_marked(mark: Path, timeout_s: float = 10) -> None:
    """End everything that carries the mark, also what it starts meanwhile."""

    def none_left() -> bool:
        left = marked(mark)
        for process in left:
            _kill(process, mark)
        return not left

    assert wait_until(none_left, timeout_s), f"still there: {marked(mark)}"
