"""What items made of lines promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import ListRefused
from overnight.model.task import Task
from overnight.sources.lines import LineItems
from tests.sources.kit import LINES, ODD_LINES, items_of, lists


class Lines:
    """A list as a source of lines, which counts what was asked of it."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = list(lines)
        self.given = 0

    def __call__(self) -> bytes | None:
        if self.given == len(self.lines):
            return None
        self.given += 1
        return self.lines[self.given - 1]


def line_items(*, is_lenient: bool = False) -> tuple[LineItems, list[str]]:
    told: list[str] = []
    return LineItems("Tasks", is_lenient=is_lenient, warn=told.append), told


def test_no_more_lines_are_asked_for_than_are_needed():
    lines = Lines(b"a\n", b"b\n", b"c\n")
    items, _ = line_items()
    assert items.take(2, lines) == [Task(0, 1, -1, b"a"), Task(1, 2, -1, b"b")]
    assert lines.given == 2


def test_a_repeat_is_given_in_pieces_without_a_further_line():
    lines = Lines(b"#DISBATCH REPEAT 5 r\n", b"b\n")
    items, _ = line_items()
    assert [task.id for task in items.take(2, lines)] == [0, 1]
    assert not items.is_between_lines
    assert [task.id for task in items.take(2, lines)] == [2, 3]
    assert lines.given == 1
    assert [task.id for task in items.take(9, lines)] == [4, 5]


def test_nothing_comes_when_there_is_no_line_now():
    items, _ = line_items()
    assert items.take(5, Lines()) == []
    assert items.is_between_lines


def test_what_comes_before_a_suspicious_line_is_given_first():
    lines = Lines(b"a\n", b"#DISBATCH BARIER\n", b"b\n")
    items, _ = line_items()
    assert items.take(5, lines) == [Task(0, 1, -1, b"a")]
    assert items.is_refused
    for _ in range(2):
        with pytest.raises(ListRefused, match="Tasks, line 2"):
            items.take(5, lines)
    assert lines.given == 2


def test_a_suspicious_line_with_nothing_before_it_is_refused_at_once():
    items, _ = line_items()
    with pytest.raises(ListRefused) as refused:
        items.take(5, Lines(b"# tasks\n", b"#DISBATCH BARIER\n"))
    assert refused.value.kept == "no task was started"


@pytest.mark.parametrize("count", [1, 5])
def test_a_refusal_does_not_deny_what_may_run_already(count):
    lines = Lines(b"a\n", b"#DISBATCH BARIER\n")
    items, _ = line_items()
    items.take(count, lines)
    with pytest.raises(ListRefused) as refused:
        items.take(count, lines)
    assert refused.value.kept.startswith("what was started goes on")


def test_nothing_of_a_suspicious_repeat_is_given():
    lines = Lines(b"#DISBATCH REPEAT 3 step 2 start 5 x\n")
    items, _ = line_items()
    with pytest.raises(ListRefused):
        items.take(5, lines)


def test_lenient_reading_warns_of_each_suspicious_line_and_reads_it():
    items, told = line_items(is_lenient=True)
    lines = Lines(b"#DISBATCHX\n", b" #DISBATCH BARRIER\n", b"b\n")
    assert [task.command for task in items.take(5, lines)] == [b"#DISBATCHX", b"b"]
    assert [text.split(":")[0] for text in told] == ["Tasks, line 1", "Tasks, line 2"]


@given(lists([*LINES, *ODD_LINES]), st.integers(1, 7))
def test_the_items_are_those_of_the_reader_however_many_are_asked_for(data, count):
    items, _ = line_items(is_lenient=True)
    lines = Lines(*data.splitlines(keepends=True)) if b"\r" not in data else Lines(
        *(line + b"\n" for line in data.split(b"\n"))
    )
    taken: list = []
    while some := items.take(count, lines):
        taken += some
    assert taken == items_of(data)
