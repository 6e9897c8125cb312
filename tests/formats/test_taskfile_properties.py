"""Lists of every kind: the ways to read them agree, with each other and with the rules."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.taskfile import ListScan, Suspicion, TaskReader
from overnight.model.task import Barrier, PerEngine, PlainTasks, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overnight.formats.taskfile import Read

WORDS = [
    b"#DISBATCH", b"#disbatch", b"# DISBATCH", b" ", b"\t", b"\x0b", b"\xc2\xa0", b"\r", b"\n",
    b"\r\n", b"\n\n", b"BARRIER", b"CHECK", b"check", b"PREFIX", b"suffix", b"REPEAT", b"start",
    b"step", b"PERENGINE", b"START", b"stop", b"2", b"0", b"x", b"#", b"'", b"\xff", b"BARIER",
    b"\xef\xbb\xbf", b"", b"!", b"key",
]  # fmt: skip

lines_like = st.lists(st.sampled_from(WORDS), max_size=8).map(b"".join)
directives = st.builds(
    b" ".join, st.tuples(st.just(b"#DISBATCH"), st.sampled_from(WORDS), lines_like)
)
lists = st.lists(st.one_of(lines_like, directives, st.just(b"task")), max_size=12).map(b"\n".join)


def read(text: bytes) -> list[Read]:
    return list(read_lines(text.split(b"\n")))


def read_lines(lines: list[bytes]) -> Iterator[Read]:
    reader = TaskReader()
    return (each for line in lines for each in reader.read_line(line))


def scan_in_blocks(text: bytes, cuts: list[int]) -> tuple[ListScan, list[Suspicion]]:
    scan = ListScan()
    found = []
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for begin, end in pairwise(edges):
        found += scan.feed(text[begin:end])
    return scan, found + scan.finish()


@given(lists, st.lists(st.integers(0, 1_000), max_size=6))
def test_a_scan_agrees_with_the_reader_wherever_the_list_is_cut(
    text: bytes, cuts: list[int]
) -> None:
    scan, found = scan_in_blocks(text, cuts)
    made = read(text)
    assert found == [each for each in made if isinstance(each, Suspicion)]
    assert scan.items == sum(isinstance(each, Task | Barrier) for each in made)
    assert scan.tasks == sum(isinstance(each, Task) for each in made)


@given(st.binary(max_size=200), st.lists(st.integers(0, 1_000), max_size=3))
def test_any_bytes_are_a_list(text: bytes, cuts: list[int]) -> None:
    scan, found = scan_in_blocks(text, cuts)
    made = list(islice(read_lines(text.split(b"\n")), 1_000))
    assert found[:1] == [each for each in made if isinstance(each, Suspicion)][:1]
    assert scan.items >= sum(isinstance(each, Task | Barrier) for each in made)


@given(lists)
def test_line_by_line_and_as_a_file_a_list_is_read_alike(text: bytes) -> None:
    reader = TaskReader()
    lines = text.split(b"\n")
    kept = lines[:-1] if not lines[-1] else lines
    made = [each for line in kept for each in reader.read_line(line + b"\n")]
    assert made == read(text)


@given(lists, st.lists(st.integers(0, 1_000), max_size=4))
def test_in_blocks_a_list_is_read_alike_wherever_it_is_cut(text: bytes, cuts: list[int]) -> None:
    lines = text.split(b"\n")
    edges = [0, *sorted(cut % (len(lines) + 1) for cut in cuts), len(lines)]
    made: list[object] = []
    for each in TaskReader().read_blocks(lines[begin:end] for begin, end in pairwise(edges)):
        if isinstance(each, PlainTasks):
            assert each.commands
            made += map(each.task, range(len(each.commands)))
        else:
            made.append(each)
    assert made == read(text)


def test_a_long_run_of_plain_lines_is_one_block() -> None:
    lines = [b"# head", *[b"true"] * 5_000, b"# foot", b"true\rfalse", *[b"false"] * 40]
    made = list(TaskReader().read_blocks([lines]))
    assert [len(each.commands) for each in made if isinstance(each, PlainTasks)] == [5_000, 40]
    assert len(made) == 4


@given(lists)
def test_an_item_of_a_stream_is_read_as_a_list_whose_lines_have_one_number(text: bytes) -> None:
    streamed = list(TaskReader().read_stream_item(text))
    made = [each for each in streamed if isinstance(each, Task)]
    assert [(task.id, task.repeat, task.command) for task in made] == [
        (task.id, task.repeat, task.command) for task in read(text) if isinstance(task, Task)
    ]
    assert {each.line for each in made} <= {1}


@given(lists)
def test_what_a_line_should_read_is_read_without_a_suspicion_in_its_place(text: bytes) -> None:
    lines = text.split(b"\n")
    for found in read(text):
        if isinstance(found, Suspicion) and found.should_read and found.found in lines:
            at = found.line - 1
            mended = [*lines[:at], found.should_read]
            last = list(read_lines(mended))
            assert not [
                each for each in last if isinstance(each, Suspicion) and each.line == found.line
            ]


@given(lists)
def test_a_list_is_read_by_disbatchs_rules(text: bytes) -> None:
    made = [each for each in read(text) if not isinstance(each, Suspicion)]
    assert made == list(ByTheRules().read(text))


class ByTheRules:
    """The rules of the reference as the regular expressions that they were recorded with."""

    COMMENT = re.compile(rb"\s*(#|$)")
    PERENGINE = re.compile(rb"#DISBATCH PERENGINE (START|STOP) (.*)$", re.IGNORECASE)
    WRAP = re.compile(rb"#DISBATCH (PREFIX|SUFFIX) (.*)$", re.IGNORECASE)
    REPEAT = re.compile(
        rb"#DISBATCH REPEAT\s+([0-9]+)(\s+start\s+([0-9]+))?(\s+step\s+([0-9]+))?( (.+))?\s*$",
        re.IGNORECASE,
    )
    BARRIER = re.compile(rb"#DISBATCH BARRIER( (CHECK))?( (.*)$)?")

    def __init__(self) -> None:
        self.next_id = 0
        self.at_head = True
        self.wrap = {b"PREFIX": b"", b"SUFFIX": b""}
        self.numbers = {b"START": 0, b"STOP": 0}

    def read(self, text: bytes) -> list[Task | Barrier | PerEngine]:
        made = []
        for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            for piece in line.splitlines():
                if piece.startswith(b"#DISBATCH") or not self.COMMENT.match(piece):
                    made += self.read_piece(piece, number)
        return made

    def read_piece(self, piece: bytes, line: int) -> list[Task | Barrier | PerEngine]:
        if match := self.PERENGINE.match(piece):
            word = match[1].upper()
            if not self.at_head:
                return []
            self.numbers[word] += 1
            command = self.command(match[2])
            return [PerEngine(word == b"START", self.numbers[word] - 1, line, command)]
        if match := self.WRAP.match(piece):
            self.wrap[match[1].upper()] = match[2]
            return []
        self.at_head = False
        if match := self.REPEAT.match(piece):
            start, step = int(match[3] or 0), int(match[5] or 1)
            command = self.command(match[7] or b"")
            return [self.task(line, start + i * step, command) for i in range(int(match[1]))]
        if match := self.BARRIER.match(piece):
            self.next_id += 1
            return [Barrier(self.next_id - 1, line, piece, match[4], bool(match[2]))]
        if piece.startswith(b"#DISBATCH "):
            return []
        return [self.task(line, -1, self.command(piece))]

    def command(self, text: bytes) -> bytes:
        return self.wrap[b"PREFIX"] + text + self.wrap[b"SUFFIX"]

    def task(self, line: int, repeat: int, command: bytes) -> Task:
        self.next_id += 1
        return Task(self.next_id - 1, line, repeat, command)
