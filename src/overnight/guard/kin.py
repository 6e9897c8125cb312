"""The processes below a runner: its attempts' shells, and the strays that came to it.

A runner adopts orphans, so whatever an attempt starts and abandons becomes its child.
Its list of children is exact and costs half a microsecond to read: as long as it holds
as many numbers as are known, nobody is left behind, and no /proc walk is needed.

Whose a process is, in this order: whose shell it descends from; whose session or group
it is in; whose marks its environment carries. A shell that left something behind is not
reaped before that is settled, so that its number cannot come to mean somebody else.
"""

from __future__ import annotations

import os

from overnight.guard.processes import (
    carries,
    signal_process,
    survey,
    with_descendants,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from resource import struct_rusage

    from overnight.guard.processes import Process

SIGKILL = 9

LIST_SIZE = 2048
"""Bytes that nearly every list of children fits in."""

PAGE_SIZE = 1 << 16


class Shell:
    """The process of an attempt: a child of this one, and not reaped before ``usage`` is set.

    Attributes:
        pid: Its number.
        usage: Of it and what it waited for, once it is reaped.
        was_signalled: Its processes have had the first signal.
    """

    __slots__ = ("pid", "usage", "was_signalled")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.usage: struct_rusage | None = None
        self.was_signalled = False

    def marks(self) -> list[bytes]:
        """What the environments of its attempt's processes carry, and no others'."""
        raise NotImplementedError

    def signal_tree(self, tree: Sequence[Process], number: int) -> None:
        """Signal processes of the attempt: SIGKILL always, another signal at the first look.

        What appears later was started by something that is tidying up, and may finish
        that until SIGKILL.
        """
        if number != SIGKILL and self.was_signalled:
            return
        self.was_signalled = True
        for process in tree:
            signal_process(process, number)


def exit_code(status: int) -> int:
    """The code in a wait status, or minus the signal's number.

    >>> exit_code(0x0300), exit_code(9), exit_code(0x8b)
    (3, -9, -11)
    """
    signal = status & 0x7F
    return -signal if signal else status >> 8


class Kin:
    """Shells and strays of one runner, told apart by /proc.

    Attributes:
        is_alone: The runner has one slot: a stray without a sign of its own is that slot's.
        unattributed: Strays that are alive and nobody's, by number.
    """

    def __init__(self) -> None:
        """Raises OSError where the kernel does not list children."""
        pid = os.getpid()
        self.is_alone = False
        self.unattributed: set[int] = set()
        self._pid = pid
        self._shells: dict[int, Shell] = {}
        self._strays: dict[int, Shell | None] = {}  # alive children; None: released
        self._children = os.open(
            f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC
        )

    def add(self, shell: Shell) -> None:
        """A shell was started."""
        self._shells[shell.pid] = shell

    def ended(self, shell: Shell) -> tuple[int, int]:
        """How a shell ended that has, and how many processes of its attempt are left."""
        shells, strays = self._shells, self._strays
        text = os.pread(self._children, LIST_SIZE, 0)
        if len(text) == LIST_SIZE:
            text = self._read_children()
        if text.count(b" ") != len(shells) + len(strays) or (strays and shell in strays.values()):
            left = len(self._others(self._trees([shell])[0], shell))
            if left:
                return _code_of_zombie(shell.pid), left
        del shells[shell.pid]
        _, status, shell.usage = os.wait4(shell.pid, 0)
        return (exit_code(status) if status else 0), 0

    def end_trees(self, wanted: Sequence[tuple[Shell, int]]) -> list[int]:
        """Signal every process of these attempts; how many were alive of each.

        SIGKILL goes to each that is found, another signal to those of the first look.
        """
        trees = self._trees([shell for shell, _ in wanted])
        for (shell, number), tree in zip(wanted, trees):
            shell.signal_tree(tree, number)
        return [len(tree) for tree in trees]

    def let_go(self, shell: Shell) -> int:
        """Reap the shell and release what is left of its attempt; how many that were."""
        left = 0
        if shell.usage is None:
            left = len(self._others(self._trees([shell])[0], shell))
            del self._shells[shell.pid]
            shell.usage = os.wait4(shell.pid, 0)[2]
        for pid, owner in self._strays.items():
            if owner is shell:
                self._strays[pid] = None
        return left

    def reap_strays(self) -> None:
        """Let strays that have ended go; to be called now and then."""
        for pid in self._children_now() - self._shells.keys():
            self._reap_stray(pid)

    def strays(self) -> list[Process]:
        """Whatever is left of anybody, below no shell."""
        table = survey()
        roots = [p for p in self._children_now() - self._shells.keys() if not self._reap_stray(p)]
        return [table[p] for p in with_descendants(table, roots) if not table[p].is_dead]

    # ---- who is there

    def _children_now(self) -> set[int]:
        return {int(pid) for pid in self._read_children().split()}

    def _read_children(self) -> bytes:
        """Their numbers, a blank behind each.

        The kernel gives a page at a time, whatever is asked for. The list does not change
        in between: children that end stay in it until this process reaps them.
        """
        text = b""
        while page := os.pread(self._children, PAGE_SIZE, len(text)):
            text += page
        return text

    def _trees(self, shells: Sequence[Shell]) -> list[list[Process]]:
        """Processes of each attempt that are alive, by one walk over /proc."""
        table = survey()
        self._learn_strays(table)
        return [
            [table[pid] for pid in self._pids_of(shell, table) if not table[pid].is_dead]
            for shell in shells
        ]

    @staticmethod
    def _others(tree: list[Process], shell: Shell) -> list[Process]:
        return [process for process in tree if process.pid != shell.pid]

    def _pids_of(self, shell: Shell, table: dict[int, Process]) -> list[int]:
        roots = {shell.pid}
        roots |= {pid for pid, owner in self._strays.items() if owner is shell}
        roots |= {
            p.pid for p in table.values() if p.session == shell.pid or p.group == shell.pid
        }
        return [pid for pid in with_descendants(table, roots) if pid != self._pid]

    def _learn_strays(self, table: dict[int, Process]) -> None:
        """Find the owner of each child that is new, and drop those that have ended."""
        for pid in self._children_now() - self._shells.keys():
            process = table.get(pid)
            if process is None or process.is_dead:
                self._reap_stray(pid)
            elif pid not in self._strays:
                owner = self._owner_of(process)
                self._strays[pid] = owner
                if owner is None:
                    self.unattributed.add(pid)

    def _owner_of(self, process: Process) -> Shell | None:
        for number in (process.session, process.group):
            if number in self._shells:
                return self._shells[number]
        for shell in self._shells.values():
            if carries(process.pid, shell.marks()):
                return shell
        if self.is_alone and len(self._shells) == 1:
            return next(iter(self._shells.values()))
        return None

    def _reap_stray(self, pid: int) -> bool:
        """Whether this child, which is no shell, has ended; it is forgotten then."""
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                return False
        except ChildProcessError:
            pass
        self._strays.pop(pid, None)
        self.unattributed.discard(pid)
        return True


def _code_of_zombie(pid: int) -> int:
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if result is None:
        return 0
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
