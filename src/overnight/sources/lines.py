"""From lines to items, for every source whose items are lines."""

from __future__ import annotations

from itertools import chain

from overnight.formats.taskfile import Suspicion, TaskReader, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overnight.errors import ListRefused
    from overnight.model.task import Item, PlainTasks

KEPT_WHEN_BEGUN = "what was started goes on to its end; nothing further is started"
"""What is true when a list is refused after items of it were given."""


class LineItems:
    """Items made of lines that are asked for one by one, as many as are wanted.

    Attributes:
        is_between_lines: All items of the last line were given.
        is_refused: A suspicious line ended the list; the next ``take`` says so.
    """

    def __init__(self, name: str, *, is_lenient: bool, warn: Callable[[str], None]) -> None:
        """Begin a list.

        Args:
            name: Of the list, for messages.
            is_lenient: Suspicious lines are read as disBatch reads them, with a warning
                each; otherwise the first of them ends the list.
            warn: Told of suspicious lines that are read all the same.
        """
        self._name = name
        self._is_lenient = is_lenient
        self._warn = warn
        self._reader = TaskReader()
        self._rest: Iterator[object] | None = None  # what the last line still makes
        self._refusal: ListRefused | None = None
        self._has_given = False

    @property
    def is_between_lines(self) -> bool:
        return self._rest is None

    @property
    def is_refused(self) -> bool:
        return self._refusal is not None

    def plain_tasks(self, lines: Sequence[bytes], begin: int) -> PlainTasks:
        """``TaskReader.plain_tasks`` of the next lines, where one is due.

        They do not count as taken: that is said with ``pass_tasks``.
        """
        return self._reader.plain_tasks(lines, begin)

    def pass_tasks(self, count: int) -> None:
        """So many of the plain tasks were taken."""
        self._reader.pass_tasks(count)
        self._has_given = True

    def take(self, count: int, next_line: Callable[[], bytes | None]) -> list[Item]:
        """Up to ``count`` items.

        Args:
            count: Most items wanted, at least one.
            next_line: Gives the next line, or None when there is none now.

        Raises:
            ListRefused: The next line is suspicious, and reading is not lenient. Items
                before it were given by earlier calls.
        """
        items: list[Item] = []
        while len(items) < count and self._refusal is None:
            if self._rest is None:
                raw = next_line()
                if raw is None:
                    break
                self._rest = iter(self._reader.read_line(raw))
            self._take_of_line(items, count)
        if self._rest is not None:
            self._rest = _unless_over(self._rest)
        if self._refusal is not None and not items:
            # At once when nothing comes before it: an empty answer would mean "wait".
            raise self._refusal
        self._has_given = self._has_given or bool(items)
        return items

    def _take_of_line(self, items: list[Item], count: int) -> None:
        for made in self._rest or ():
            if isinstance(made, Suspicion):
                self._suspect(made, bool(items) or self._has_given)
            else:
                items.append(made)  # type: ignore[arg-type]  # the reader makes nothing else
            if len(items) >= count or self._refusal is not None:
                return
        self._rest = None

    def _suspect(self, suspicion: Suspicion, has_begun: bool) -> None:
        if self._is_lenient:
            self._warn(suspicion.words(self._name))
            return
        self._refusal = refusal(self._name, [suspicion])
        if has_begun:
            self._refusal.kept = KEPT_WHEN_BEGUN


def _unless_over(rest: Iterator[object]) -> Iterator[object] | None:
    """What is left of a line, or None where nothing is."""
    for first in rest:
        return chain((first,), rest)
    return None
