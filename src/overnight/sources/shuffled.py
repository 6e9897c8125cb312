"""A list file in random order, within each part between two barriers (``--shuffle``).

Eight bytes are kept for each line of a part: where it begins. Ids and line numbers stay
those of the list. A REPEAT is kept as its numbers.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right

from overnight.core.permute import Permutation
from overnight.errors import UsageError
from overnight.formats.taskfile import Suspicion, TaskReader, refusal
from overnight.model.task import NO_REPEAT, Barrier, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overnight.model.task import Item
    from overnight.sources.listfile import ListFile


class _Lines:
    """Consecutive lines that each make one task, under one prefix and suffix."""

    def __init__(self, first: Task, place: int, wrap: tuple[bytes, bytes]) -> None:
        self.first_id = first.id
        self.first_line = first.line
        self.place = place  # of the first line among the offsets
        self.wrap = wrap
        self.count = 1

    def goes_on_with(self, task: Task, wrap: tuple[bytes, bytes]) -> bool:
        """Whether the task is this run's next."""
        return (
            task.id == self.first_id + self.count
            and task.line == self.first_line + self.count and wrap == self.wrap
        )


class _Repeat:
    """The tasks of one REPEAT."""

    def __init__(self, first: Task, step: int, count: int) -> None:
        self.first = first
        self.step = step
        self.count = count

    def task(self, index: int) -> Task:
        """The index-th of them."""
        first = self.first
        return Task(first.id + index, first.line, first.repeat + index * self.step, first.command)


class Shuffled:
    """Another order of a list file's items."""

    def __init__(
        self, source: ListFile, seed: int, *, is_lenient: bool, warn: Callable[[str], None]
    ) -> None:
        """Shuffle this list.

        Args:
            source: Scanned already; it is read anew here.
            seed: Below zero: one is chosen, and told.
            is_lenient: As for the list.
            warn: As for the list; told of the seed too.

        Raises:
            UsageError: It is no regular file, which could be read at any place.
        """
        if not os.path.isfile(source.name):
            raise UsageError(f"--shuffle needs a regular file, {source.name} is none")
        if seed < 0:
            seed = int.from_bytes(os.urandom(4), "big")
            warn(f"tasks start in random order; --shuffle={seed} gives the same again")
        self.total = source.total
        self._seed = seed
        self._name = source.name
        self._is_lenient = is_lenient
        self._warn = warn
        self._file = open(source.name, "rb")  # noqa: SIM115  # closed by close()
        source.close()
        self._reader = TaskReader()
        self._offset = 0
        self._part: Iterator[Item] = iter(())
        self._has_ended = False

    def fileno(self) -> None:
        """A file never makes one wait."""

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items in this order.

        Raises:
            ListRefused: A line is suspicious, and reading is not lenient.
        """
        items: list[Item] = []
        while len(items) < count:
            item = next(self._part, None)
            if item is not None:
                items.append(item)
            elif self._has_ended:
                return items, True
            else:
                self._part = self._next_part()
        return items, False

    def _next_part(self) -> Iterator[Item]:
        """What comes up to the next barrier, shuffled, and the barrier behind it."""
        heads, groups, offsets, barrier = self._index_part()
        starts = [0]
        for group in groups:
            starts.append(starts[-1] + group.count)
        order = Permutation(starts[-1], self._seed)
        yield from heads
        for place in range(len(order)):
            number = order[place]
            at = bisect_right(starts, number) - 1
            yield self._task(groups[at], number - starts[at], offsets)
        if barrier is not None:
            yield barrier

    def _task(self, group: _Lines | _Repeat, index: int, offsets: array[int]) -> Task:
        if isinstance(group, _Repeat):
            return group.task(index)
        self._file.seek(offsets[group.place + index])
        prefix, suffix = group.wrap
        text = self._file.readline().rstrip(b"\r\n")
        return Task(group.first_id + index, group.first_line + index, NO_REPEAT,
                    prefix + text + suffix)

    def _index_part(
        self,
    ) -> tuple[list[Item], list[_Lines | _Repeat], array[int], Barrier | None]:
        heads: list[Item] = []
        groups: list[_Lines | _Repeat] = []
        offsets = array("Q")
        self._file.seek(self._offset)
        while True:
            begin = self._file.tell()
            raw = self._file.readline()
            if not raw:
                self._has_ended = True
                return heads, groups, offsets, None
            self._offset = begin + len(raw)
            before = self._reader.next_id
            made = iter(self._reader.read_line(raw))
            barrier = self._index_line(made, begin, before, heads, groups, offsets)
            if barrier is not None:
                return heads, groups, offsets, barrier

    def _index_line(
        self, made: Iterator[object], begin: int, first_id: int, heads: list[Item],
        groups: list[_Lines | _Repeat], offsets: array[int],
    ) -> Barrier | None:
        """Take in what one line makes; the barrier that ends the part, if it is one."""
        count = self._reader.next_id - first_id
        for item in made:
            if isinstance(item, Suspicion):
                self._suspect(item)
            elif isinstance(item, Barrier):
                return item
            elif not isinstance(item, Task):
                heads.append(item)  # type: ignore[arg-type]  # a per-engine command
            elif item.repeat != NO_REPEAT:
                second = next(made, None)
                step = second.repeat - item.repeat if isinstance(second, Task) else 0
                groups.append(_Repeat(item, step, count))
                return None
            elif count == 1 and item.line == self._reader.line:
                self._add_line(item, begin, groups, offsets)
            else:
                groups.append(_Repeat(item, 0, 1))  # a piece of a line with lone CRs
        return None

    def _add_line(
        self, task: Task, begin: int, groups: list[_Lines | _Repeat], offsets: array[int]
    ) -> None:
        wrap = self._reader.wrap
        last = groups[-1] if groups else None
        if isinstance(last, _Lines) and last.goes_on_with(task, wrap):
            last.count += 1
        else:
            groups.append(_Lines(task, len(offsets), wrap))
        offsets.append(begin)

    def _suspect(self, suspicion: Suspicion) -> None:
        if not self._is_lenient:
            raise refusal(self._name, [suspicion])
        self._warn(suspicion.words(self._name))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
