"""From lines to items, for every source whose items are lines."""

from __future__ import annotations

from overnight.formats.taskfile import Suspicion, TaskReader, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overnight.model.task import Item


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
        self._found: list[Suspicion] = []

    @property
    def is_between_lines(self) -> bool:
        return self._rest is None

    @property
    def is_refused(self) -> bool:
        return bool(self._found)

    def take(self, count: int, next_line: Callable[[], bytes | None]) -> list[Item]:
        """Up to ``count`` items.

        Args:
            count: Most items wanted.
            next_line: Gives the next line, or None when there is none now.

        Raises:
            ListRefused: The next line is suspicious, and reading is not lenient. Items
                before it were given by earlier calls.
        """
        if self._found:
            raise refusal(self._name, self._found)
        items: list[Item] = []
        while len(items) < count and not self._found:
            if self._rest is None:
                raw = next_line()
                if raw is None:
                    break
                self._rest = iter(self._reader.read_line(raw))
            self._take_of_line(items, count)
        return items

    def _take_of_line(self, items: list[Item], count: int) -> None:
        for made in self._rest or ():
            if isinstance(made, Suspicion):
                self._suspect(made)
            else:
                items.append(made)  # type: ignore[arg-type]  # the reader makes nothing else
            if len(items) >= count or self._found:
                return
        self._rest = None

    def _suspect(self, suspicion: Suspicion) -> None:
        if self._is_lenient:
            self._warn(suspicion.words(self._name))
        else:
            self._found.append(suspicion)
