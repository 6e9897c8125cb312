"""Processes as /proc shows them: who they are, whose children, and signals that cannot miss.

A number names a process only for a moment. What names it for good is the number with
its start time, and on one machine only with the boot id. So a signal goes through a
pidfd that was opened first and whose start time was compared afterwards: a process
that took over the number in between is never hit.
"""

from __future__ import annotations

import os
import time

# signal itself imports enum: 6 ms of an engine's start
from _signal import pidfd_send_signal  # type: ignore[import-not-found]  # not in typeshed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MUCH = 1 << 20
"""Read at once; an environment may be as long as the kernel's 2 MiB for all arguments."""

EXEC_TRIES = 50
EXEC_AGAIN_S = 0.0002
"""How often, and how long apart, a process in the middle of an exec is looked at again."""


class Process:
    """One process at the moment it was looked at.

    Attributes:
        pid: Its number.
        parent: Number of its parent.
        group: Of processes, by number.
        session: By number.
        start: Clock ticks from boot to its start.
        is_dead: It has ended and waits to be reaped.
    """

    __slots__ = ("group", "is_dead", "parent", "pid", "session", "start")

    def __init__(
        self, pid: int, parent: int, group: int, session: int, start: int, is_dead: bool
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start
        self.is_dead = is_dead

    @property
    def identity(self) -> tuple[int, int]:
        """What no other process of this boot has."""
        return self.pid, self.start


def parse_stat(text: bytes) -> Process:
    """A line of /proc/PID/stat; the name in brackets may hold blanks and brackets.

    >>> parse_stat(b"7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 1 1 0 0 20 0 1 0 330 0").start
    330
    """
    fields = text[text.rindex(b")") + 2:].split(b" ", 20)
    return Process(
        int(text[:text.index(b" ")]), int(fields[1]), int(fields[2]), int(fields[3]),
        int(fields[19]), fields[0] in b"ZXx",
    )


def read_process(pid: int) -> Process | None:
    """The process with this number now, or None."""
    text = _read(f"/proc/{pid}/stat", 4096)
    return parse_stat(text) if text else None


def _read(path: str, size: int) -> bytes:
    """The file's contents; empty when it is gone or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, size)
    except OSError:  # the process ended between open and read
        return b""
    finally:
        os.close(fd)


def survey() -> dict[int, Process]:
    """All processes that can be seen, by number: one walk over /proc."""
    processes = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = read_process(int(name))
            if process is not None:
                processes[process.pid] = process
    return processes


def with_descendants(table: dict[int, Process], roots: Iterable[int]) -> list[int]:
    """The numbers in ``roots`` that are in the table, and all that descend from them.

    Parents stand before their children. Whoever signals in this order reaches a shell
    before what it waits for: the other way round, a shell whose command was ended would
    go on to the next one.
    """
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if pid in table]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return sorted(found, key=lambda pid: (len(ancestors(table, pid) & found), pid))


def ancestors(table: dict[int, Process], pid: int) -> set[int]:
    """The parent of a process, its parent, and so on up to the first one."""
    found: set[int] = set()
    while pid in table and table[pid].parent not in found:
        pid = table[pid].parent
        found.add(pid)
    return found


def read_environment(pid: int) -> set[bytes]:
    """Entries of the environment a process was started with; empty when nobody may see it.

    In the middle of an exec the kernel shows none for a moment. That is waited for: what is
    read here says whose a process is, and is the proof that nothing of a task runs any more.
    """
    text = _read(f"/proc/{pid}/environ", MUCH)
    tries = EXEC_TRIES
    while not text and tries:
        # Asked first, read again then: the exec may be over in between.
        tries = tries - 1 if _is_in_exec(pid) else 0
        text = _read(f"/proc/{pid}/environ", MUCH)
        if not text and tries:
            time.sleep(EXEC_AGAIN_S)
    return set(text.split(b"\0")) - {b""}


def _is_in_exec(pid: int) -> bool:
    """Whether a process has memory, unlike a zombie or the kernel's own, and no arguments yet."""
    size = _read(f"/proc/{pid}/statm", 100)
    return size[:2] not in (b"", b"0 ") and not _read(f"/proc/{pid}/cmdline", 1)


def carries(pid: int, marks: Sequence[bytes]) -> bool:
    """Whether all these entries stood in the environment a process was started with."""
    entries = read_environment(pid)
    return bool(entries) and all(mark in entries for mark in marks)


def signal_process(process: Process, number: int) -> bool:
    """Send a signal to exactly this process; whether it was still there to get it.

    Where the kernel has no pidfd (before 5.3) its start time is compared just before.
    """
    pidfd = open_pidfd(process.pid)
    try:
        now = read_process(process.pid)
        if now is None or now.start != process.start:
            return False
        if pidfd is None:
            os.kill(process.pid, number)
        else:
            pidfd_send_signal(pidfd, number)
    except OSError:  # it ended, or has become another user's
        return False
    finally:
        if pidfd is not None:
            os.close(pidfd)
    return True


def open_pidfd(pid: int) -> int | None:
    """A descriptor of this process; None when it is gone or the kernel has no such thing."""
    if _pidfd_open is None:
        return None
    try:
        return _pidfd_open(pid)
    except OSError:
        return None


_pidfd_open: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


def process_identity(pid: int) -> tuple[int, str]:
    """Start time of a process (clock ticks since boot; 0 when it is gone) and the boot id.

    With its number they name a process for good: nothing else on any machine has them.
    """
    process = read_process(pid)
    return process.start if process else 0, boot_id()


def place() -> str:
    """Where process numbers mean the same: host name, machine, and namespace of numbers.

    Containers may share a host's name and see other numbers, and cloned machines may have
    one name: a number noted in another place proves nothing here.
    """
    machine = _read("/etc/machine-id", 100).decode("ascii", "replace").strip()[:12]
    try:
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        namespace = ""
    return f"{os.uname().nodename}/{machine}/{namespace}"


def boot_id() -> str:
    """The kernel's name for this boot, or empty where there is none."""
    return _read("/proc/sys/kernel/random/boot_id", 100).decode().strip()
