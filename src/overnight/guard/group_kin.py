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

    def add(self, shell: Shell) -> None:
        """A shell was started."""

    def ended(self, shell: Shell) -> tuple[int, int]:
        """Reap a shell that has ended: its code, and 1 when its group lives on, else 0."""
        _, status, shell.usage = os.wait4(shell.pid, 0)
        return exit_code(status), _send_to_group(shell.pid, 0)

    def end_trees(self, wanted: Sequence[tuple[Shell, int]]) -> list[int]:
        """Signal what can be seen of these attempts; how much was alive of each."""
        if not self._sees_proc:
            return [_send_to_group(shell.pid, number) for shell, number in wanted]
        table = survey()
        return [self._end_tree(shell, number, table) for shell, number in wanted]

    def _end_tree(self, shell: Shell, number: int, table: dict[int, Process]) -> int:
        tree = [process for process in self._tree(shell, table) if not process.is_dead]
        for process in tree:
            shell.signal(process, number)
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
        return _send_to_group(shell.pid, 0)

    def reap_strays(self) -> None:
        """None can come."""

    def strays(self) -> list[Process]:
        """None can be seen."""
        return []


def _send_to_group(group: int, number: int) -> int:
    try:
        os.killpg(group, number)
    except OSError:
        return 0
    return 1
