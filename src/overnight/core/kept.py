"""Which reports that were kept while no driver listened are news."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.model.attempt import Attempt
    from overnight.model.report import Report

    Pair = tuple[Attempt, Report]


ROUNDING_S = 0.0006
"""Rows give times in milliseconds."""


def news(
    batches: Sequence[Sequence[Pair]], row_started_at: Callable[[int], float | None]
) -> list[list[Pair]]:
    """Leave out what the record has already or knows better, and what came twice.

    A task with a row of the same or a later execution is settled, and attempts of it
    that have no rows of their own are no news either: judged alone, one that was lost
    would give the task out again.

    Args:
        batches: All that one engine kept, in its order. A spool that was begun anew holds
            some of it twice.
        row_started_at: Start of the latest execution of a task that has a row, Unix
            seconds, or None.

    Returns:
        As many batches, some perhaps empty.
    """
    last: dict[int, Pair] = {}
    for batch in batches:
        for pair in batch:
            known = last.get(pair[0].task.id)
            if known is None or known[0].number < pair[0].number:
                last[pair[0].task.id] = pair
    settled = {id for id, (_, report) in last.items() if _is_known(report, row_started_at(id))}
    told: set[tuple[int, int]] = set()
    return [[pair for pair in batch if _is_news(pair[0], settled, told)] for batch in batches]


def _is_known(report: Report, row_started_at: float | None) -> bool:
    return row_started_at is not None and report.started_at <= row_started_at + ROUNDING_S


def _is_news(attempt: Attempt, settled: set[int], told: set[tuple[int, int]]) -> bool:
    key = (attempt.task.id, attempt.number)
    if attempt.task.id in settled or key in told:
        return False
    told.add(key)
    return True
