"""What lies between two barriers of a list, so that any task of it can be made again.

Of a line that is one task eight bytes are kept: where it begins, and how many lines that
are none came before it since the first of its kind. A REPEAT is kept as its numbers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from overnight.model.task import NO_REPEAT, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.model.task import PerEngine

    Wrap = tuple[bytes, bytes]

OFFSET_BITS = 40  # a list of a terabyte
MOST_GAP = 1 << 24


class _Lines:
    """Lines that each make one task, with ids in a row, under one prefix and suffix."""

    __slots__ = ("count", "first_id", "first_line", "place", "wrap")

    def __init__(self, first_id: int, first_line: int, place: int, wrap: Wrap) -> None:
        self.first_id = first_id
        self.first_line = first_line
        self.place = place  # of the first line among the part's words
        self.wrap = wrap
        self.count = 0

    def gap_before(self, id: int, line: int, wrap: Wrap) -> int:
        """Lines passed over on the way to this task; negative where it is not the next one."""
        if id != self.first_id + self.count or wrap != self.wrap:
            return -1
        gap = line - self.first_line - self.count
        return gap if gap < MOST_GAP else -1


class _Repeat:
    """The tasks of one REPEAT, or one task that cannot be read again by itself."""

    __slots__ = ("count", "first", "step")

    def __init__(self, first: Task, count: int, step: int) -> None:
        self.first = first
        self.count = count
        self.step = step

    def task(self, index: int) -> Task:
        """The index-th of them."""
        first = self.first
        return Task(first.id + index, first.line, first.repeat + index * self.step, first.command)


class Part:
    """The tasks of a part, by their number in it, and its per-engine commands.

    Attributes:
        heads: Per-engine commands, in their order.
    """

    def __init__(self) -> None:
        self.heads: list[PerEngine] = []
        self._groups: list[_Lines | _Repeat] = []
        self._starts: list[int] = []  # number of the first task of each group
        self._words = array("Q")  # gap and offset of each line
        self._count = 0

    def __len__(self) -> int:
        """How many tasks there are."""
        return self._count

    def add_line(self, id: int, line: int, offset: int, wrap: Wrap) -> None:
        """Add a task that is the whole line at this offset, under this prefix and suffix."""
        last = self._groups[-1] if self._groups else None
        gap = last.gap_before(id, line, wrap) if isinstance(last, _Lines) else -1
        if gap < 0 or not isinstance(last, _Lines):
            last, gap = _Lines(id, line, len(self._words), wrap), 0
            self._add_group(last)
        last.count += 1
        self._words.append(gap << OFFSET_BITS | offset)
        self._count += 1

    def add_tasks(self, first: Task, count: int, step: int) -> None:
        """Add so many tasks, which differ from the first in ids and repeat indices alone."""
        self._add_group(_Repeat(first, count, step))
        self._count += count

    def _add_group(self, group: _Lines | _Repeat) -> None:
        self._groups.append(group)
        self._starts.append(self._count)

    def task(self, number: int, read_line: Callable[[int, int], bytes]) -> Task:
        """Make the task with this number again.

        Args:
            number: From 0, in the order of the list.
            read_line: Gives the line at an offset, without its end; told its line number too.
        """
        at = bisect_right(self._starts, number) - 1
        group, index = self._groups[at], number - self._starts[at]
        if isinstance(group, _Repeat):
            return group.task(index)
        gap, offset = divmod(self._words[group.place + index], 1 << OFFSET_BITS)
        line = group.first_line + index + gap
        prefix, suffix = group.wrap
        command = prefix + read_line(offset, line) + suffix
        return Task(group.first_id + index, line, NO_REPEAT, command)
