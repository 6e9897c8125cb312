"""Stretches of time in which nothing ran."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Span = tuple[float, float]  # from, to

ROUNDING_S = 0.002
"""Times have three decimals, so what follows at once may seem to be this far apart."""

LEAST_S = 1.0
"""Below this, two short tasks have a barrier or the start of an engine between them."""

LONG_FROM = 3.0
"""A pause of this many times all busy time lies between a run and its resume."""


def gaps_between(spans: Iterable[Span]) -> list[Span]:
    """The stretches of time that none of the spans covers, between the first and the last."""
    gaps = []
    covered_to: float | None = None
    for start, end in sorted(spans):
        if covered_to is None:
            covered_to = end
        elif start > covered_to:
            gaps.append((covered_to, start))
        covered_to = max(covered_to, end)
    return gaps


def parted(gaps: Iterable[Span], waits: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """The gaps in which the run was idle, and those in which it waited for something.

    Args:
        gaps: Stretches in which nothing ran.
        waits: Stretches in which something was waited for.
    """
    idle: list[Span] = []
    waiting: list[Span] = []
    for gap in gaps:
        is_wait = any(
            start <= gap[0] + ROUNDING_S and gap[1] <= end + ROUNDING_S for start, end in waits
        )
        (waiting if is_wait else idle).append(gap)
    return idle, waiting


def long_pauses(gaps: list[Span], whole: Span) -> list[Span]:
    """Those of these gaps that are no part of the run: they would dwarf it."""
    busy_s = whole[1] - whole[0] - sum(end - start for start, end in gaps)
    least_s = max(LEAST_S, LONG_FROM * busy_s)
    return [(start, end) for start, end in gaps if end - start > least_s]


def within(spans: Iterable[Span], start: float, end: float) -> float:
    """Seconds of these spans that lie between two moments."""
    return sum(max(0.0, min(last, end) - max(first, start)) for first, last in spans)


def whole_of(spans: Iterable[Span]) -> Span:
    """From the first start to the last end; there is at least one span."""
    known = list(spans)
    return min(known)[0], max(end for _, end in known)
