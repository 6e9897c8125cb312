"""What a source yields: tasks, barriers and per-engine commands.

Plain classes with ``__slots__``, not frozen dataclasses: a run makes ten million of
them and a frozen one costs 2 us more each. Nobody assigns to one after construction.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """A task that an earlier run settled: it is not run, its old row stands again.

    Attributes:
        task: The task as this list has it.
        code: Exit code of the old row.
        row: The row to write for it (S flag set, no newline), or None when the status
            file this run goes on in already holds it.
    """

    __slots__ = ("code", "row", "task")

    def __init__(self, task: Task, code: int, row: bytes | None) -> None:
        self.task = task
        self.code = code
        self.row = row


if TYPE_CHECKING:
    Item = Union[Task, Barrier, PerEngine, DoneBefore]
