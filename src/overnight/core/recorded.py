"""What earlier drivers of a run have recorded of the executions that an engine still reports.

A driver that is killed between writing a row and telling the engine leaves the engine with
a report that has its row already. Such a report must not become a second row, and none
that is older than a row may give its task out again.
"""

from __future__ import annotations

from overnight.core.kept import news
from overnight.model.task import PerEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from overnight.core.kept import Pair
    from overnight.model.report import Report

    Key = tuple[int, int, str]
    Commands = Mapping[tuple[bool, int], PerEngine]

TICK_S = 0.1
"""Starts of processes are known to about a hundredth of a second."""


class Recorded:
    """Rows that stand already, and the list's per-engine commands for rows still to be written."""

    __slots__ = ("_command_keys", "_commands", "_row_times")

    def __init__(
        self, row_times: Mapping[int, tuple[float, float]] | None = None,
        command_keys: Set[Key] = frozenset(), commands: Commands | None = None,
    ) -> None:
        """Know these.

        Args:
            row_times: Start and end of the latest execution of each task that has a row,
                Unix seconds.
            command_keys: Of the rows of per-engine commands (see ``key``).
            commands: By (START?, number); empty where the list cannot be read again.
        """
        self._row_times = row_times or {}
        self._command_keys = command_keys
        self._commands = commands or {}

    def news(self, batches: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
        """What the record does not know of all that one engine kept; as many batches."""
        return news(batches, self._row_started_at)

    def _row_started_at(self, task_id: int) -> float | None:
        times = self._row_times.get(task_id)
        return None if times is None else times[0]

    def is_released(self, task_id: int, started_at: float) -> bool:
        """Whether a process of a task, started then, was let go when the task had ended.

        One that seems to be older than the execution with that row is of another execution,
        and a clock was set back in between.
        """
        times = self._row_times.get(task_id)
        return times is not None and times[0] - TICK_S <= started_at <= times[1]

    def ends(self) -> dict[int, float]:
        """When the latest execution of each task that has a row had ended, Unix seconds."""
        return {task_id: times[1] for task_id, times in self._row_times.items()}

    def has_command(self, report: Report) -> bool:
        """Whether this execution of a per-engine command has a row."""
        return key(report.task_id, report.pid, report.started_at) in self._command_keys

    def command(self, at_start: bool, number: int) -> PerEngine:
        """The per-engine command that an engine calls by this number."""
        known = self._commands.get((at_start, number))
        return known or PerEngine(at_start, number, -1, b"(given by an earlier driver)")


def key(number: int, pid: int, started_at: float) -> Key:
    """What tells one execution of a per-engine command from all others.

    Times count as far as a row has them: to the millisecond.
    """
    return number, pid, f"{started_at:.3f}"
