"""Earlier runs: what their files say of the tasks of a list."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overnight.driver.record import _go_on
from overnight.errors import ResumeRefused
from overnight.formats.statusfile import HEADER, TORN, parse_row, task_row
from overnight.formats.taskfile import TaskReader
from overnight.model.outcome import Cancelled, Exited
from overnight.model.report import Report
from overnight.model.task import NO_REPEAT, DoneBefore, PlainTasks, Task
from overnight.sources.earlier import MOST_ROW_BYTES, Earlier

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put text into a new status file, and give its path."""

    def write_file(*lines: bytes, name: str = "old_status.txt") -> str:
        path = tmp_path / name
        path.write_bytes(b"".join(lines))
        return str(path)

    return write_file


def task(task_id: int, command: bytes = b"true", *, line: int = 1, repeat: int = -1) -> Task:
    return Task(task_id, line, repeat, command)


def row(task_id: int, command: bytes = b"true", code: int = 0, *, repeat: int = -1) -> bytes:
    report = Report(task_id, 1, Exited(code), 42, 1_700_000_000.0, 1.5)
    return task_row(Task(task_id, task_id + 1, repeat, command), report, "n1")


def skipped(task_id: int, command: bytes = b"true", code: int = 0) -> bytes:
    return row(task_id, command, code)[:3] + b"S" + row(task_id, command, code)[4:]


def cut_off(task_id: int, code: int) -> bytes:
    report = Report(task_id, 1, Cancelled(code, "interrupt"), 42, 1_700_000_000.0, 1.5)
    return task_row(task(task_id, line=task_id + 1), report, "n1")


def runs(earlier: Earlier, *tasks: Task) -> list[int]:
    """Which of the tasks run again; all are checked first, as before a run."""
    earlier.check(tasks)
    judged = [earlier.judge(each) for each in tasks]
    return [each.id for each in judged if isinstance(each, Task)]


def done(earlier: Earlier, one: Task) -> DoneBefore:
    judged = earlier.judge(one)
    assert isinstance(judged, DoneBefore)
    return judged


# ------------------------------------------------------------------ which rows count


def test_what_has_a_row_is_done_and_what_has_none_runs(write: Write) -> None:
    earlier = Earlier([write(row(0), row(2))])
    assert runs(earlier, task(0), task(1), task(2), task(3)) == [1, 3]
    assert earlier.row_count == 2


def test_a_done_task_has_its_old_row_with_the_flag_s(write: Write) -> None:
    judged = done(Earlier([write(row(0, code=3))]), task(0))
    assert judged.code == 3
    assert judged.rows == b"R  S" + row(0, code=3)[4:]


def test_a_failure_is_done_unless_it_is_to_be_retried(write: Write) -> None:
    path = write(row(0, code=1), row(1))
    assert runs(Earlier([path]), task(0), task(1)) == []
    assert runs(Earlier([path], retry=True), task(0), task(1)) == [0]


def test_a_failed_task_that_was_mended_is_retried(write: Write) -> None:
    earlier = Earlier([write(row(0, b"myprog -x", code=1))], retry=True)
    assert runs(earlier, task(0, b"myprog -y")) == [0]


def test_a_resume_of_a_resume_needs_the_last_file_alone(write: Write) -> None:
    assert runs(Earlier([write(skipped(0), row(1))]), task(0), task(1), task(2)) == [2]


def test_a_task_that_was_cut_off_runs_again_without_being_retried(write: Write) -> None:
    assert runs(Earlier([write(cut_off(0, -15), cut_off(1, 0))]), task(0), task(1)) == [0]


def test_a_success_outranks_a_failure_in_whatever_file(write: Write) -> None:
    first = write(row(0, code=-9), name="first")
    second = write(row(0, code=1), row(0), name="second")
    assert done(Earlier([first, second], retry=True), task(0)).code == 0


def test_doubled_rows_are_one(write: Write) -> None:
    earlier = Earlier([write(row(0), row(0), row(0))])
    assert earlier.row_count == 1
    assert runs(earlier, task(0)) == []


def test_barriers_headers_and_other_text_are_passed_over(write: Write) -> None:
    barrier = b"B    " + row(0, b"#DISBATCH BARRIER")[4:]
    path = write(HEADER, barrier, b"some text\n", b"\0" * 100 + b"\n", row(1), b"\n")
    assert runs(Earlier([path]), task(0), task(1)) == [0]


def test_rows_of_tasks_beyond_the_list_are_passed_over(write: Write) -> None:
    assert runs(Earlier([write(row(0), row(10**12))]), task(0)) == []


def test_a_file_with_windows_line_ends_is_read(write: Write) -> None:
    earlier = Earlier([write(row(0)[:-1] + b"\r\n")])
    assert done(earlier, task(0)).rows == skipped(0)


# ------------------------------------------------------------------ identity


@pytest.mark.parametrize(
    "command", [b"a\tb", b"\xff", b"it's \xff", b"b'x'", "é".encode(), b"", b"x\t", b"a\nb"]
)
def test_a_command_is_known_again_however_it_is_written(write: Write, command: bytes) -> None:
    assert runs(Earlier([write(row(0, command))]), task(0, command)) == []


def test_text_that_looks_like_bytes_is_not_those_bytes(write: Write) -> None:
    with pytest.raises(ResumeRefused):
        Earlier([write(row(0, b"b'x'"))]).judge(task(0, b"x"))


def test_a_command_is_not_known_by_its_end(write: Write) -> None:
    with pytest.raises(ResumeRefused):
        Earlier([write(row(0, b"a\tb"))]).judge(task(0, b"b"))


def test_line_and_repeat_index_may_have_moved(write: Write) -> None:
    earlier = Earlier([write(row(0), row(1, repeat=5))])
    assert runs(earlier, task(0, line=17), task(1, repeat=7)) == []


def test_tasks_of_one_repeat_are_told_apart_by_their_id(write: Write) -> None:
    earlier = Earlier([write(row(1, b"r", repeat=1))])
    assert runs(earlier, *(task(at, b"r", repeat=at) for at in range(3))) == [0, 2]


def test_a_changed_task_is_named_with_both_texts_and_the_way_out(write: Write) -> None:
    path = write(HEADER, row(1), row(0, b"myprog -a 2"))
    with pytest.raises(ResumeRefused) as refused:
        Earlier([path]).check([task(0, b"myprog -a 3")])
    assert refused.value.where == f"{path}, line 3"
    assert refused.value.what == 'task 0 was "myprog -a 2", the list now says "myprog -a 3"'
    assert refused.value.kept == "nothing was run"
    assert "--force-resume" in refused.value.do
    assert "--by-text" in refused.value.do


def test_a_changed_task_is_found_by_judging_alone(write: Write) -> None:
    with pytest.raises(ResumeRefused, match="task 0"):
        Earlier([write(row(0))]).judge(task(0, b"false"))


def test_a_changed_task_of_any_length_makes_a_short_message(write: Write) -> None:
    with pytest.raises(ResumeRefused) as refused:
        Earlier([write(row(0, b"x" * 100_000))]).check([task(0, b"\x1b[2J" + b"y" * 100_000)])
    assert len(refused.value.what) < 400
    assert refused.value.what.isprintable()


def test_force_goes_by_the_id_alone(write: Write) -> None:
    earlier = Earlier([write(row(0, b"old"))], force=True)
    assert runs(earlier, task(0, b"new")) == []
    assert done(earlier, task(0, b"new")).rows == skipped(0, b"old")


# ------------------------------------------------------------------ by text


def test_by_text_a_line_is_known_wherever_it_has_moved(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"), row(1, b"b"), row(2, b"c"))], by_text=True)
    tasks = [task(0, b"new"), task(1, b"a", line=2), task(2, b"c", line=3)]
    assert runs(earlier, *tasks) == [0]
    assert earlier.matches() == (
        "by text: 2 tasks were done before, 1 of them under another number; "
        "1 tasks of earlier runs are not in this list"
    )


def test_by_text_a_moved_row_bears_the_numbers_of_its_task(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"))], by_text=True)
    judged = done(earlier, task(7, b"a", line=9))
    moved = parse_row(judged.rows)
    assert moved is not None
    assert (moved.kind, moved.id, moved.line, moved.command_field) == ("S", 7, 9, b"a")


def test_by_text_equal_lines_are_done_as_often_as_they_were_run(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"), row(1, b"a"))], by_text=True)
    assert runs(earlier, *(task(at, b"a") for at in range(4))) == [2, 3]


def test_by_text_repeats_are_told_apart_by_their_index(write: Write) -> None:
    earlier = Earlier([write(row(1, b"r", repeat=1))], by_text=True)
    tasks = [task(at, b"r", repeat=at) for at in range(3)]
    assert runs(earlier, *tasks) == [0, 2]


def test_by_text_failures_are_retried(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a", code=1), row(1, b"b"))], by_text=True, retry=True)
    assert runs(earlier, task(0, b"b"), task(1, b"a")) == [1]


def test_by_text_a_second_resume_into_the_same_file_knows_all(write: Write) -> None:
    """The file holds the old numbers and the new ones; both texts of number 1 are known."""
    own = write(row(0, b"a"), row(1, b"b"), skipped(1, b"a"), row(0, b"new"), name="own")
    earlier = Earlier([own], by_text=True, own=own)
    assert runs(earlier, task(0, b"new"), task(1, b"a")) == []


def test_by_text_says_nothing_where_it_is_off(write: Write) -> None:
    assert Earlier([write(row(0))]).matches() == ""


# ------------------------------------------------------------------ the run's own file


def test_a_row_that_stands_in_the_runs_own_file_is_not_written_again(write: Write) -> None:
    own = write(row(0), row(1, code=3), name="own")
    earlier = Earlier([own], own=own)
    assert (done(earlier, task(0)).rows, done(earlier, task(0)).code) == (b"", 0)
    assert (done(earlier, task(1)).rows, done(earlier, task(1)).code) == (b"", 3)


def test_the_own_file_comes_first_where_others_say_the_same(write: Write) -> None:
    old, own = write(row(0)), write(skipped(0), name="own")
    assert done(Earlier([old, own], own=own), task(0)).rows == b""


def test_a_success_elsewhere_is_written_into_the_own_file_with_a_failure(write: Write) -> None:
    old, own = write(row(0)), write(row(0, code=1), name="own")
    assert done(Earlier([old, own], own=own), task(0)).rows == skipped(0)


def test_what_is_appended_after_the_start_does_not_count(write: Write) -> None:
    own = write(row(0), name="own")
    earlier = Earlier([own], own=own)
    with open(own, "ab") as file:
        file.write(row(1))
    assert runs(earlier, task(0), task(1)) == [1]


def test_a_last_row_without_newline_counts_and_is_written_again(write: Write) -> None:
    """It will be closed as a torn one, so the row that stands is the one written now."""
    own = write(row(0), row(1)[:-1], name="own")
    assert done(Earlier([own], own=own), task(1)).rows == skipped(1)


# ------------------------------------------------------------------ torn files


def test_a_row_cut_inside_its_command_is_passed_over(write: Write) -> None:
    earlier = Earlier([write(row(0), row(1, b"echo foo")[:-3])])
    assert runs(earlier, task(0), task(1, b"echo foo")) == [1]


def test_a_row_before_a_torn_one_of_the_same_task_counts(write: Write) -> None:
    earlier = Earlier([write(row(0, b"echo foo", code=3), row(0, b"echo foo")[:-3])])
    assert done(earlier, task(0, b"echo foo")).code == 3


def test_a_last_row_without_newline_and_with_another_text_is_a_mismatch(write: Write) -> None:
    with pytest.raises(ResumeRefused, match="task 0"):
        Earlier([write(row(0, b"old")[:-1])]).check([task(0, b"new")])


def test_by_text_a_last_row_without_newline_counts_for_its_own_task(write: Write) -> None:
    path = write(row(0, b"echo foo")[:-1])
    assert runs(Earlier([path], by_text=True), task(0, b"echo foo")) == []
    assert runs(Earlier([path], by_text=True), task(1, b"echo foo")) == [1]


def test_a_status_file_cut_at_every_byte_resumes_what_is_not_whole_in_it(tmp_path: Path) -> None:
    commands = [b"echo a\tb", b"x\xff", "é".encode()]
    tasks = [task(number, command) for number, command in enumerate(commands)]
    whole = HEADER + b"".join(row(number, command) for number, command in enumerate(commands))
    ends = [whole.index(row(number, command)) for number, command in enumerate(commands)]
    ends = [end + len(row(number, commands[number])) - 1 for number, end in enumerate(ends)]
    path = tmp_path / "cut_status.txt"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        earlier = Earlier([str(path)])
        assert runs(earlier, *tasks) == [each.id for each in tasks if ends[each.id] > cut]
        earlier.close()


def test_a_file_cut_at_every_byte_then_closed_and_gone_on_in_knows_every_row(
    tmp_path: Path,
) -> None:
    commands = [b"echo a\tb", b"x\xff", b""]
    tasks = [task(number, command) for number, command in enumerate(commands)]
    whole = b"".join(row(number, command) for number, command in enumerate(commands))
    path = str(tmp_path / "own_status.txt")
    for cut in range(len(whole) + 1):
        Path(path).write_bytes(whole[:cut])
        for _ in range(2):
            earlier = Earlier([path], own=path)
            status = _go_on(path)
            before = status.end
            for each in tasks:
                judged = earlier.judge(each)
                is_left = isinstance(judged, Task)
                status.append(row(each.id, each.command) if is_left else judged.rows)
            earlier.close()
            status.write()
            status.close()
        assert status.end == before == Path(path).stat().st_size  # the second time all is known
        rows = [parse_row(line) for line in Path(path).read_bytes().splitlines(keepends=True)]
        assert sorted(each.id for each in rows if each is not None) == [0, 1, 2]


@pytest.mark.parametrize("length", [0, 1, 40_000, 200_000])
def test_what_closes_a_file_is_found_however_long_its_last_line_is(
    write: Write, length: int
) -> None:
    def closed(*lines: bytes) -> bytes:
        path = write(*lines)
        status = _go_on(path)
        status.write()
        status.close()
        return Path(path).read_bytes().removeprefix(b"".join(lines))

    assert closed(row(0)) == b""
    assert closed(row(0), b"x" * length) == (b"\n" if length else b"")
    assert closed(row(0), row(1, b"x" * length)[:-1]) == TORN + b"\n"
    assert closed(b"x" * length) == (b"\n" if length else b"")


# ------------------------------------------------------------------ what cannot be read


def test_a_missing_file_is_refused_by_name() -> None:
    with pytest.raises(ResumeRefused) as refused:
        Earlier(["nosuch_status.txt"])
    assert str(refused.value).startswith("nosuch_status.txt: cannot be read: No such file")
    assert "-r" in refused.value.do


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResumeRefused, match="is a folder"):
        Earlier([str(tmp_path)])


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ResumeRefused, match="no regular file"):
        Earlier([str(tmp_path / "pipe")])


@pytest.mark.parametrize("text", [b"echo a\necho b\n", b"echo a", b"\n\necho a\n", b"\xff\xfe\n"])
def test_a_file_that_is_no_status_file_is_refused_with_its_first_line(
    write: Write, text: bytes
) -> None:
    path = write(text)
    with pytest.raises(ResumeRefused, match="is no row of a status file") as refused:
        Earlier([path])
    assert refused.value.where.startswith(f"{path}, line ")


@pytest.mark.parametrize("text", [b"", b"\n", HEADER, HEADER[:20], b"    \t1", b"R"])
def test_a_file_without_a_row_yet_has_nothing_done(write: Write, text: bytes) -> None:
    assert runs(Earlier([write(text)]), task(0)) == [0]


def test_a_file_that_became_shorter_is_refused(write: Write) -> None:
    path = write(row(0), row(1))
    earlier = Earlier([path])
    os.truncate(path, 10)
    with pytest.raises(ResumeRefused, match="became shorter"):
        earlier.judge(task(1))


def test_too_many_files_are_refused(write: Write) -> None:
    with pytest.raises(ResumeRefused, match="at most 4096"):
        Earlier([write(row(0))] * 4_097)


# ------------------------------------------------------------------ long files


def test_rows_are_read_back_from_any_place_of_a_long_file(write: Write) -> None:
    order = [*range(0, 3_000, 2), *range(1, 3_000, 2)]
    commands = {number: b"x" * (number * 7919 % 400) for number in order}
    commands[1_501] = b"y" * 100_000
    path = write(*(row(number, commands[number]) for number in order))
    earlier = Earlier([path])
    for number in (*range(3_000), *reversed(range(3_000))):
        assert (
            done(earlier, task(number, commands[number])).rows
            == skipped(number, commands[number])
        )


def test_a_row_longer_than_a_block_is_read(write: Write) -> None:
    command = b"x" * 3_000_000
    assert runs(Earlier([write(row(0), row(1, command), row(2))]), task(1, command)) == []


def plain(id: int, *commands: bytes) -> PlainTasks:
    return PlainTasks(id, id + 1, commands)


def test_a_list_is_checked_in_blocks_too(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"), row(2, b"c"))])
    earlier.check(TaskReader().read_blocks([[b"# head", b"a"], [b"b", b"c"]]))


def test_a_change_is_found_in_a_block(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"), row(1, b"b"), row(2, b"c"))])
    with pytest.raises(ResumeRefused, match="task 1"):
        earlier.check(TaskReader().read_blocks([[b"# head", b"a", b"changed", b"c"]]))


def test_tasks_in_a_row_that_were_done_are_one_item(write: Write) -> None:
    earlier = Earlier([write(row(0, b"a"), row(1, b"b"), row(3, b"d", code=1), row(4, b"e"))])
    assert list(earlier.judge_plain(plain(0, b"a", b"b", b"c", b"d", b"e", b"f"))) == [
        DoneBefore(0, 1, 2, 0, skipped(0, b"a") + skipped(1, b"b")),
        Task(2, 3, NO_REPEAT, b"c"),
        DoneBefore(3, 4, 1, 1, b"R  S" + row(3, b"d", code=1)[4:]),
        DoneBefore(4, 5, 1, 0, skipped(4, b"e")),
        Task(5, 6, NO_REPEAT, b"f"),
    ]


def test_a_change_inside_a_run_of_done_tasks_is_found_without_a_check(write: Write) -> None:
    judged = Earlier([write(row(0, b"a"), row(1, b"b"), row(2, b"c"))]).judge_plain(
        plain(0, b"a", b"changed", b"c")
    )
    assert next(judged) == DoneBefore(0, 1, 1, 0, skipped(0, b"a"))
    with pytest.raises(ResumeRefused, match="task 1"):
        next(judged)


def test_rows_that_stand_in_the_own_file_are_not_written_again_in_a_run(write: Write) -> None:
    own = write(row(0), row(1), name="own_status.txt")
    old = write(row(1), row(2), row(3))
    judged = list(Earlier([own, old], own=own).judge_plain(plain(0, *[b"true"] * 4)))
    assert judged == [
        DoneBefore(0, 1, 2, 0, b""), DoneBefore(2, 3, 2, 0, skipped(2) + skipped(3))
    ]


def test_rows_that_are_written_again_come_a_bounded_size_at_a_time(write: Write) -> None:
    commands = [b"x" * 10_000] * 200
    orders = [range(200), [*range(0, 200, 2), *range(1, 200, 2)], range(199, -1, -1)]
    for order in orders:
        path = write(*(row(id, commands[id]) for id in order))
        judged = list(Earlier([path]).judge_plain(plain(0, *commands)))
        assert b"".join(item.rows for item in judged) == b"".join(
            skipped(id, commands[id]) for id in range(200)
        )
        assert max(len(item.rows) for item in judged) < MOST_ROW_BYTES + 11_000


def test_a_run_of_rows_far_from_each_other_is_read(write: Write) -> None:
    commands = [b"a", b"x" * 100_000, b"y" * 100_000, b"b"]
    path = write(*(row(id, commands[id]) for id in (3, 1, 2, 0)))
    assert list(Earlier([path]).judge_plain(plain(0, *commands))) == [
        DoneBefore(0, 1, 4, 0, b"".join(skipped(id, commands[id]) for id in range(4)))
    ]


ROWS = st.lists(st.tuples(
    st.integers(0, 7), st.sampled_from([b"true", b"tab\there", b"caf\xe9"]),
    st.sampled_from([0, 0, 0, 1, -9]), st.sampled_from([b"    ", b"   S", b"   Z", b"R  P"]),
    st.sampled_from([b"\n", b"\r\n"]),
), max_size=12)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    ROWS, st.lists(st.sampled_from([b"true", b"tab\there", b"caf\xe9"]), min_size=1, max_size=8),
    st.booleans(), st.booleans(), st.booleans(), st.booleans(),
)
def test_runs_are_judged_as_their_tasks_are(
    rows: list, commands: list[bytes], retry: bool, force: bool, is_own: bool, is_cut: bool
) -> None:
    data = b"".join(
        flags + row(id, command, code=code)[4:-1] + end for id, command, code, flags, end in rows
    )
    with tempfile.NamedTemporaryFile() as file:
        file.write(data[:-3] if is_cut else data)
        file.flush()

        def outcome(judge: Callable[[Earlier], Iterable[object]]) -> list:
            earlier = Earlier([file.name], retry=retry, force=force, refuses_foreign=False,
                              own=file.name if is_own else None)
            judged: list = []
            try:
                for item in judge(earlier):
                    if isinstance(item, DoneBefore):
                        judged += [(item.id + at, item.line + at, item.code)
                                   for at in range(item.count)] + [item.rows]
                    else:
                        judged.append(item)
            except ResumeRefused as refused:
                judged.append(refused.what)
            ids = [item for item in judged if not isinstance(item, bytes)]
            return [ids, b"".join(item for item in judged if isinstance(item, bytes))]

        run = plain(0, *commands)
        assert outcome(lambda earlier: earlier.judge_plain(run)) == outcome(
            lambda earlier: map(earlier.judge, map(run.task, range(len(commands))))
        )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([
    row(0), row(1), row(0, code=2), HEADER, b"\n", b"    \t", TORN, row(1)[:-1],
]))))  # fmt: skip
def test_any_bytes_are_read_or_refused(parts: list[bytes]) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(parts))
        file.flush()
        try:
            earlier = Earlier([file.name])
            for number in range(3):
                earlier.judge(task(number))
            earlier.close()
        except ResumeRefused as error:
            assert error.do  # noqa: PT017  # either way is right; a refusal must help
