"""Kin where the kernel shows less: no orphans adopted, or no /proc to read.

What can be known then is a shell's process group, and with /proc whose session or
marks a process has. A process that left the group goes unseen until its attempt is
ended, and without /proc for ever.
"""

from __future__ import annotations

import os

from overnight.guard.kin import exit_code
from overnight.guard.processes import carries, survey, with_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.guard.kin import Shell
    from overnight.guard.processes import Process


class GroupKin:
    """Shells of one runner, with what is in their process groups.

    Attributes:
        is_alone: As ``Kin`` has it; of no use here.
        unattributed: Always empty: a stray is not seen to come.
    """

    def __init__(self, sees_proc: bool) -> None:
        self.is_alone = False
        self.unattributed: set[int] = set()
        self._sees_proc = sees_proc
        self._pids: set[int] = set()  # of shells that are not reaped

    def add(self, shell: Shell) -> None:
        """A shell was started."""
        self._pids.add(shell.pid)

    def ended(self, shell: Shell) -> tuple[int, int]:
        """Reap a shell that has ended: its code, and 1 when its group lives on, else 0."""
        self._pids.discard(shell.pid)
        _, status, shell.usage = os.wait4(shell.pid, 0)
        return exit_code(status), self._send(shell, 0)

    def end_trees(self, wanted: Sequence[tuple[Shell, int]]) -> list[int]:
        """Signal what can be seen of these attempts; how much was alive of each."""
        if not self._sees_proc:
            return [self._send(shell, number) for shell, number in wanted]
        table = survey()
        return [self._end_tree(shell, number, table) for shell, number in wanted]

    def _end_tree(self, shell: Shell, number: int, table: dict[int, Process]) -> int:
        tree = [process for process in self._tree(shell, table) if not process.is_dead]
        shell.signal_tree(tree, number)
        return len(tree)

    def _tree(self, shell: Shell, table: dict[int, Process]) -> list[Process]:
        """Once the shell is reaped its number may be another's: only marks prove then."""
        marks = shell.marks()
        if shell.usage is None:
            roots = {p.pid for p in table.values() if shell.pid in (p.pid, p.session, p.group)}
            start = table[shell.pid].start if shell.pid in table else 0
            roots |= {p.pid for p in table.values() if p.start >= start and carries(p.pid, marks)}
            return [table[pid] for pid in with_descendants(table, roots)]
        return [p for p in table.values() if carries(p.pid, marks)]

    def let_go(self, shell: Shell) -> int:
        """How much of the attempt is released: 1 when its group lives on, else 0."""
        return self._send(shell, 0)

    def _send(self, shell: Shell, number: int) -> int:
        """Signal a shell's process group; 1 when there is one, else 0.

        The number of a group is no other's as long as the group has a member. A member
        that has ended and came to this process counts as one until it is reaped.
        """
        if shell.usage is not None:
            _reap_group(shell.pid)
        try:
            os.killpg(shell.pid, number)
        except OSError:
            return 0
        return 1

    def reap_strays(self) -> None:
        """Reap what has come to this process and ended, as far as no shell is in the way."""
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if seen is None or seen.si_pid in self._pids:
                return
            os.waitpid(seen.si_pid, 0)

    def strays(self) -> list[Process]:
        """None can be seen."""
        return []


def _reap_group(group: int) -> None:
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
