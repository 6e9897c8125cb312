"""What a source yields: tasks, barriers and per-engine commands.

Plain classes with ``__slots__``, not frozen dataclasses: a run makes ten million of
them and a frozen one costs 2 us more each. Nobody assigns to one after construction.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Union

NO_REPEAT = -1
"""The repeat index of a task that no REPEAT made."""


class Task:
    """One unit of work as read from a source.

    Attributes:
        id: Position among tasks and barriers of the list, from 0.
        line: Physical line, from 1 (the item's index for a stream).
        repeat: Index of a REPEAT, else ``NO_REPEAT``.
        command: The bytes given to bash: prefix, line and suffix joined.
    """

    __slots__ = ("command", "id", "line", "repeat")

    def __init__(self, id: int, line: int, repeat: int, command: bytes) -> None:
        self.id = id
        self.line = line
        self.repeat = repeat
        self.command = command

    def __repr__(self) -> str:
        return f"Task({self.id}, {self.line}, {self.repeat}, {self.command!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Task):
            return NotImplemented
        return (self.id, self.line, self.repeat, self.command) == (
            other.id, other.line, other.repeat, other.command,
        )

    def __hash__(self) -> int:
        return hash((Task, self.id))


class PlainTasks:
    """Tasks of lines in a row that are one task each, before any of them is made.

    Attributes:
        id: Of the first of them; the others have the ids that follow.
        line: Of the first of them; each stands in a line of its own.
        commands: Of each: the bytes given to bash.
    """

    __slots__ = ("commands", "id", "line")

    def __init__(self, id: int, line: int, commands: Sequence[bytes]) -> None:
        self.id = id
        self.line = line
        self.commands = commands

    def task(self, index: int) -> Task:
        """Make one of them."""
        return Task(self.id + index, self.line + index, NO_REPEAT, self.commands[index])

    def tasks(self, begin: int, end: int) -> list[Task]:
        """Make those from one to before another, as far as there are any."""
        first = self.id - self.line
        return [
            Task(first + line, line, NO_REPEAT, command)
            for line, command in enumerate(self.commands[begin:end], self.line + begin)
        ]

    def behind(self, begin: int) -> PlainTasks:
        """The same without those before one of them."""
        if not begin:
            return self
        return PlainTasks(self.id + begin, self.line + begin, self.commands[begin:])


class Barrier:
    """A line after which nothing starts until all before it is settled.

    Attributes:
        id: It takes a task id of its own.
        line: Physical line, from 1.
        text: The directive line as it stands in the list.
        key: The key under which its id is published when it is met, or None.
        checks: Whether a failure since the last barrier ends the run here.
    """

    __slots__ = ("checks", "id", "key", "line", "text")

    def __init__(self, id: int, line: int, text: bytes, key: bytes | None, checks: bool) -> None:
        self.id = id
        self.line = line
        self.text = text
        self.key = key
        self.checks = checks

    def __repr__(self) -> str:
        return f"Barrier({self.id}, {self.line}, {self.text!r}, {self.key!r}, {self.checks})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Barrier):
            return NotImplemented
        return (self.id, self.line, self.text, self.key, self.checks) == (
            other.id, other.line, other.text, other.key, other.checks,
        )

    def __hash__(self) -> int:
        return hash((Barrier, self.id))


class PerEngine:
    """A command that each engine runs once, before its first task or after its last.

    Attributes:
        at_start: True for START, False for STOP.
        number: Position among the START (or STOP) commands, from 0.
        line: Physical line, from 1.
        command: The bytes given to bash, prefix and suffix joined.
    """

    __slots__ = ("at_start", "command", "line", "number")

    def __init__(self, at_start: bool, number: int, line: int, command: bytes) -> None:
        self.at_start = at_start
        self.number = number
        self.line = line
        self.command = command

    def __repr__(self) -> str:
        return f"PerEngine({self.at_start}, {self.number}, {self.line}, {self.command!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PerEngine):
            return NotImplemented
        return (self.at_start, self.number, self.line, self.command) == (
            other.at_start, other.number, other.line, other.command,
        )

    def __hash__(self) -> int:
        return hash((PerEngine, self.at_start, self.number))


class DoneBefore:
    """Tasks in a row that an earlier run settled: they are not run, their old rows stand again.

    A run of them is one item: a resume of a million rows goes by them in a tenth of a second.

    Attributes:
        id: Of the first of them; the others have the ids that follow.
        line: Of the first of them; of several each stands in a line of its own.
        count: How many there are, at least one.
        code: Exit code of the old row of each.
        rows: What is to be written for them (rows with the S flag, each with its newline);
            empty where the status file this run goes on in holds them already.
    """

    __slots__ = ("code", "count", "id", "line", "rows")

    def __init__(self, id: int, line: int, count: int, code: int, rows: bytes) -> None:
        self.id = id
        self.line = line
        self.count = count
        self.code = code
        self.rows = rows

    def __repr__(self) -> str:
        return f"DoneBefore({self.id}, {self.line}, {self.count}, {self.code}, {self.rows!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DoneBefore):
            return NotImplemented
        return (self.id, self.line, self.count, self.code, self.rows) == (
            other.id, other.line, other.count, other.code, other.rows,
        )

    def __hash__(self) -> int:
        return hash((DoneBefore, self.id))


if TYPE_CHECKING:
    Item = Union[Task, Barrier, PerEngine, DoneBefore]
