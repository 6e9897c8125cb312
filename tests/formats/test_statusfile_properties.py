"""Rows of every report are read back as they were written; any bytes can be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.statusfile import (
    command_field,
    is_field_of,
    is_torn_field_of,
    parse_row,
    read_rows,
    skipped_row,
    task_row,
)
from overnight.model.outcome import Cancelled, Exited, Signalled
from overnight.model.report import Leak, Report
from overnight.model.task import Task

COMMAND_PARTS = [
    b"x", b"\t", b"\n", b"\r", b"\xff", b"'", b'"', b"b'", b"\\", b"\0", b"[torn]", b"\xc3\xa9",
]  # fmt: skip
commands = st.one_of(
    st.lists(st.sampled_from(COMMAND_PARTS), max_size=8).map(b"".join), st.binary(max_size=30)
)
leaks = st.binary(max_size=120).map(
    lambda written: Leak(len(written), written[:40], written[40:][-40:])
)
outcomes = st.one_of(
    st.builds(Exited, st.integers(0, 255)),
    st.builds(Signalled, st.integers(-64, -1)),
    st.builds(Cancelled, st.integers(-64, 255), st.just("interrupt")),
)
tasks = st.builds(
    Task, st.integers(0, 10**9), st.integers(1, 10**9), st.integers(-1, 10**6), commands
)
reports = st.builds(
    Report, st.just(0), st.just(1), outcomes, st.integers(-1, 2**22),
    st.floats(0, 4e9), st.floats(0, 1e7), leaks, leaks,
)  # fmt: skip


@given(tasks, reports)
def test_a_row_is_read_back_as_it_was_written(task: Task, report: Report) -> None:
    line = task_row(task, report, "n1")
    assert line.count(b"\n") == 1
    row = parse_row(line)
    assert row is not None
    assert (row.id, row.line, row.repeat, row.pid, row.code) == (
        task.id, task.line, task.repeat, report.pid, report.outcome.code,
    )  # fmt: skip
    assert (row.out_count, row.err_count) == (report.out.count, report.err.count)
    assert abs(row.elapsed_s - report.elapsed_s) <= 0.00051
    assert row.kind == ("Z" if report.outcome.kind == "cancelled" else "N")
    assert is_field_of(row.command_field, task.command)


@given(tasks, reports)
def test_a_skipped_row_says_what_the_old_one_said(task: Task, report: Report) -> None:
    line = task_row(task, report, "n1")
    again = parse_row(skipped_row(line))
    old = parse_row(line)
    assert again is not None
    assert old is not None
    assert again.kind == "S"
    assert again.fields[1:] == old.fields[1:]


@given(commands, commands)
def test_different_commands_have_different_fields(one: bytes, other: bytes) -> None:
    if one != other and command_field(one) == command_field(other):
        # Only text that is itself the repr of the other: the two cannot be told apart.
        assert repr(one).encode() == other or repr(other).encode() == one


@given(commands)
def test_every_cut_of_a_command_is_known_as_one(command: bytes) -> None:
    field = command_field(command)
    assert all(is_torn_field_of(field[:length], command) for length in range(len(field)))
    assert not is_torn_field_of(field, command)


@given(st.lists(st.tuples(tasks, reports), max_size=4), st.integers(0, 10_000))
def test_a_file_cut_anywhere_gives_the_rows_before_the_cut(
    runs: list[tuple[Task, Report]], cut: int
) -> None:
    lines = [task_row(task, report, "n1") for task, report in runs]
    text = b"".join(lines)[:cut]
    whole = text.count(b"\n")
    rows = list(read_rows([text]))
    assert [row.fields for row in rows[:whole]] == [row.fields for row in read_rows(lines[:whole])]
    assert len(rows) <= whole + 1


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_can_be_read(text: bytes, size: int) -> None:
    blocks = [text[at : at + size] for at in range(0, len(text), size)]
    assert [row.fields for row in read_rows(blocks)] == [row.fields for row in read_rows([text])]
