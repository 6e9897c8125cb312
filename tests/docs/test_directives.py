"""docs/reference/directives.md says which lines are suspicious, and how they are read."""

from __future__ import annotations

import re

import pytest

from overnight.formats.taskfile import Suspicion, TaskReader
from overnight.model.task import Barrier, PerEngine, Task
from tests.docs.pages import page

PAGE = page("docs/reference/directives.md")
KINDS = {
    "a comment": (),
    "passed over": (),
    "a task, which bash takes for a comment": (Task,),
    "a `REPEAT` with that command": (Task,),
    "`START` or `STOP`": (PerEngine,),
    "a barrier without CHECK, with that key": (Barrier,),
    "a barrier with CHECK": (Barrier,),
    "a barrier": (Barrier,),
}


def lines_in(cell: str) -> list[bytes]:
    """The lines of a list that stand in a cell."""
    return [code.encode() for code in re.findall(r"`([^`]+)`", cell) if "DISBATCH" in code.upper()]


def told() -> list[tuple[bytes, str, bool]]:
    """Each suspicious line, how it is read, and whether it stands behind a task."""
    return [
        (line, how, "behind the first task" in cell)
        for cell, how in PAGE.rows_under("Suspicious lines") for line in lines_in(cell)
    ]


@pytest.mark.parametrize(("line", "how", "is_late"), told())
def test_a_suspicious_line_is_read_as_told(line: bytes, how: str, is_late: bool) -> None:
    reader = TaskReader()
    if is_late:
        list(reader.read_line(b"true"))
    made = list(reader.read_line(line))
    assert isinstance(made[0], Suspicion), f"{line!r} is not suspicious"
    assert {type(item) for item in made[1:]} == set(KINDS[how])


def test_lines_called_not_suspicious_are_not() -> None:
    sentence = next(line for line in PAGE.prose if line.startswith("Not suspicious"))
    lines = lines_in(sentence)
    assert lines, "no line is named"
    assert not [line for line in lines if list(TaskReader().read_line(line))]


@pytest.mark.parametrize("row", PAGE.rows_under("The directives"), ids=lambda row: row[0])
def test_a_directive_of_the_table_is_read_as_one(row: list[str]) -> None:
    form = row[0].strip("`")
    for optional in (True, False):
        line = re.sub(r"\[([^]]*)\]", r"\1" if optional else "", form)
        line = re.sub(r"\b(n|s|t)\b", "2", line).rstrip() + (" " if "FIX" in line else "")
        assert not TaskReader().read_suspicions(" ".join(line.split()).encode() + b" "), line
