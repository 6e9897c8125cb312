"""A list whose tasks an earlier run has partly done."""

from __future__ import annotations

from overnight.errors import ResumeRefused
from overnight.model.task import DoneBefore, Task
from overnight.sources.lines import KEPT_WHEN_BEGUN
from overnight.sources.listfile import ListFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overnight.model.task import Item
    from overnight.ports import Source
    from overnight.sources.earlier import Earlier

MOST_ROW_BYTES = 1 << 20
"""Of rows that are written again, given in one go: the record keeps them until a flush."""

MOST_SINGLES = 64
"""Items that are judged one by one in one go: their rows are kept too."""


class Resumed:
    """Another source's items, with what was done before in the place of its tasks."""

    def __init__(self, source: Source, earlier: Earlier) -> None:
        self._source = source
        self._list = source if isinstance(source, ListFile) else None
        self._plain: Iterator[Item] = iter(())  # what is left of lines taken together
        self._earlier = earlier
        self._refusal: ResumeRefused | None = None
        self._has_given = False

    @property
    def total(self) -> int | None:
        """As the list has it: tasks done before count."""
        return self._source.total

    def fileno(self) -> int | None:
        """Of the list."""
        return self._source.fileno()

    def read(self, count: int) -> tuple[Sequence[Item], bool]:
        """The next items.

        Raises:
            ListRefused: As the list does.
            ResumeRefused: The next task does not fit its old row. Items before it were
                given by earlier calls.
        """
        if self._refusal is not None:
            raise self._refusal
        items = self._read_plain(count)
        is_over = False
        if not items and self._refusal is None:
            read, is_over = self._source.read(min(count, MOST_SINGLES))
            items = self._until_refused(self._judged(read))
        refusal = self._found_refusal()
        if refusal is not None:
            is_over = False
            if items or self._has_given:
                refusal.kept = KEPT_WHEN_BEGUN
            if not items:
                raise refusal
        self._has_given = self._has_given or bool(items)
        return items, is_over

    def _read_plain(self, count: int) -> list[Item]:
        """Items of lines that are simply tasks; none where other lines come next."""
        if self._list is None:
            return []
        items = self._until_refused(_bounded(self._plain, count))
        if items or self._refusal is not None:
            return items
        plain = self._list.take_plain()
        if plain is not None:
            self._plain = self._earlier.judge_plain(plain, self._list.has_changed)
        return self._until_refused(_bounded(self._plain, count))

    def _found_refusal(self) -> ResumeRefused | None:
        return self._refusal

    def _judged(self, items: Iterable[Item]) -> Iterator[Item]:
        judge = self._earlier.judge
        for item in items:
            yield judge(item) if type(item) is Task else item

    def _until_refused(self, judged: Iterator[Item]) -> list[Item]:
        """The items up to the first task that does not fit its old row."""
        items: list[Item] = []
        try:
            for item in judged:
                items.append(item)  # one by one: what came before a refusal is kept
        except ResumeRefused as error:
            self._refusal = error
        return items

    def close(self) -> None:
        """Close both."""
        self._source.close()
        self._earlier.close()


def _bounded(items: Iterator[Item], count: int) -> Iterator[Item]:
    """The next of these items, at most so many, or fewer with rows of ``MOST_ROW_BYTES``."""
    size = 0
    for item in items:
        yield item
        count -= 1
        size += len(item.rows) if type(item) is DoneBefore else 0
        if count <= 0 or size >= MOST_ROW_BYTES:
            return
