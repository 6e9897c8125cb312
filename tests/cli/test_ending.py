"""What is said at the end: how it was, why it ended, and the one command that goes on."""

from __future__ import annotations

import pytest

from overnight.cli.ending import all_done_text, closing_text, facts, tasks_without_row
from overnight.cli.go_on import GoOn
from overnight.core import verdict as v
from overnight.core.summary import Summary
from overnight.core.verdict import Verdict
from overnight.errors import ListRefused
from overnight.model.run import RunFiles
from tests.observers.entries import NODE, command_ended, ended

GO_ON = GoOn(RunFiles("/data/my run"), is_fed=False)
REST = "overnight resume '/data/my run'"
RETRY = "overnight resume -R '/data/my run'"


def summary(*codes: int) -> Summary:
    made = Summary()
    for id, code in enumerate(codes):
        entry = ended(id, code)
        made.add(entry.task, entry.report, NODE)
    return made


def text(verdict: Verdict, summary: Summary | None = None) -> str:
    return closing_text(summary, verdict, GO_ON, colour=False)


def test_a_run_that_did_all_says_only_how_it_was():
    said = text(Verdict(v.COMPLETE, False, False), summary(0, 0))
    assert said.startswith("2 tasks: 2 done")
    assert "resume" not in said


def test_a_run_with_failures_names_the_command_that_runs_them_again():
    said = text(Verdict(v.COMPLETE, True, False), summary(0, 3))
    assert said.endswith(f"Run the failed ones again\n  {RETRY}")
    assert "Tasks are left" not in said


def test_a_per_engine_command_that_failed_is_no_task_to_run_again():
    only_the_command = summary(0)
    entry = command_ended(1)
    only_the_command.add_per_engine(entry.command, entry.report, NODE)
    assert "resume" not in text(Verdict(v.COMPLETE, True, False), only_the_command)


@pytest.mark.parametrize("made", [None, summary(0)], ids=["quiet", "with a summary"])
def test_a_run_with_tasks_left_names_the_command_that_goes_on(made):
    said = text(Verdict(v.STOPPED, False, True, "interrupted by SIGINT", 2), made)
    assert "The run was stopped: interrupted by SIGINT.\n" in said
    assert said.endswith(f"Tasks are left. Go on with:\n  {REST}")


def test_a_run_with_tasks_left_and_failures_names_both_commands():
    said = text(Verdict(v.STOPPED, True, True), summary(0, 3))
    assert f"\n  {REST}\n" in said
    assert f"\n  {RETRY}\n\n2 tasks: " in said


def test_a_check_is_passed_only_when_the_failed_ones_are_run_again():
    said = text(Verdict(v.CHECK_FAILED, True, True, "line 3"), summary(3))
    assert said.endswith(f"\n  {RETRY}")
    assert f"{REST}\n" not in said


def test_a_run_without_a_record_says_that_its_reports_are_kept():
    said = text(Verdict(v.NO_RECORD, False, True, "interrupted by SIGINT", 2))
    assert "are kept" in said
    assert said.endswith(f"\n  {REST}")


@pytest.mark.parametrize("ending", [
    v.CHECK_FAILED, v.FAIL_FAST, v.MAX_FAILURES, v.STOPPED, v.REFUSED, v.NO_RESOURCES,
    v.NO_RECORD,
])  # fmt: skip
def test_every_ending_but_a_whole_run_has_its_words(ending):
    first = text(Verdict(ending, False, False)).splitlines()[0]
    assert first.endswith(".")
    assert len(first) > len("stopped.")


def test_what_was_found_in_a_list_is_not_said_twice():
    error = ListRefused("Tasks, line 3: ...\nTasks, line 9: ...")
    assert "line 3" not in text(Verdict(v.REFUSED, False, True, error.what, error=error))


@pytest.mark.parametrize(
    ("total", "left", "without_row"),
    [(None, True, None), (None, False, 0), (5, True, 3), (5, False, 0), (1, True, 0)],
)
def test_what_has_no_row_is_counted_where_the_list_is_known(total, left, without_row):
    verdict = Verdict(v.STOPPED, True, left)
    assert tasks_without_row(total, summary(0, 3), verdict) == without_row


def test_the_rarer_causes_come_with_the_command_that_tells_them():
    said = text(Verdict(v.COMPLETE, True, False), summary(*range(1, 31)))
    assert "\n    overnight report '/data/my run_status.txt'\n" in said
    assert said.endswith("\n\n30 tasks: 0 done, 30 failed")


def test_a_resume_that_found_nothing_to_do_says_so():
    assert all_done_text(1200, 0, GO_ON) == (
        "Nothing is left to run: all 1,200 tasks had been done before."
    )


def test_a_resume_that_found_old_failures_says_how_to_run_them():
    said = all_done_text(3, 2, GO_ON)
    assert "of 3 tasks, 1 done before, 2 failed before" in said
    assert said.endswith(f"\n  {RETRY}")


@pytest.mark.parametrize(
    ("verdict", "resume", "rerun"),
    [
        (Verdict(v.COMPLETE, False, False), None, None),
        (Verdict(v.COMPLETE, True, False), None, RETRY),
        (Verdict(v.STOPPED, True, True, "asked"), REST, RETRY),
    ],
)
def test_a_program_is_told_the_same(verdict, resume, rerun):
    told = facts(summary(0, 1), verdict, GO_ON)
    assert (told["ending"], told["reason"]) == (verdict.ending, verdict.reason)
    assert told["tasks_left"] == verdict.has_tasks_left
    assert told["status_file"] == "/data/my run_status.txt"
    assert (told["resume"], told["rerun"]) == (resume, rerun)


def test_a_run_whose_list_was_fed_to_it_has_to_be_fed_again():
    fed = GoOn(RunFiles("/data/my run"), is_fed=True)
    said = closing_text(None, Verdict(v.STOPPED, False, True), fed, colour=False)
    assert "overnight resume" not in said
    assert "-r '/data/my run_status.txt'" in said


def test_a_list_from_standard_input_is_fed_again():
    go_on = GoOn(RunFiles("/data/my run"), is_fed=True)
    feeds = "-r '/data/my run_status.txt' -p '/data/my run' -"
    assert go_on.rest == f"... | overnight run {feeds}"
    assert go_on.retry == f"... | overnight run -R {feeds}"


def test_a_program_is_not_told_a_resume_that_a_check_would_end_again():
    told = facts(summary(3), Verdict(v.CHECK_FAILED, True, True, "line 2"), GO_ON)
    assert (told["tasks_left"], told["resume"], told["rerun"]) == (True, None, RETRY)
