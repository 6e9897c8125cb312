"""What we hold ourselves to, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import figures


@dataclass(frozen=True, slots=True)
class Target:
    """A promise and its measurement.

    Attributes:
        workload: Its name.
        promise: What is measured, in words.
        limit: The number promised.
        is_ceiling: Whether the measurement must stay below the limit, not reach it.
        measured: The figure, or None where it could not be had.
        unit: Behind both numbers, with its blank.
    """

    workload: str
    promise: str
    limit: float
    is_ceiling: bool
    measured: float | None
    unit: str = ""

    @property
    def verdict(self) -> str:
        """``yes``, ``NO``, or that nothing is claimed."""
        if self.measured is None:
            return "not measured"
        met = self.measured <= self.limit if self.is_ceiling else self.measured >= self.limit
        return "yes" if met else "NO"


def at_most(
    workload: str, promise: str, limit: float, measured: float | None, unit: str = ""
) -> Target:
    """A target that a figure must not pass."""
    return Target(workload, promise, limit, True, measured, unit)


def at_least(
    workload: str, promise: str, limit: float, measured: float | None, unit: str = ""
) -> Target:
    """A target that a figure must reach."""
    return Target(workload, promise, limit, False, measured, unit)


def line(target: Target) -> tuple[str, str, str, str, str]:
    """The target as a line of the table."""
    sign = "<=" if target.is_ceiling else ">="
    limit = f"{sign} {target.limit:g}{target.unit}"
    measured = "-" if target.measured is None else f"{target.measured:.3g}{target.unit}"
    return target.workload, target.promise, limit, measured, target.verdict


def target_table(targets: Sequence[Target], is_judged: bool) -> list[str]:
    """All targets, in the order they were measured; unjudged ones are only shown."""
    heads = ("workload", "what", "target", "measured", "met?")
    lines = [line(target) for target in targets]
    if not is_judged:
        lines = [(*cells[:4], "not judged") for cells in lines]
    return figures.table(heads, lines, text_columns=2)
