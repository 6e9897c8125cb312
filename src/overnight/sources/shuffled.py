"""A list file in random order, within each part between two barriers (``--shuffle``).

A part is looked through when it is reached; its lines are read again one by one, in the
new order. Ids and line numbers stay those of the list.
"""

from __future__ import annotations

import os

from overnight.core.permute import Permutation
from overnight.errors import ListRefused, OvernightError
from overnight.formats.taskfile import Suspicion, TaskReader, refusal
from overnight.model.task import NO_REPEAT, Barrier, PerEngine, Task
from overnight.sources.changes import Changes
from overnight.sources.lines import KEPT_WHEN_BEGUN
from overnight.sources.part import Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overnight.model.task import Item
    from overnight.sources.listfile import ListFile

LINE_END = b"\r\n"
LAST_SPECIAL = ord("#")
"""A line that begins with a greater byte is a task, whatever follows."""

FIRST_READ = 4096
"""Bytes read to get a line again: enough for nearly all."""


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
            OSError: The list cannot be opened once more.
        """
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
        self._changes = Changes(self._file.fileno(), source.name, warn)
        self._reader = TaskReader()
        self._finds = self._find()
        self._part: Iterator[Item] = iter(())
        self._has_ended = False
        self._has_given = False
        self._refusal: OvernightError | None = None

    def fileno(self) -> None:
        """A file never makes one wait."""

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items in this order.

        Raises:
            ListRefused: The next part holds a suspicious line, and reading is not lenient; or
                the list was changed so that lines cannot be found again. Items before were
                given by earlier calls.
        """
        self._changes.look()
        items: list[Item] = []
        try:
            is_over = self._refusal is None and self._take(items, count)
        except OvernightError as error:
            is_over, self._refusal = False, error
            if items or self._has_given:
                error.kept = KEPT_WHEN_BEGUN
        if self._refusal is not None and not items:
            raise self._refusal
        self._has_given = self._has_given or bool(items)
        return items, is_over

    def _take(self, items: list[Item], count: int) -> bool:
        while len(items) < count:
            item = next(self._part, None)
            if item is not None:
                items.append(item)
            elif self._has_ended:
                return True
            else:
                self._part = self._next_part()
        return False

    def _next_part(self) -> Iterator[Item]:
        """What comes up to the next barrier, shuffled, and the barrier behind it."""
        part, barrier = self._look_through_part()
        yield from part.heads
        # Parts of one length would all have the same order but for the line in the key.
        order = Permutation(len(part), self._seed + (self._reader.line << 32))
        for place in range(len(part)):
            yield part.task(order[place], self._line_at)
        if barrier is not None:
            yield barrier

    def _look_through_part(self) -> tuple[Part, Barrier | None]:
        part, reader = Part(), self._reader
        for item, offset, count, step in self._finds:
            if isinstance(item, Barrier):
                return part, item
            if isinstance(item, PerEngine):
                part.heads.append(item)
            elif item is None:
                part.add_line(reader.next_id - 1, reader.line, offset, reader.wrap)
            else:
                part.add_tasks(item, count, step)
        self._has_ended = True
        return part, None

    def _find(self) -> Iterator[tuple[Task | Barrier | PerEngine | None, int, int, int]]:
        """Everything in the list, in its order.

        Yields:
            An item, or None for a line that makes one task and can be read again for it; the
            offset of the line; how many tasks the item stands for, and the step between
            their repeat indices.
        """
        offset = 0
        reader = self._reader
        for raw in self._file:
            if raw[0] > LAST_SPECIAL and b"\r" not in raw and reader.line:
                reader.pass_tasks(1)  # nearly all lines: no task need be made of it now
                yield None, offset, 1, 0
            else:
                for item, count, step in self._find_in(raw):
                    is_readable = count == 1 and self._makes(raw, item)
                    yield None if is_readable else item, offset, count, step
            offset += len(raw)

    def _find_in(self, raw: bytes) -> Iterator[tuple[Task | Barrier | PerEngine, int, int]]:
        made = iter(self._reader.read_line(raw))
        has_one_piece = b"\r" not in raw.rstrip(LINE_END)
        for item in made:
            if isinstance(item, Suspicion):
                self._suspect(item)
            elif isinstance(item, Task) and item.repeat != NO_REPEAT and has_one_piece:
                yield item, self._reader.next_id - item.id, _step(item, made)
                return
            else:
                yield item, 1, 0

    def _makes(self, raw: bytes, item: Task | Barrier | PerEngine) -> bool:
        """Whether the line, read again, makes the task: not behind a byte-order mark, say."""
        if not isinstance(item, Task) or item.repeat != NO_REPEAT:
            return False
        prefix, suffix = self._reader.wrap
        return prefix + raw.rstrip(LINE_END) + suffix == item.command

    def _line_at(self, offset: int, line: int) -> bytes:
        """The line at this offset, without its end.

        Raises:
            ListRefused: No line begins there any more.
        """
        size = FIRST_READ
        before = min(offset, 1)
        while True:
            data = os.pread(self._file.fileno(), size, offset - before)
            end = data.find(b"\n", before)
            if end >= 0 or len(data) < size:
                break
            size *= 4
        if len(data) <= before or (before and data[:1] != b"\n"):
            raise ListRefused(
                f"line {line} is not where it was: the list was changed", where=self._name,
                kept="no task was started", do="resume with the list as it was",
            )
        return data[before: end if end >= 0 else len(data)].rstrip(LINE_END)

    def _suspect(self, suspicion: Suspicion) -> None:
        if not self._is_lenient:
            raise refusal(self._name, [suspicion])
        self._warn(suspicion.words(self._name))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _step(first: Task, others: Iterator[object]) -> int:
    """The step of the REPEAT whose first task is given, by its second."""
    second = next(others, None)
    return second.repeat - first.repeat if isinstance(second, Task) else 0
