"""What a summary keeps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from overnight.core.summary import Summary, rerun_command, rerun_from_list, summary_facts
from overnight.core.summary.causes import CAUSE_LIMIT, VARIOUS, alike, last_words
from overnight.core.summary.words import clip, memory_text, visible
from overnight.model.outcome import (
    Cancelled,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from overnight.model.task import PerEngine
from tests.watch.kit import NIGHT, leak, report, task

if TYPE_CHECKING:
    from overnight.model.outcome import Outcome


def failures(*errors: bytes, outcome: Outcome | None = None) -> Summary:
    """A run of which each task failed with these words."""
    summary = Summary()
    for id, err in enumerate(errors):
        summary.add(task(id), report(id, outcome or Exited(1), err=err), "n1")
    return summary


def told_causes(summary: Summary) -> list[tuple[int, str, str]]:
    return [(cause.count, cause.ending, cause.words) for cause in summary.causes.by_count()]


def test_each_task_is_counted_under_its_own_kind_of_fate() -> None:
    summary = Summary()
    outcomes: list[Outcome] = [
        Exited(0), Exited(0), Exited(3), Lost("silent"), Cancelled(-15, "interrupt"),
    ]
    for id, outcome in enumerate(outcomes):
        summary.add(task(id), report(id, outcome), "n1")
    summary.skip()
    summary.skip(code=2)
    assert (summary.done, summary.failed, summary.cut_off) == (2, 2, 1)
    assert (summary.skipped, summary.skipped_failed, summary.settled) == (2, 1, 7)


def test_a_task_that_ended_with_0_while_it_was_cut_off_is_done() -> None:
    summary = Summary()
    summary.add(task(), report(outcome=Cancelled(0, "interrupt")), "n1")
    assert (summary.done, summary.cut_off) == (1, 0)


def test_the_wall_time_runs_from_the_first_start_to_the_last_end() -> None:
    summary = Summary()
    summary.add(task(1), report(1, after_s=50, elapsed_s=10), "n1")
    summary.add(task(0), report(0, after_s=20, elapsed_s=100), "n1")
    assert (summary.first_started_at, summary.last_finished_at) == (NIGHT + 20, NIGHT + 120)
    assert (summary.wall_s, summary.durations.total_s) == (100, 110)


def test_an_attempt_that_was_followed_by_another_counts_by_its_time_alone() -> None:
    summary = Summary()
    summary.add_time(report(0, Exited(1), after_s=20, elapsed_s=5, cpu_s=2))
    summary.add(task(0), report(0, after_s=27, elapsed_s=3, cpu_s=1, attempt=2), "n1")
    assert (summary.done, summary.failed, summary.retried) == (1, 0, 1)
    assert (summary.wall_s, summary.task_s, summary.cpu_s) == (10, 8, 3)
    assert summary.durations.total_s == 3
    assert summary.causes.by_count() == []


def test_memory_that_every_task_has_is_not_told() -> None:
    summary = Summary()
    for id, rss_kib in enumerate((9_300, 9_400, 9_900, 0)):
        summary.add(task(id), report(id, rss_kib=rss_kib), "n1")
    assert summary.large == []
    summary.add(task(4), report(4, rss_kib=14_000), "n1")
    assert [named.task_id for _, named in summary.large] == [4]


def test_much_memory_is_told_also_where_all_tasks_need_it() -> None:
    summary = Summary()
    for id in (0, 1):
        summary.add(task(id), report(id, rss_kib=900_000), "n1")
    assert [named.task_id for _, named in summary.large] == [0, 1]


def test_the_five_slowest_are_kept_slowest_first() -> None:
    summary = Summary()
    for id, elapsed_s in enumerate((3.0, 9.0, 1.0, 7.0, 5.0, 8.0, 2.0)):
        summary.add(task(id), report(id, elapsed_s=elapsed_s), "n1")
    ranked = [(elapsed_s, named.task_id) for elapsed_s, named in summary.slowest.ranked]
    assert ranked == [(9.0, 1), (8.0, 5), (7.0, 3), (5.0, 4), (3.0, 0)]


def test_tasks_of_unknown_memory_are_not_among_the_largest() -> None:
    summary = Summary()
    summary.add(task(0), report(0), "n1")
    summary.add(task(1), report(1, rss_kib=2048), "n1")
    assert [named.task_id for _, named in summary.largest.ranked] == [1]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Exited(3), "exit code 3"),
        (Signalled(-11), "killed by SIGSEGV"),
        (Signalled(-9, by_oom_killer=True), "killed by the kernel: out of memory"),
        (TimedOut(-15, 60), "over its time limit of 60 s"),
        (Lost("worker032 silent for 121 s"), "lost: worker# silent for # s"),
        (NotStarted(7, "argument list too long"), "could not start: argument list too long"),
        (Cancelled(-2, "interrupt"), "cut off: interrupt"),
    ],
)
def test_every_kind_of_ending_is_a_cause_of_its_own(outcome: Outcome, words: str) -> None:
    assert told_causes(failures(b"", outcome=outcome)) == [(1, words, "")]


def test_failures_that_differ_by_numbers_and_paths_are_one_cause() -> None:
    summary = failures(
        b"cannot read /data/a1.csv: row 17\n",
        b"cannot read /data/b/c22.csv: row 3\n",
        b"cannot read ../x: row 0x1f\n",
    )
    assert told_causes(summary) == [(3, "exit code 1", "cannot read /data/a1.csv: row 17")]


def test_alike_words_under_different_exit_codes_are_two_causes() -> None:
    summary = failures(b"no\n")
    summary.add(task(1), report(1, Exited(2), err=b"no\n"), "n1")
    assert told_causes(summary) == [(1, "exit code 1", "no"), (1, "exit code 2", "no")]


def test_long_output_cut_at_different_places_is_one_cause() -> None:
    trace = b"Traceback (most recent call last):\n" + b"  ...\n" * 40
    summary = failures(
        trace + b"ValueError: this row of the table is wrong: 5\n",
        trace + b"ValueError: this row of the table is wrong: 123456\n",
    )
    assert told_causes(summary) == [(2, "exit code 1", "…rror: this row of the table is wrong: 5")]


def test_a_cause_keeps_the_first_three_tasks_as_examples() -> None:
    (cause,) = failures(*[b"no\n"] * 5).causes.by_count()
    assert [named.place for named in cause.examples] == [
        "task 0, line 1", "task 1, line 2", "task 2, line 3",
    ]


def test_the_most_frequent_cause_comes_first() -> None:
    summary = failures(b"rare\n", b"often\n", b"often\n")
    assert [cause.words for cause in summary.causes.by_count()] == ["often", "rare"]


def test_beyond_the_limit_rare_causes_are_folded_and_frequent_ones_stay() -> None:
    words = [chr(0x100 + n).encode() for n in range(CAUSE_LIMIT * 3)]
    summary = failures(b"often\n", b"often\n", *words)
    causes = summary.causes.by_count()
    assert len(causes) <= CAUSE_LIMIT
    assert sum(cause.count for cause in causes) == len(words) + 2
    assert causes[0].words == VARIOUS
    assert (causes[1].words, causes[1].count) == ("often", 2)


def test_a_cause_tells_the_node_where_all_of_its_failures_were() -> None:
    summary = Summary()
    for id, (node, err) in enumerate([("n1", b"a"), ("n2", b"b"), ("n1", b"a"), ("n3", b"b")]):
        summary.add(task(id), report(id, Exited(1), err=err), node)
    assert [(cause.words, cause.node) for cause in summary.causes.by_count()] == [
        ("a", "n1"), ("b", ""),
    ]


def test_a_failed_per_engine_command_is_a_cause_but_no_task() -> None:
    summary = Summary()
    stop = PerEngine(False, 0, 2, b"rm -r /scratch/x")
    summary.add_per_engine(stop, report(0, Exited(1), err=b"no such file\n"), "n1")
    summary.add_per_engine(stop, report(0), "n2")
    assert (summary.per_engine_failed, summary.settled) == (1, 0)
    assert told_causes(summary) == [(1, "per-engine command, exit code 1", "no such file")]


def test_retries_and_released_processes_are_counted() -> None:
    summary = Summary()
    summary.add(task(0), report(0, attempt=2, left_running=3), "n1")
    summary.add(task(1), report(1), "n1")
    assert (summary.retried, summary.released) == (1, 3)


@pytest.mark.parametrize(
    ("out", "err", "words"),
    [
        (b"", b"", ""),
        (b"said\n", b"", "said"),
        (b"said\n", b"wrong\n", "wrong"),
        (b"said\n", b" \n\n", "said"),
        (b"", b"first\nlast\n\n", "last"),
        (b"", b"10 %\r100 %\rout of disk\r", "out of disk"),
        (b"", b"\xff\xfe bad\n", "\ufffd\ufffd bad"),
        (b"", b"x" * 100 + b"\nthe end\n", "the end"),
        (b"", b"head\n" + b"\n" * 200, "head"),
        (b"", b"a" * 70 + b" the end of a long line", "…" + "a" * 17 + " the end of a long line"),
    ],
)
def test_the_last_words_are_the_last_line_with_something_on_it(
    out: bytes, err: bytes, words: str
) -> None:
    assert last_words(report(out=out, err=err)) == words


def test_a_line_of_exactly_eighty_bytes_is_whole() -> None:
    assert leak(b"y" * 80).count == 80
    assert last_words(report(err=b"y" * 80)) == "y" * 80


@pytest.mark.parametrize(
    ("words", "same_as"),
    [
        ("error 17 at 0xdeadBEEF", "error 3 at 0x1"),
        ("key 3f2a9c01d4 lost", "key 9bb01742ee lost"),
        ("took 1.5 s", "took 22.75 s"),
        ("open '/a b/c'", "open '/d b/e'"),
        ("no module named numpy", "no module named numpy"),
    ],
)
def test_numbers_hexadecimal_and_paths_do_not_tell_words_apart(words: str, same_as: str) -> None:
    assert alike(words) == alike(same_as)


def test_words_are_told_apart_by_what_they_say() -> None:
    assert alike("no module named numpy") != alike("no module named scipy")


def test_characters_that_a_terminal_would_obey_are_written_out() -> None:
    assert visible("\x1b[2J\rgone\x00\x9b\u202e") == "\\x1b[2J\\rgone\\x00\\x9b\\u202e"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abcde", 5, "abcde"), ("abcd", 3, "ab…"), ("日本語", 6, "日本語"), ("日本語", 5, "日本…")],
)
def test_a_text_is_clipped_by_columns_not_characters(text: str, width: int, shown: str) -> None:
    assert clip(text, width) == shown


@pytest.mark.parametrize(
    ("kib", "text"),
    [(0, "0 KiB"), (999, "999 KiB"), (1024, "1 MiB"), (1048576, "1.0 GiB"), (13e6, "12.4 GiB")],
)
def test_sizes_are_said_in_units_of_a_person(kib: float, text: str) -> None:
    assert memory_text(kib) == text


@pytest.mark.parametrize(
    ("status_file", "list_name", "command"),
    [
        ("Tasks_7f_status.txt", "", "overnight resume -R Tasks_7f"),
        ("/runs/my night_status.txt", "", "overnight resume -R '/runs/my night'"),
        ("it's_status.txt", "", "overnight resume -R 'it'\\''s'"),
        ("-x_status.txt", "", "overnight resume -R ./-x"),
        ("a\x1b[2J_status.txt", "", "overnight resume -R $'a\\x1b[2J'"),
        ("old.txt", "Tasks", "overnight run -R -r old.txt Tasks"),
        ("dir/_status.txt", "", "overnight run -R -r dir/_status.txt TASKFILE"),
    ],
)
def test_the_rerun_command_can_be_pasted_into_a_shell(
    status_file: str, list_name: str, command: str
) -> None:
    assert rerun_command(status_file, list_name) == command


@pytest.mark.parametrize(
    ("status_files", "command"),
    [
        (["f_disBatch_231114221320_007_status.txt"],
         "overnight run -R -r f_disBatch_231114221320_007_status.txt f"),
        (["/x/my f_disBatch_231114221320_007_status.txt"],
         "overnight run -R -r '/x/my f_disBatch_231114221320_007_status.txt' 'my f'"),
        (["a_status.txt", "b_status.txt"],
         "overnight run -R -r a_status.txt -r b_status.txt TASKFILE"),
        (["f_disBatch_231114_007_status.txt"],
         "overnight run -R -r f_disBatch_231114_007_status.txt TASKFILE"),
    ],
)
def test_a_run_of_disbatch_is_run_again_from_its_list(
    status_files: list[str], command: str
) -> None:
    assert rerun_from_list(status_files) == command


def test_the_facts_are_plain_values() -> None:
    summary = failures(b"no\n")
    summary.add(task(1, b"big"), report(1, elapsed_s=2.5, rss_kib=900, cpu_s=1.5), "n1")
    facts = summary_facts(summary)
    assert facts["done"] == 1
    assert facts["largest"] == [
        {"task": 1, "max_rss_kib": 900, "place": "task 1, line 2", "command": "big"}
    ]
    assert facts["causes"] == [
        {
            "ending": "exit code 1", "words": "no", "count": 1, "node": "n1",
            "examples": [{"task": 0, "place": "task 0, line 1", "command": "true"}],
        }
    ]
