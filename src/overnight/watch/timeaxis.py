"""Where a moment is in a picture.

Time runs evenly, except that a pause much longer than all the work - the days between a
run and its resume - is folded: it gets a narrow strip, marked as such.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from math import ceil

from overnight.core.estimate import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.watch.pauses import Span

FOLD_WIDTH = 46.0
CLOCK_FROM_S = 900.0
"""Spans from here on are labelled by the clock, shorter ones by seconds since the start."""

_STEPS_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
    900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200,
)


class TimeAxis:
    """The way from Unix seconds to pixels and back.

    Attributes:
        span: First and last moment.
        left, right: Their pixels.
        folds: Pauses that are folded.
    """

    def __init__(self, span: Span, left: float, right: float, folds: list[Span]) -> None:
        self.span = span
        self.left = left
        self.right = right
        self.folds = folds
        even_s = span[1] - span[0] - sum(end - start for start, end in folds)
        even_width = right - left - FOLD_WIDTH * len(folds)
        self._per_s = even_width / max(even_s, 1e-6)
        self._moments, self._pixels = [span[0]], [left]
        for start, end in folds:
            x = self._pixels[-1] + (start - self._moments[-1]) * self._per_s
            self._moments += [start, end]
            self._pixels += [x, x + FOLD_WIDTH]
        self._moments.append(span[1])
        self._pixels.append(right)

    def x(self, at: float) -> float:
        """The pixel of a moment."""
        if not self.folds:
            return self.left + (at - self.span[0]) * self._per_s
        return _between(self._moments, self._pixels, at)

    def at(self, x: float) -> float:
        """The moment at a pixel."""
        return _between(self._pixels, self._moments, x)

    def even_s(self, width: float) -> float:
        """Seconds in so many pixels, outside folds."""
        return width / self._per_s

    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels, about one in a hundred pixels, none inside a fold."""
        step_s = self._step_s()
        first, last = self.span
        if last - first < CLOCK_FROM_S:
            moments = self._moments_from(first, first, step_s)
            return [(self.x(at), _since_text(at - first, step_s)) for at in moments]
        midnight = -float(time.localtime(first).tm_gmtoff)
        moments = self._moments_from(midnight, first, step_s)
        return [
            (self.x(at), clock_text(at, before, step_s))
            for at, before in zip(moments, [0.0, *moments], strict=False)
        ]

    def _moments_from(self, origin: float, first: float, step_s: float) -> list[float]:
        """Whole steps from an origin that lie in the span and outside its folds."""
        moments = []
        at = _whole_steps(origin, first, step_s)
        while at <= self.span[1] + step_s * 1e-6:
            fold_end = next((end for start, end in self.folds if start < at < end), None)
            if fold_end is None:
                moments.append(at)
                at += step_s
            else:  # a pause may be weeks of seconds
                at = _whole_steps(origin, fold_end, step_s)
        return moments

    def _step_s(self) -> float:
        wanted_s = 90 / self._per_s
        return next((step for step in _STEPS_S if step >= wanted_s), wanted_s)


def _between(keys: list[float], values: list[float], key: float) -> float:
    i = min(max(bisect_right(keys, key), 1), len(keys) - 1)
    low, high = keys[i - 1], keys[i]
    share = (key - low) / (high - low) if high > low else 0.0
    return values[i - 1] + share * (values[i] - values[i - 1])


def _whole_steps(origin: float, at: float, step_s: float) -> float:
    return origin + ceil((at - origin) / step_s - 1e-9) * step_s


def _since_text(since_s: float, step_s: float) -> str:
    if since_s < step_s / 2:
        return "0"
    if step_s >= 1 or since_s < 0.9995 or (step_s >= 0.1 and since_s < 59.95):
        return duration_text(since_s).replace(".0 ", " ")
    minutes, rest_s = divmod(round(since_s, _decimals(step_s)), 60)
    shown = f"{rest_s:.{_decimals(step_s)}f} s"
    return f"{minutes:.0f} min {shown}" if minutes else shown


def _decimals(step_s: float) -> int:
    """Decimals by which two moments a step apart differ.

    >>> _decimals(0.001), _decimals(0.05), _decimals(0.5), _decimals(30)
    (3, 2, 1, 0)
    """
    return next((digits for digits in range(3) if step_s * 10**digits >= 0.9995), 3)


def clock_text(at: float, before: float, step_s: float) -> str:
    """The time of day, with the day where it is another one than that of the label before."""
    at = round(at, _decimals(step_s))
    moment, other = time.localtime(at), time.localtime(before)
    text = f"{moment.tm_hour:02d}:{moment.tm_min:02d}"
    if step_s < 60:
        text += f":{moment.tm_sec:02d}"
    if step_s < 1:
        text += f"{at % 1:.{_decimals(step_s)}f}"[1:]
    if moment.tm_yday == other.tm_yday and moment.tm_year == other.tm_year:
        return text
    day = f"{moment.tm_mday} {_MONTHS[moment.tm_mon - 1]}"
    return day if step_s >= 86400 else f"{day} {text}"


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
