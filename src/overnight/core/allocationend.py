"""When a run in an allocation stops by itself, because that is about to end."""

from __future__ import annotations

LEAVE_S = 30.0
"""Between the soft stop, after the grace, and the end: rows are written, engines leave."""

ASK_EVERY_S = 300.0
"""A limit may be changed by whoever owns the allocation, or who runs the cluster."""

ASK_AGAIN_S = 30.0
"""When nobody answered."""


def stops_at(end: float, grace_s: float) -> float:
    """From when on nothing new is started.

    Args:
        end: Of the allocation, Unix seconds.
        grace_s: What running tasks are to have to finish.

    >>> stops_at(1000.0, 60.0)
    910.0
    """
    return end - grace_s - LEAVE_S


def asks_after(now: float, end: float | None, grace_s: float) -> float:
    """Seconds until the end is asked for again, or has come; 0 when it has."""
    if end is None:
        return ASK_EVERY_S
    return max(0.0, min(stops_at(end, grace_s) - now, ASK_EVERY_S))


def deadline_text(label: str, left_s: float, go_on: str) -> str:
    """What a person is told at the soft stop."""
    return (
        f"the allocation of {label} ends in {left_s:.0f} s: nothing new is started, running"
        f" tasks may finish\n"
        f"  kept:  what is cut off then, or was not started, is left for the next allocation\n"
        f"  do:    go on there with:  {go_on}"
    )
