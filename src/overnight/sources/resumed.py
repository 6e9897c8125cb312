"""A list whose tasks an earlier run has partly done."""

from __future__ import annotations

from overnight.errors import ResumeRefused
from overnight.model.task import Task
from overnight.sources.lines import KEPT_WHEN_BEGUN

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
        items, is_over = self._source.read(count)
        judged, refusal = self._judge(items)
        if refusal is not None:
            if judged or self._has_given:
                refusal.kept = KEPT_WHEN_BEGUN
            if not judged:
                raise refusal
            self._refusal, is_over = refusal, False
        self._has_given = self._has_given or bool(judged)
        return judged, is_over

    def _judge(self, items: Sequence[Item]) -> tuple[list[Item], ResumeRefused | None]:
        """The items up to the first task that does not fit its old row, and what is wrong."""
        judge = self._earlier.judge
        judged: list[Item] = []
        try:
            for item in items:
                judged.append(judge(item) if type(item) is Task else item)
        except ResumeRefused as error:
            return judged, error
        return judged, None

    def close(self) -> None:
        """Close both."""
        self._source.close()
        self._earlier.close()
