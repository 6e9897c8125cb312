"""Reading a run back from its status files and what lies beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from overnight.core.summary.causes import last_words
from overnight.errors import OvernightError
from overnight.formats.statusfile import HEADER, parse_row, snippet
from overnight.model.outcome import Cancelled, Exited, Lost, NotStarted, Signalled, TimedOut
from overnight.watch.history import History, outcome_of, read_history, read_leak
from tests.watch.kit import NIGHT, Records, leak

if TYPE_CHECKING:
    from pathlib import Path

    from overnight.model.outcome import Outcome


def read(*records: Records) -> History:
    return read_history([path for part in records for path in part.paths])


def counts(history: History) -> tuple[int, int, int, int]:
    summary = history.summary()
    return summary.done, summary.failed, summary.cut_off, summary.skipped


def test_rows_and_details_make_one_report(tmp_path: Path) -> None:
    records = Records(tmp_path).task(
        7, 10, 2.5, Signalled(-9, by_oom_killer=True), slot=3, attempt=2, err=b"so much\n",
        command=b"./big", rss_kib=900_000,
    )
    history = read(records)
    (ended,) = history.attempts
    told = ended.report
    assert (ended.task.id, ended.task.line, ended.task.command) == (7, 8, b"./big")
    assert (ended.node, ended.rank, told.slot, told.attempt) == ("n1", 0, 3, 2)
    assert (told.started_at, told.elapsed_s, told.cpu_s) == (NIGHT + 10, 2.5, 1.25)
    assert told.max_rss_kib == 900_000
    assert told.outcome.words() == "killed by the kernel: out of memory"
    assert last_words(told) == "so much"
    assert history.notes == []


def test_a_status_file_alone_is_enough_and_it_is_said_what_is_missing(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False).task(0, 0, 1).task(1, 0, 1, Exited(3))
    history = read(records)
    assert counts(history) == (1, 1, 0, 0)
    assert [ended.report.slot for ended in history.attempts] == [-1, -1]
    assert history.notes == [
        f"{records.log} is not there: no slots, memory, CPU time and retries"
    ]


def test_a_file_that_is_not_named_after_a_prefix_needs_no_details(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False).task(0, 0, 1)
    renamed = records.status.rename(tmp_path / "saved.txt")
    history = read_history([str(renamed)])
    assert (counts(history), history.notes) == ((1, 0, 0, 0), [])


def test_a_torn_detail_costs_its_detail_and_is_said(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 1, slot=1).task(1, 0, 1, slot=2)
    records.log.write_bytes(records.log.read_bytes()[:-30])
    history = read(records)
    assert [ended.report.slot for ended in history.attempts] == [1, -1]
    assert history.notes == [
        f"1 lines of {records.log} cannot be read: less detail",
        f"1 tasks of {records.status} have no details: no slot, memory, CPU time",
    ]


def test_a_torn_last_row_is_passed_over_and_said(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False).append(HEADER).task(0, 0, 1).append(b"    \t1\t2\t-")
    history = read(records)
    assert counts(history) == (1, 0, 0, 0)
    assert f"1 lines of {records.status} are not rows (torn, or foreign): passed over" in (
        history.notes
    )


def test_a_file_without_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Tasks"
    path.write_text("sleep 1\nsleep 2\n")
    with pytest.raises(OvernightError) as refusal:
        read_history([str(path)])
    assert (refusal.value.what, refusal.value.where) == (
        "it holds no row of a status file", str(path),
    )


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OvernightError) as refusal:
        read_history([str(tmp_path / "nothing_status.txt")])
    assert refusal.value.what == "it cannot be read: No such file or directory"


def test_an_empty_file_is_a_run_of_nothing(tmp_path: Path) -> None:
    assert counts(read(Records(tmp_path))) == (0, 0, 0, 0)


def test_attempts_that_were_followed_by_another_are_drawn_but_not_counted(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.task(0, 0, 1, Exited(1), attempt=1, settles=False).task(0, 5, 1, attempt=2)
    history = read(records)
    assert sorted(ended.report.attempt for ended in history.attempts) == [1, 2]
    assert counts(history) == (1, 0, 0, 0)
    assert history.summary().retried == 1


def test_a_resume_extends_the_run_and_its_rows_replace_failures(tmp_path: Path) -> None:
    first = Records(tmp_path, "a").task(0, 0, 1).task(1, 0, 1, Exited(1)).task(2, 0, 1, Exited(1))
    second = Records(tmp_path, "b").skipped(0).task(1, 100, 1).task(2, 100, 1, Exited(2))
    second.task(3, 101, 1)
    history = read(first, second)
    assert counts(history) == (3, 1, 0, 0)
    assert history.fates[2].report.outcome.code == 2


def test_a_success_outranks_a_later_failure(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 1).task(0, 5, 1, Exited(1))
    assert counts(read(records)) == (1, 0, 0, 0)


def test_skipped_tasks_count_as_done_before_where_their_own_rows_are_not_at_hand(
    tmp_path: Path,
) -> None:
    history = read(Records(tmp_path).skipped(0).skipped(1, code=2).task(2, 0, 1))
    assert counts(history) == (1, 0, 0, 2)
    assert history.summary().skipped_failed == 1


def test_a_pause_before_a_resume_is_no_time_of_the_run(tmp_path: Path) -> None:
    summary = read(
        Records(tmp_path, "a").task(0, 0, 100), Records(tmp_path, "b").task(1, 90_000, 100)
    ).summary()
    assert (summary.wall_s, summary.pause_s) == (200, 89_900)


def test_the_time_of_a_run_is_that_of_all_attempts(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 4, Exited(1), attempt=1, settles=False)
    records.task(0, 5, 2, Exited(1), attempt=2, settles=False).task(0, 9, 2, attempt=3)
    summary = read(records).summary()
    assert (summary.wall_s, summary.pause_s) == (11, 0)
    assert (summary.task_s, summary.cpu_s, summary.retried) == (8, 4, 1)


def test_short_tasks_that_are_apart_a_little_have_no_pause_between_them(tmp_path: Path) -> None:
    summary = read(Records(tmp_path).task(0, 0, 0.002).task(1, 0.5, 0.002)).summary()
    assert (summary.wall_s, summary.pause_s) == (pytest.approx(0.502, abs=1e-3), 0)


def test_a_pause_before_the_first_task_is_not_taken_from_its_time(tmp_path: Path) -> None:
    records = Records(tmp_path).command(0, 0)  # START takes a second, the engine five more
    summary = read(records.task(0, 6, 0.002)).summary()
    assert (summary.wall_s, summary.pause_s) == (pytest.approx(0.002, abs=1e-3), 0)


def test_a_wait_for_a_retry_is_no_pause_though_it_is_long_beside_the_work(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 0.01, Exited(1), attempt=1, settles=False)
    history = read(records.task(0, 1.02, 0.01, Exited(1), attempt=2))
    assert history.gaps() == ([], [(NIGHT + 0.01, NIGHT + 1.02)])
    assert (history.summary().wall_s, history.summary().pause_s) == (pytest.approx(1.03), 0)


def test_the_time_before_a_resume_is_a_pause_also_after_an_attempt_that_was_to_be_followed(
    tmp_path: Path,
) -> None:
    first = Records(tmp_path, "a").task(0, 0, 1, Exited(1), attempt=1, settles=False)
    for attempt in (1, 2):  # the second: an engine went on after its driver was killed
        second = Records(tmp_path, f"b{attempt}").task(0, 9_000, 1, attempt=attempt)
        assert read(first, second).summary().pause_s == 8_999


def test_barriers_and_per_engine_commands_are_no_tasks(tmp_path: Path) -> None:
    records = Records(tmp_path).command(0, 0).task(0, 1, 1).barrier(1, 3).barrier(2, 4, checks=True)
    history = read(records.command(0, 9, code=1))
    assert counts(history) == (1, 0, 0, 0)
    assert [(met.barrier.line, met.barrier.checks) for met in history.barriers] == [
        (2, False), (3, True),
    ]
    assert [met.finished_at for met in history.barriers] == [NIGHT + 3, NIGHT + 4]
    assert [command.command.at_start for command in history.commands] == [True, False]
    assert history.summary().per_engine_failed == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b"    \t0\t1\t-1\tn\t99\t0", "done"),
        (b"R   \t0\t1\t-1\tn\t99\t3", "exit code 3"),
        (b"R   \t0\t1\t-1\tn\t99\t-11", "killed by SIGSEGV"),
        (b"R  Z\t0\t1\t-1\tn\t99\t-15", "cut off: by the end of the run, or given up before it "
         "ended"),
        (b"   Z\t0\t1\t-1\tn\t99\t0", "done"),
        (b"R   \t0\t1\t-1\tn\t-1\t-100", "lost: its engine was lost"),
        (b"R  Z\t0\t1\t-1\tn\t-1\t-100", "lost: its engine was lost"),
        (b"R   \t0\t1\t-1\tn\t-1\t7", "could not start: Argument list too long"),
        (b"R   \t0\t1\t-1\tn\t-1\t200", "could not start: code 200"),
    ],
)
def test_a_row_alone_tells_how_its_task_ended(row: bytes, words: str) -> None:
    old_row = parse_row(row + b"\t1.000\t100.000\t101.000\t0\t''\t0\t''\ttrue")
    assert old_row is not None
    assert outcome_of(old_row).words() == words


@pytest.mark.parametrize(
    "outcome",
    [
        Exited(0), Exited(3), Signalled(-9, by_oom_killer=True), Signalled(-11),
        TimedOut(-15, 90.5), NotStarted(7, "argument list too long"), Lost('silent "for" 121 s'),
        Cancelled(-2, "interrupt"),
    ],
    ids=lambda outcome: outcome.words(),
)
def test_details_bring_every_kind_of_outcome_back(tmp_path: Path, outcome: Outcome) -> None:
    (ended,) = read(Records(tmp_path).task(0, 0, 1, outcome)).attempts
    told = ended.report.outcome
    assert (type(told), told.code, told.words()) == (type(outcome), outcome.code, outcome.words())


@pytest.mark.parametrize(
    "text",
    [
        b"", b"short\n", b"it's \"both\"\n", b"tab\tand \\ back\x00\x1b", "ünïcode ☃\n".encode(),
        b"x" * 40, b"x" * 41, b"h" * 40 + b"..." + b"t" * 40, b"line\n" * 100,
    ],
)
def test_last_words_survive_the_status_file(text: bytes) -> None:
    told = leak(text)
    again = read_leak(told.count, snippet(told).decode())
    assert (again.count, again.head, again.tail) == (told.count, told.head, told.tail)


def test_a_snippet_of_a_foreign_hand_is_taken_as_it_stands() -> None:
    assert read_leak(9, "'\\x'").head == b"'\\x'"
