"""From rounds to figures: medians, ratios taken round by round, and the tables.

A ratio of two contestants is the median over the rounds of the ratio within a round,
never the ratio of two medians: what slowed a round slowed both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from harness.rounds import Contest, Sample

Figure = Callable[[Sample], float]


def rate(sample: Sample) -> float:
    """Tasks a second."""
    return sample.rate


def cpu_us(sample: Sample) -> float:
    """CPU microseconds a task."""
    return sample.cpu_us


def values(contest: Contest, name: str, figure: Figure) -> list[float]:
    """A contestant's figure in each round that counts."""
    return [figure(played.samples[name]) for played in contest.rounds]


def middle(contest: Contest, name: str, figure: Figure) -> float | None:
    """The median of a contestant's figure; None when it is not in the rounds."""
    return median(values(contest, name, figure)) if name in contest.names else None


def ratio(contest: Contest, ours: str, theirs: str, figure: Figure) -> float | None:
    """Median over the rounds of ours divided by theirs; None when one of them is missing."""
    if ours not in contest.names or theirs not in contest.names:
        return None
    pairs = zip(values(contest, ours, figure), values(contest, theirs, figure), strict=True)
    return median(own / other for own, other in pairs)


def table(
    heads: Sequence[str], lines: Sequence[Sequence[str]], text_columns: int = 1
) -> list[str]:
    r"""Columns set in blanks, the first so many to the left, the rest to the right.

    >>> print("\n".join(table(["tool", "rate"], [["xargs", "1,147"]])))
    tool    rate
    xargs  1,147
    """
    widths = [max(len(line[at]) for line in [heads, *lines]) for at in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if at < text_columns else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [heads, *lines]
    ]


def spread(numbers: Sequence[float], form: str = ",.0f") -> str:
    """Median, least and greatest.

    >>> spread([1200.4, 1310.0, 1190.2])
    '1,200 (1,190, 1,310)'
    """
    return f"{median(numbers):{form}} ({min(numbers):{form}}, {max(numbers):{form}})"


def times(number: float | None) -> str:
    """A ratio for a table; ``-`` where there is none."""
    return "-" if number is None else f"{number:.2f}"


def race_table(contest: Contest, leader: str, yardstick: str) -> list[str]:
    """Speed and CPU of each contestant, and what they are to the leader and the yardstick."""
    heads = (
        "tool", "tasks/s med (min, max)", "CPU us/task", f"speed / {yardstick}",
        f"CPU / {yardstick}", f"speed of {leader} / it", f"CPU of {leader} / it",
    )
    lines = [
        (
            name,
            spread(values(contest, name, rate)),
            f"{median(values(contest, name, cpu_us)):,.0f}",
            times(ratio(contest, name, yardstick, rate)),
            times(ratio(contest, name, yardstick, cpu_us)),
            times(ratio(contest, leader, name, rate)),
            times(ratio(contest, leader, name, cpu_us)),
        )
        for name in contest.names
    ]
    return table(heads, lines)


def conditions(contest: Contest) -> list[str]:
    """Under what conditions the rounds were played, and what was set aside."""
    if not contest.rounds:
        return ["no round counts", *contest.set_aside]
    steals = [played.spent.steal for played in contest.rounds]
    others = [played.others for played in contest.rounds]
    strays = {
        name: int(max(values(contest, name, lambda done: done.extra.get("strays", 0))))
        for name in contest.names
    }
    return [
        f"{len(contest.rounds)} rounds; steal {median(steals):.1%} (most {max(steals):.1%}); "
        f"not ours nor a peer's {median(others):.0%} of the machine (most {max(others):.0%})",
        *(
            f"{name}: CPU holds {count} processes that outlived the command's own"
            for name, count in strays.items() if count
        ),
        *contest.set_aside,
        *(f"{name} withdrawn: {reason}" for name, reason in contest.withdrawn.items()),
    ]
