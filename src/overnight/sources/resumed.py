"""A list whose tasks an earlier run has partly done."""

from __future__ import annotations

from overnight.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.model.task import Item
    from overnight.ports import Source
    from overnight.sources.earlier import Earlier


class Resumed:
    """Another source's items, with what was done before in the place of its task."""

    def __init__(self, source: Source, earlier: Earlier) -> None:
        self._source = source
        self._earlier = earlier

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
            ResumeRefused: A task does not fit its old row. Items before it may be lost to
                the caller: they were not started and run at the next resume.
        """
        items, is_over = self._source.read(count)
        judge = self._earlier.judge
        return [judge(item) if type(item) is Task else item for item in items], is_over

    def close(self) -> None:
        """Close both."""
        self._source.close()
