"""The language of task lists: what lines make, and which are suspected."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from overnight.formats.taskfile import ListScan, Suspicion, TaskReader, refusal
from overnight.model.task import NO_REPEAT, Barrier, PerEngine, Task

if TYPE_CHECKING:
    from overnight.formats.taskfile import Read


def read(text: bytes) -> list[Read]:
    reader = TaskReader()
    return [each for line in text.split(b"\n") for each in reader.read_line(line)]


def items(text: bytes) -> list[Read]:
    return [made for made in read(text) if not isinstance(made, Suspicion)]


def suspicions(text: bytes) -> list[Suspicion]:
    return [made for made in read(text) if isinstance(made, Suspicion)]


def test_a_line_is_a_task_to_the_byte() -> None:
    assert read(b"  a\t'\xff\x00 \\\n") == [Task(0, 1, NO_REPEAT, b"  a\t'\xff\x00 \\")]


def test_a_line_of_a_hundred_kilobytes_is_one_task() -> None:
    assert read(b"x" * 100_000) == [Task(0, 1, NO_REPEAT, b"x" * 100_000)]


def test_a_last_line_needs_no_newline() -> None:
    assert read(b"a\nb") == read(b"a\nb\n")


def test_crlf_ends_a_line_and_cr_a_task_of_the_same_line() -> None:
    assert read(b"a\r\nb\rc\r\n") == [
        Task(0, 1, NO_REPEAT, b"a"), Task(1, 2, NO_REPEAT, b"b"), Task(2, 2, NO_REPEAT, b"c"),
    ]  # fmt: skip


def test_comments_and_blank_lines_are_passed_over_but_counted_as_lines() -> None:
    assert read(b"# c\n\n \t\n  # c\n#\na") == [Task(0, 6, NO_REPEAT, b"a")]


def test_a_byte_order_mark_is_skipped_at_the_very_start_alone() -> None:
    mark = b"\xef\xbb\xbf"
    assert read(mark + b"a\n" + mark + b"b") == [
        Task(0, 1, NO_REPEAT, b"a"), Task(1, 2, NO_REPEAT, mark + b"b"),
    ]  # fmt: skip
    assert read(mark + b"#DISBATCH BARRIER") == [Barrier(0, 1, b"#DISBATCH BARRIER", None, False)]


def test_prefix_and_suffix_are_those_in_force_at_the_line() -> None:
    text = (
        b"a\n#DISBATCH PREFIX ( \n#DISBATCH suffix  ) > log\nb\n#DISBATCH PREFIX \n"
        b"#DISBATCH REPEAT 1 c\n"
    )
    assert [task.command for task in items(text) if isinstance(task, Task)] == [
        b"a", b"( b ) > log", b"c ) > log",
    ]  # fmt: skip


def test_a_repeat_makes_a_task_for_each_index() -> None:
    assert read(b"#DISBATCH REPEAT 3 start 10 step 5 do it \nx") == [
        Task(0, 1, 10, b"do it "), Task(1, 1, 15, b"do it "), Task(2, 1, 20, b"do it "),
        Task(3, 2, NO_REPEAT, b"x"),
    ]  # fmt: skip


def test_a_huge_repeat_makes_its_tasks_when_they_are_taken() -> None:
    reader = TaskReader()
    made = iter(reader.read_line(b"#DISBATCH REPEAT 100000000 x\n"))
    assert list(islice(made, 2)) == [Task(0, 1, 0, b"x"), Task(1, 1, 1, b"x")]
    assert reader.next_id == 100_000_000
    assert list(reader.read_line(b"y")) == [Task(100_000_000, 2, NO_REPEAT, b"y")]


@pytest.mark.parametrize("number", [b"9" * 19, b"9" * 5_000])
def test_a_repeat_beyond_64_bits_is_no_directive(number: bytes) -> None:
    (found,) = read(b"#DISBATCH REPEAT " + number + b" x")
    assert isinstance(found, Suspicion)


def test_a_repeat_whose_last_index_is_beyond_64_bits_is_no_directive() -> None:
    (found,) = read(b"#DISBATCH REPEAT 1000000000000 step 1000000000000 x")
    assert isinstance(found, Suspicion)


def test_per_engine_commands_are_numbered_apart() -> None:
    text = b"#DISBATCH PERENGINE START a\n#DISBATCH PERENGINE STOP b\n#DISBATCH PERENGINE STOP c\n"
    assert read(text) == [
        PerEngine(True, 0, 1, b"a"), PerEngine(False, 0, 2, b"b"), PerEngine(False, 1, 3, b"c"),
    ]  # fmt: skip


def test_a_per_engine_command_has_the_prefix_and_suffix() -> None:
    text = b"#DISBATCH PREFIX <\n#DISBATCH SUFFIX >\n#DISBATCH PERENGINE START a"
    assert read(text) == [PerEngine(True, 0, 3, b"<a>")]


def test_a_late_perengine_is_passed_over_and_reading_goes_on() -> None:
    late = b"#DISBATCH PERENGINE START x"
    made = read(b"a\n" + late + b"\nb")
    assert [type(each) for each in made] == [Task, Suspicion, Task]
    (found,) = suspicions(b"a\n" + late)
    assert found.should_read == b""
    assert found.words("Tasks").endswith("it should stand before the first task")


def test_small_letters_of_start_and_stop_are_read_with_a_suspicion() -> None:
    found, item = read(b"#DISBATCH perengine Stop x")
    assert item == PerEngine(False, 0, 1, b"x")
    assert isinstance(found, Suspicion)
    assert found.should_read == b"#DISBATCH PERENGINE STOP x"


@pytest.mark.parametrize(
    ("line", "key", "checks"),
    [
        (b"#DISBATCH BARRIER", None, False),
        (b"#DISBATCH BARRIER phase 1", b"phase 1", False),
        (b"#DISBATCH BARRIER CHECK", None, True),
        (b"#DISBATCH BARRIER CHECK key", b"key", True),
        (b"#DISBATCH BARRIER CHECK ", b"", True),
    ],
)
def test_a_barrier_has_its_key_and_its_check(line: bytes, key: bytes | None, checks: bool) -> None:
    assert read(line) == [Barrier(0, 1, line, key, checks)]


def test_all_lines_of_a_stream_item_have_its_index() -> None:
    reader = TaskReader()
    assert list(reader.read_stream_item(b"a\n# c\nb\n")) == [
        Task(0, 1, NO_REPEAT, b"a"), Task(1, 1, NO_REPEAT, b"b"),
    ]  # fmt: skip
    assert list(reader.read_stream_item(b"c")) == [Task(2, 2, NO_REPEAT, b"c")]


# What follows: the line, what it is read as, and how it should read.
SUSPECTED = [
    (b" #DISBATCH BARRIER", [], b"#DISBATCH BARRIER"),
    (b"\t#DISBATCH REPEAT 2 x", [], b"#DISBATCH REPEAT 2 x"),
    (b"#disbatch BARRIER", [], b"#DISBATCH BARRIER"),
    (b"#disBatch list of the night", [], b""),
    (b"  #Disbatch prefix x", [], b"#DISBATCH PREFIX x"),
    (b"#DISBATCH", [Task], b""),
    (b"#DISBATCH ", [], b""),
    (b"#DISBATCHBARRIER CHECK", [Task], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCHX", [Task], b""),
    (b"#DISBATCH\tBARRIER", [Task], b"#DISBATCH BARRIER"),
    (b"#DISBATCH BARRRIER", [], b"#DISBATCH BARRIER"),
    (b"#DISBATCH BARIER CHECK", [], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH PREFX a b", [], b"#DISBATCH PREFIX a b"),
    (b"#DISBATCH RESET", [], b""),
    (b"#DISBATCH barrier", [], b"#DISBATCH BARRIER"),
    (b"#DISBATCH  BARRIER", [], b"#DISBATCH BARRIER"),
    (b"#DISBATCH  PREFIX  x", [], b"#DISBATCH PREFIX  x"),
    (b"#DISBATCH REPEAT", [], b""),
    (b"#DISBATCH REPEAT x y", [], b""),
    (b"#DISBATCH REPEAT5 x", [], b"#DISBATCH REPEAT 5 x"),
    (b"#DISBATCH REPEAT 5\tx", [], b"#DISBATCH REPEAT 5 x"),
    (b"#DISBATCH REPEAT 1 step 2 start 5 x", [Task], b"#DISBATCH REPEAT 1 start 5 step 2 x"),
    (b"#DISBATCH REPEAT 1 start -3 x", [Task], b""),
    (b"#DISBATCH REPEAT 1  step", [Task], b""),
    (b"#DISBATCH PREFIX", [], b"#DISBATCH PREFIX "),
    (b"#DISBATCH SUFFIXx", [], b"#DISBATCH SUFFIX x"),
    (b"#DISBATCH PERENGINE START", [], b""),
    (b"#DISBATCH PERENGINE  START x", [], b"#DISBATCH PERENGINE START x"),
    (b"#DISBATCH BARRIERX", [Barrier], b"#DISBATCH BARRIER X"),
    (b"#DISBATCH BARRIER\tCHECK", [Barrier], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH BARRIER check", [Barrier], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH BARRIER Check key", [Barrier], b"#DISBATCH BARRIER CHECK key"),
    (b"#DISBATCH BARRIER  CHECK", [Barrier], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH BARRIER CHECKED", [Barrier], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH BARRIER CHECK_1", [Barrier], b"#DISBATCH BARRIER CHECK"),
    (b"#DISBATCH BARRIER checks", [Barrier], b"#DISBATCH BARRIER CHECK"),
]


@pytest.mark.parametrize(("line", "kinds", "should_read"), SUSPECTED)
def test_what_looks_like_another_directive_is_suspected(
    line: bytes, kinds: list[type], should_read: bytes
) -> None:
    found, *made = read(line)
    assert isinstance(found, Suspicion)
    assert (found.line, found.found, found.should_read) == (1, line, should_read)
    assert [type(item) for item in made] == kinds


@pytest.mark.parametrize(
    "line",
    [
        b"# DISBATCH BARRIER", b"##DISBATCH BARRIER", b"#", b"#DIS", b"echo #DISBATCH X",
        b"#DISBATCH prefix x", b"#DISBATCH Suffix ", b"#DISBATCH repeat 2 START 3 Step 4 x",
        b"#DISBATCH REPEAT\t2 x", b"#DISBATCH REPEAT 2 starter.sh", b"#DISBATCH REPEAT 0",
        b"#DISBATCH PERENGINE START x", b"#DISBATCH perengine STOP x", b"#DISBATCH BARRIER key",
        b"#DISBATCH BARRIER ", b"#DISBATCH BARRIER check-1", b"#DISBATCH BARRIER CHECK check",
    ],
)  # fmt: skip
def test_what_is_read_as_it_looks_is_not_suspected(line: bytes) -> None:
    assert suspicions(line) == []


def test_unknown_directives_are_counted() -> None:
    reader = TaskReader()
    for line in (b"#DISBATCH X", b" #DISBATCH X", b"#DISBATCHX", b"#DISBATCH  Y"):
        reader.read_line(line)
    assert reader.unknown == 2


def test_a_refusal_tells_file_line_text_and_correction() -> None:
    error = refusal("Tasks", suspicions(b"a\n#DISBATCH BARIER\n#DISBATCH PREFIX\n"))
    assert str(error).splitlines() == [
        'Tasks, line 2: "#DISBATCH BARIER" is no directive and is passed over; '
        'it should read "#DISBATCH BARRIER"',
        'Tasks, line 3: "#DISBATCH PREFIX" is no directive and is passed over; '
        'it should read "#DISBATCH PREFIX "',
        "  kept:  no task was started",
        '  do:    correct the list (a comment may begin with "# "), or have it read as disBatch '
        "reads it:  --directives lenient",
    ]


def test_what_only_the_user_can_know_is_said_so() -> None:
    (found,) = suspicions(b"#DISBATCH RESET")
    assert found.words("Tasks").endswith("what it should read only you can know")


def test_a_refusal_shows_twenty_findings_and_counts_the_rest() -> None:
    shown = refusal("Tasks", suspicions(b"#DISBATCH X\n" * 25), more=3).what.splitlines()
    assert len(shown) == 21
    assert shown[-1] == "Tasks: 8 more such lines"


def test_a_finding_is_one_bounded_line_without_control_characters() -> None:
    (found,) = suspicions(b"#DISBATCH \x1b[2J\xff" + b"x" * 100_000)
    words = found.words("Tasks")
    assert words.isprintable()
    assert "\\x1b[2J\\xff" in words
    assert len(words) < 300


def test_a_scan_counts_what_a_list_holds_and_says_what_is_suspected() -> None:
    scan = ListScan()
    text = b"a\n# c\n\n#DISBATCH REPEAT 100000000 x\n#DISBATCH BARRIER\n #DISBATCH X\nlast"
    found = scan.feed(text[:30]) + scan.feed(text[30:]) + scan.finish()
    assert [suspicion.line for suspicion in found] == [6]
    assert (scan.items, scan.lines) == (100_000_003, 7)


def test_a_scan_counts_tasks_apart_from_barriers() -> None:
    scan = ListScan()
    scan.feed(b"a\n#DISBATCH BARRIER\n#DISBATCH REPEAT 3 b\n#DISBATCH BARRIER CHECK\nc\n")
    scan.finish()
    assert (scan.items, scan.tasks) == (7, 5)
