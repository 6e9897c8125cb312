"""What is said at the end: how it was, why it ended, and the one command that goes on."""

from __future__ import annotations

import pytest

from overnight.cli.ending import all_done_text, closing_text, facts, resume_command
from overnight.core import verdict as v
from overnight.core.summary import Summary
from overnight.core.verdict import Verdict
from overnight.errors import ListRefused
from overnight.model.run import RunFiles
from tests.observers.entries import NODE, ended

FILES = RunFiles("/data/my run")


def summary(*codes: int) -> Summary:
    made = Summary()
    for id, code in enumerate(codes):
        entry = ended(id, code)
        made.add(entry.task, entry.report, NODE)
    return made


def test_a_run_that_did_all_says_only_how_it_was():
    text = closing_text(summary(0, 0), Verdict(v.COMPLETE, False, False), FILES, colour=False)
    assert text.startswith("2 tasks: 2 done")
    assert "resume" not in text


def test_a_run_with_failures_names_the_command_that_runs_them_again():
    text = closing_text(summary(0, 3), Verdict(v.COMPLETE, True, False), FILES, colour=False)
    assert "overnight resume -R '/data/my run'" in text
    assert "Tasks are left" not in text


@pytest.mark.parametrize("has_summary", [True, False])
def test_a_run_with_tasks_left_names_the_command_that_goes_on(has_summary):
    verdict = Verdict(v.STOPPED, False, True, "interrupted by SIGINT", 2)
    text = closing_text(summary(0) if has_summary else None, verdict, FILES, colour=False)
    assert "The run was stopped: interrupted by SIGINT.\n" in text
    assert text.endswith("Tasks are left. Go on with:\n  overnight resume '/data/my run'")


@pytest.mark.parametrize("ending", [
    v.CHECK_FAILED, v.FAIL_FAST, v.MAX_FAILURES, v.STOPPED, v.REFUSED, v.NO_RESOURCES,
    v.NO_RECORD,
])  # fmt: skip
def test_every_ending_but_a_whole_run_has_its_words(ending):
    (line,) = closing_text(None, Verdict(ending, False, False), FILES, colour=False).splitlines()
    assert line.endswith(".")
    assert len(line) > 10


def test_what_was_found_in_a_list_is_not_said_twice():
    error = ListRefused("Tasks, line 3: ...\nTasks, line 9: ...")
    verdict = Verdict(v.REFUSED, False, True, error.what, error=error)
    assert "line 3" not in closing_text(None, verdict, FILES, colour=False)


def test_a_resume_that_found_nothing_to_do_says_so():
    text = all_done_text(1200, Verdict(v.COMPLETE, False, False), FILES)
    assert text == "Nothing is left to run: all 1,200 tasks had been done before."


def test_a_resume_that_found_old_failures_says_how_to_run_them():
    text = all_done_text(1, Verdict(v.COMPLETE, True, False), FILES)
    assert "all 1 task had been run before" in text
    assert text.endswith("overnight resume -R '/data/my run'")


@pytest.mark.parametrize(
    ("verdict", "has_resume", "has_rerun"),
    [
        (Verdict(v.COMPLETE, False, False), False, False),
        (Verdict(v.COMPLETE, True, False), False, True),
        (Verdict(v.STOPPED, True, True, "asked"), True, True),
    ],
)
def test_a_program_is_told_the_same(verdict, has_resume, has_rerun):
    told = facts(summary(0, 1), verdict, FILES)
    assert (told["ending"], told["reason"]) == (verdict.ending, verdict.reason)
    assert told["tasks_left"] == verdict.has_tasks_left
    assert told["status_file"] == "/data/my run_status.txt"
    assert told["resume"] == (resume_command(FILES) if has_resume else None)
    assert told["rerun"] == ("overnight resume -R '/data/my run'" if has_rerun else None)
