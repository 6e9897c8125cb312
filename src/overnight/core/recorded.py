"""What earlier drivers of a run have recorded of the executions that an engine still reports.

A driver that is killed between writing a row and telling the engine leaves the engine with
a report that has its row already. Such a report must not become a second row.
"""

from __future__ import annotations

from overnight.model.task import PerEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from overnight.model.report import Report

    Key = tuple[int, int, str]
    Commands = Mapping[tuple[bool, int], PerEngine]


class Recorded:
    """Rows that stand already, and the list's per-engine commands for rows still to be written."""

    __slots__ = ("_commands", "_keys")

    def __init__(self, keys: Set[Key] = frozenset(), commands: Commands | None = None) -> None:
        """Know these.

        Args:
            keys: Of the rows (see ``key``).
            commands: By (START?, number); empty where the list cannot be read again.
        """
        self._keys = keys
        self._commands = commands or {}

    def has(self, report: Report) -> bool:
        """Whether this execution has a row."""
        return key(report.task_id, report.pid, report.started_at) in self._keys

    def command(self, at_start: bool, number: int) -> PerEngine:
        """The per-engine command that an engine calls by this number."""
        known = self._commands.get((at_start, number))
        return known or PerEngine(at_start, number, -1, b"(given by an earlier driver)")


def key(id: int, pid: int, started_at: float) -> Key:
    """What tells one execution, of a task or of a per-engine command, from all others.

    Times count as far as a row has them: to the millisecond.
    """
    return id, pid, f"{started_at:.3f}"
