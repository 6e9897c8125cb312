"""One execution of a task in a slot."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.task import Task


class Attempt:
    """A task and which try at it this is.

    Attributes:
        task: What is executed.
        number: From 1; a task that is given out again gets the next one.
    """

    __slots__ = ("number", "task")

    def __init__(self, task: Task, number: int) -> None:
        self.task = task
        self.number = number

    def __repr__(self) -> str:
        return f"Attempt({self.task!r}, {self.number})"
