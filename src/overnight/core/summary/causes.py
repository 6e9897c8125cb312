"""Failures gathered by cause, in bounded memory.

A cause is a kind of ending together with alike last words: numbers, hexadecimal and paths
do not tell two lines apart.
"""

from __future__ import annotations

from overnight.core.summary.words import command_text, visible
from overnight.model.task import NO_REPEAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.model.report import Leak, Report
    from overnight.model.task import PerEngine, Task

CAUSE_LIMIT = 64
"""Causes told apart; the rarest are folded together beyond that."""

EXAMPLE_LIMIT = 3
"""Failed tasks kept as examples of a cause."""

CUT_WORDS_COMPARED = 20
"""Characters, from the end, by which lines are compared whose beginning is lost: where
it was lost depends on the width of numbers further on."""

VARIOUS = "(various last words)"
OTHER_ENDINGS = "various endings"


class Named:
    """A task as it is pointed out to a person.

    Attributes:
        task_id: Its id.
        place: Id, line and repeat index in words.
        command: The beginning of its command, made visible.
    """

    __slots__ = ("command", "place", "task_id")

    def __init__(self, task_id: int, place: str, command: bytes) -> None:
        self.task_id = task_id
        self.place = place
        self.command = command_text(command)


class Cause:
    """Failures of one kind of ending with alike last words.

    Attributes:
        ending: How they ended, in words.
        words: Last words of the first of them; empty when it left none.
        count: How many there were.
        examples: The first few.
        node: Where all of them ran, or empty if on several nodes.
    """

    __slots__ = ("count", "ending", "examples", "node", "words")

    def __init__(self, ending: str, words: str, node: str) -> None:
        self.ending = ending
        self.words = words
        self.count = 0
        self.examples: list[Named] = []
        self.node = node

    def add(self, count: int, examples: list[Named], node: str) -> None:
        """Take further failures in."""
        self.count += count
        self.examples += examples[: EXAMPLE_LIMIT - len(self.examples)]
        if node != self.node:
            self.node = ""

    @property
    def wants_examples(self) -> bool:
        """Whether another example would be kept."""
        return len(self.examples) < EXAMPLE_LIMIT


class Causes:
    """Failures by cause, at most ``CAUSE_LIMIT`` of them apart.

    When one more would be too many, the rarest cause, and among equals the oldest, is
    folded into one for its ending alone. Counts are exact; that a frequent cause was
    folded before it became frequent makes its own count too small.
    """

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Cause] = {}

    def add(self, ending: str, words: str, node: str, named: Callable[[], Named]) -> None:
        """Count one failure; it is named only if it is kept as an example."""
        key = (ending, alike(words))
        cause = self._by_key.get(key)
        if cause is None:
            while len(self._by_key) >= CAUSE_LIMIT:
                self._fold_rarest()
            cause = self._by_key[key] = Cause(ending, words, node)
        cause.add(1, [named()] if cause.wants_examples else [], node)

    def _fold_rarest(self) -> None:
        key = min(
            (key for key, cause in self._by_key.items() if cause.words != VARIOUS),
            key=lambda key: self._by_key[key].count,
            default=None,
        )
        if key is None:  # nothing but folded ones: fold across endings
            key = next(iter(self._by_key))
            self._merge(OTHER_ENDINGS, self._by_key.pop(key))
        else:
            self._merge(key[0], self._by_key.pop(key))

    def _merge(self, ending: str, gone: Cause) -> None:
        cause = self._by_key.setdefault((ending, VARIOUS), Cause(ending, VARIOUS, gone.node))
        cause.add(gone.count, gone.examples, gone.node)

    def by_count(self) -> list[Cause]:
        """All causes, the most frequent first, else in order of appearance."""
        return sorted(self._by_key.values(), key=lambda cause: -cause.count)


def named_task(task: Task) -> Named:
    """The task by its id, its line and its place in a REPEAT."""
    index = "" if task.repeat == NO_REPEAT else f", index {task.repeat}"
    return Named(task.id, f"task {task.id}, line {task.line}{index}", task.command)


def named_command(command: PerEngine) -> Named:
    """The per-engine command by its kind, its number and its line."""
    kind = "START" if command.at_start else "STOP"
    place = f"PERENGINE {kind} {command.number}, line {command.line}"
    return Named(command.number, place, command.command)


def ending(report: Report) -> str:
    """The outcome in words that are the same for all endings of its kind."""
    words = report.outcome.words()
    return alike(words) if report.outcome.kind in _WORDY else words


_WORDY = ("not started", "lost")  # their reasons name hosts, pids and paths


def last_words(report: Report) -> str:
    """The last line with something on it of the error output, else of the output.

    Of more than 80 bytes only the ends are known; a line whose beginning is lost starts
    with an ellipsis.
    """
    return _last_line(report.err) or _last_line(report.out)


def _last_line(leak: Leak) -> str:
    is_whole = leak.count <= len(leak.head) + len(leak.tail)
    if is_whole:
        return _last_of(leak.head + leak.tail, is_cut=False)
    return _last_of(leak.tail, is_cut=True) or _last_of(leak.head, is_cut=False)


def _last_of(text: bytes, is_cut: bool) -> str:
    lines = text.splitlines()
    for position in range(len(lines) - 1, -1, -1):
        line = lines[position].strip()
        if line:
            words = line.decode("utf-8", "replace")
            if is_cut and position == 0:
                return "…" + visible(words.lstrip("\ufffd"))
            return visible(words)
    return ""


def alike(words: str) -> str:
    """The words without what differs between two failures of one cause.

    >>> alike("row 17: cannot open /data/a17.csv (at 0x7ffe)")
    'row #: cannot open / (at #)'
    """
    # Imported here: a run in which nothing fails has no use for it.
    import re

    text = re.sub(r"[^\s'\"(),:;=<>]*/[^\s'\"(),:;=<>]*", "/", words)
    text = re.sub(r"0[xX][0-9a-fA-F]+|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)?", "#", text)
    return text[-CUT_WORDS_COMPARED:] if words.startswith("…") else text
