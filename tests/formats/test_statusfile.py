"""The status file: rows to the byte, and what is read back from them."""

from __future__ import annotations

import pytest

from overnight.formats import statusfile
from overnight.formats.statusfile import (
    HEADER,
    TORN,
    barrier_row,
    closing,
    is_field_of,
    is_torn_field_of,
    may_become_row,
    parse_row,
    per_engine_row,
    read_rows,
    skipped_row,
    task_row,
)
from overnight.model.outcome import Cancelled, Exited, Lost, NotStarted, Signalled
from overnight.model.report import Leak, Report
from overnight.model.task import NO_REPEAT, Barrier, PerEngine, Task

TASK = Task(7, 9, NO_REPEAT, b"true")
ROW = b"    \t7\t9\t-1\tn1\t42\t0\t1.500\t1700000000.000\t1700000001.500\t0\t''\t0\t''\ttrue\n"


def report(outcome: object = Exited(0), *, out: bytes = b"", late: bool = False) -> Report:
    leak = Leak(len(out), out[:40], out[40:][-40:])
    return Report(7, 1, outcome, 42, 1_700_000_000.0, 1.5, out=leak, late=late)  # type: ignore[arg-type]  # any outcome


def test_a_row_is_fifteen_fields_and_a_newline() -> None:
    assert task_row(TASK, report(), "n1") == ROW


@pytest.mark.parametrize(
    ("outcome", "flags", "code"),
    [
        (Exited(0), b"    ", b"0"),
        (Exited(3), b"R   ", b"3"),
        (Signalled(-9), b"R   ", b"-9"),
        (NotStarted(7, "too long"), b"R   ", b"7"),
        (Lost("gone"), b"R   ", b"-100"),
        (Cancelled(-15, "interrupt"), b"R  Z", b"-15"),
        (Cancelled(0, "interrupt"), b"   Z", b"0"),
    ],
)
def test_flags_and_exit_code_tell_the_outcome(outcome: object, flags: bytes, code: bytes) -> None:
    fields = task_row(TASK, report(outcome), "n1").split(b"\t")
    assert (fields[0], fields[6]) == (flags, code)


def test_a_late_report_has_the_flag_z() -> None:
    assert task_row(TASK, report(late=True), "n1").startswith(b"   Z\t7\t")


def test_leaked_output_has_its_flag_count_and_snippet() -> None:
    fields = task_row(TASK, report(out=b"it's\n" + b"x" * 95), "n1").split(b"\t")
    assert (fields[0], fields[10]) == (b" O  ", b"100")
    assert fields[11] == b"\"it's\\n" + b"x" * 35 + b"..." + b"x" * 40 + b'"'


def test_a_per_engine_row_bears_the_number_of_the_command() -> None:
    row = per_engine_row(PerEngine(False, 2, 4, b"rm"), report(Exited(1)), "n1")
    assert row.split(b"\t")[:4] == [b"R  P", b"2", b"4", b"-1"]


def test_a_barrier_has_five_flags_and_the_directive() -> None:
    barrier = Barrier(3, 5, b"#DISBATCH BARRIER key", b"key", False)
    assert barrier_row(barrier, "n1", 42, 1_700_000_000.0, 0.25) == (
        b"B    \t3\t5\t-1\tn1\t42\t0\t0.250\t1700000000.000\t1700000000.250\t0\t''\t0\t''\t"
        b"#DISBATCH BARRIER key\n"
    )


def test_a_check_is_flagged_c() -> None:
    barrier = Barrier(3, 5, b"#DISBATCH BARRIER CHECK", None, True)
    assert barrier_row(barrier, "n1", 42, 0.0, 0.0).startswith(b"C    \t3\t")


def test_a_skipped_row_is_the_old_one_with_its_flag() -> None:
    assert skipped_row(b"RO  \t1\told") == b"RO S\t1\told"


def test_a_skipped_row_that_moved_bears_the_numbers_of_its_task() -> None:
    assert skipped_row(ROW, Task(1, 2, 3, b"true")) == ROW.replace(
        b"    \t7\t9\t-1", b"   S\t1\t2\t3"
    )


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (b"a\tb \x00\x1b", b"a\tb \x00\x1b"),
        ("café".encode(), "café".encode()),
        (b"x\xff", b"b'x\\xff'"),
        (b"it's \xff", b'b"it\'s \\xff"'),
        (b"b'x'", b"b'x'"),
        (b"two\nlines", b"b'two\\nlines'"),
        (b"cr\r", b"b'cr\\r'"),
        (b"x\t[torn]", b"b'x\\t[torn]'"),
    ],
)
def test_a_command_never_breaks_its_row(command: bytes, field: bytes) -> None:
    row = task_row(Task(0, 1, NO_REPEAT, command), report(), "n1")
    assert row.split(b"\t", 14)[14] == field + b"\n"
    assert is_field_of(field, command)


def test_text_that_looks_like_bytes_is_that_text() -> None:
    assert is_field_of(b"b'x'", b"b'x'")
    assert not is_field_of(b"b'x'", b"x")


def test_a_cut_command_is_known_as_such() -> None:
    assert is_torn_field_of(b"echo fo", b"echo foo")
    assert is_torn_field_of(b"b'x\\x", b"x\xff")
    assert not is_torn_field_of(b"echo foo", b"echo foo")
    assert not is_torn_field_of(b"echo fu", b"echo foo")


def test_a_row_is_read_field_by_field() -> None:
    row = parse_row(ROW.replace(b"0\t''\ttrue", b"3\t'a\\n'\ttrue\tb"))
    assert row is not None
    assert (row.kind, row.flags, row.id, row.line, row.repeat) == ("N", b"    ", 7, 9, -1)
    assert (row.node, row.pid, row.code) == ("n1", 42, 0)
    assert (row.elapsed_s, row.started_at, row.finished_at) == (
        1.5,
        1_700_000_000.0,
        1_700_000_001.5,
    )
    assert (row.out_count, row.out_snippet, row.err_count, row.err_snippet) == (
        0,
        "''",
        3,
        "'a\\n'",
    )
    assert row.command_field == b"true\tb"


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (b"ROE ", "N"),
        (b"   S", "S"),
        (b"R  Z", "Z"),
        (b" O P", "P"),
        (b"B    ", "B"),
        (b"C    ", "C"),
    ],
)
def test_flags_tell_the_kind_of_a_row(flags: bytes, kind: str) -> None:
    row = parse_row(flags + ROW[4:])
    assert row is not None
    assert row.kind == kind


@pytest.mark.parametrize(
    "line",
    [
        HEADER, b"", b"\n", b"some text", ROW[:-6], ROW.replace(b"    ", b"   "),
        ROW.replace(b"\t7\t", b"\tx\t"), ROW.replace(b"\t7\t", b"\t" + b"7" * 5_000 + b"\t"),
        ROW.replace(b"1.500", b"1.5s"), ROW.replace(b"\t42\t", b"\t\x0042\t"),
        ROW[:-1] + TORN + b"\n",
    ],
)  # fmt: skip
def test_what_is_no_row_is_none(line: bytes) -> None:
    assert parse_row(line) is None


def test_a_row_may_end_in_crlf() -> None:
    row = parse_row(ROW[:-1] + b"\r\n")
    assert row is not None
    assert row.command_field == b"true"


def test_rows_are_read_across_blocks_and_what_is_no_row_is_passed_over() -> None:
    text = HEADER + ROW + b"no row\n" + ROW.replace(b"\t7\t", b"\t8\t")
    for size in (1, 7, 100, 1_000):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        assert [row.id for row in read_rows(blocks)] == [7, 8]


def test_a_last_row_without_its_newline_is_read() -> None:
    assert [row.id for row in read_rows([ROW[:-1]])] == [7]


@pytest.mark.parametrize("whole", [ROW, HEADER, ROW.replace(b"    ", b"B    ")])
def test_every_beginning_of_a_row_may_become_one(whole: bytes) -> None:
    for length in range(len(whole)):
        assert may_become_row(whole[:length])


@pytest.mark.parametrize("text", [b"echo a", b"    echo", b"    \techo", b"R   \t-5\t", b"\0\0\0"])
def test_other_text_cannot_become_a_row(text: bytes) -> None:
    assert not may_become_row(text)


def test_a_row_closed_after_a_tear_is_no_row_wherever_it_was_torn() -> None:
    for length in range(1, len(ROW)):
        closed = ROW[:length] + closing(ROW[:length])
        assert closed.endswith(b"\n")
        assert list(read_rows([closed + ROW])) != []
        assert [row.command_field for row in read_rows([closed + ROW])] == [b"true"]


def test_a_whole_file_needs_no_closing() -> None:
    assert closing(b"") == b""


def test_the_header_names_the_columns() -> None:
    assert HEADER.decode().rstrip("\n").split("\t") == list(statusfile.COLUMNS)
    assert HEADER.startswith(b"ROE[ PSZ]\tTaskID\t")
