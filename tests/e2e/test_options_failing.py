"""Options about failing and trying again: each test fails where its option has no effect."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.e2e.kit import Stage, disbatch, run
from tests.e2e.options_kit import ends, events, ids, tasks_of

DEAF = "trap '' TERM; while :; do sleep 0.05; done"
SECOND_TIME_LUCKY = "test $OVERNIGHT_ATTEMPT = 2"


# -- again -------------------------------------------------------------------------------


def test_a_failed_task_is_tried_again_after_growing_pauses(stage: Stage) -> None:
    stage.write("Tasks", "exit $OVERNIGHT_ATTEMPT")
    ends(stage, run("--retries", "2", "-p", "P", "Tasks"), status=1)
    attempts = stage.attempts("P")
    assert [(each["attempt"], each["code"], each["settled"]) for each in attempts] == [
        (1, 1, False), (2, 2, False), (3, 3, True),
    ]
    pauses = [b["start"] - a["start"] - a["elapsed"] for a, b in pairwise(attempts)]
    assert pauses[0] >= 0.99
    assert pauses[1] >= 1.99


def test_only_the_last_attempt_has_a_row(stage: Stage) -> None:
    stage.write("Tasks", "echo attempt $OVERNIGHT_ATTEMPT; test $OVERNIGHT_ATTEMPT = 2")
    ended = ends(stage, run("--retries", "5", "-p", "P", "Tasks"))
    (row,) = stage.rows("P")
    assert (row.flags, row.code, row.out) == (" O  ", 0, r"'attempt 2\n'")
    assert "1 needed more than one attempt" in ended.err


def test_without_retries_a_task_has_one_attempt(stage: Stage) -> None:
    stage.write("Tasks", SECOND_TIME_LUCKY)
    ends(stage, run("-p", "P", "Tasks"), status=1)
    assert len(stage.attempts("P")) == 1


def test_a_success_after_a_failure_is_a_success_for_everything(stage: Stage) -> None:
    stage.write("Tasks", SECOND_TIME_LUCKY, "#DISBATCH BARRIER CHECK", "true")
    again = ["-j", "1", "--retries", "1", "-p", "P", "Tasks"]
    ends(stage, run("-e", "-f", "--max-failures", "1", *again))
    assert ids(stage, "P") == [0, 1, 2]


def test_other_tasks_run_while_one_waits_for_its_next_attempt(stage: Stage) -> None:
    stage.write("Tasks", SECOND_TIME_LUCKY, "true", "true")
    ends(stage, run("-j", "1", "--retries", "1", "-p", "P", "Tasks"))
    assert ids(stage, "P") == [1, 2, 0]


# -- too many failures -------------------------------------------------------------------


def test_so_many_failures_end_the_run(stage: Stage) -> None:
    stage.write("Tasks", "false", "true", "exit 3", "echo > ran")
    ended = ends(stage, run("-j", "1", "--max-failures", "2", "-p", "P", "Tasks"), status=1)
    assert "Quitting early: --max-failures was reached: 2 failed." in ended.err
    assert stage.codes("P") == {0: 1, 1: 0, 2: 3}
    assert f"overnight resume {stage.path('P')}" in ended.err


def test_fewer_failures_do_not_end_the_run(stage: Stage) -> None:
    stage.write("Tasks", "false", "true", "false", "true")
    ends(stage, run("-j", "1", "--max-failures", "3", "-p", "P", "Tasks"), status=1)
    assert ids(stage, "P") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("limit", "ending", "done"), [("2", "max-failures", [0, 1]), ("3", "check failed", [0, 1, 2])]
)
def test_whichever_comes_first_of_a_check_and_too_many_failures_ends_the_run(
    stage: Stage, limit: str, ending: str, done: list[int]
) -> None:
    stage.write("Tasks", "false", "false", "#DISBATCH BARRIER CHECK", "echo > ran")
    stop = ["--max-failures", limit]
    ended = ends(stage, run("-j", "1", "--json", *stop, "-p", "P", "Tasks"), status=1)
    assert events(ended.out)[-1]["ending"] == ending
    assert ids(stage, "P") == done


# -- lost with their engine --------------------------------------------------------------


def test_a_task_that_kills_its_runner_is_lost_so_often_and_no_oftener(stage: Stage) -> None:
    stage.write("Tasks", "echo >> ran; kill -KILL $PPID; sleep 1000", "true")
    ends(stage, run("-j", "1", "--crash-limit", "2", "-p", "P", "Tasks"), status=1)
    lost, other = sorted(tasks_of(stage, "P"), key=lambda row: row.id)
    assert (lost.code, lost.pid, other.code) == (-100, -1, 0)
    assert stage.read("ran") == "\n\n"
    assert [each["outcome"] for each in stage.attempts("P") if each["task"] == 0] == ["lost"] * 2
    stage.is_empty_soon()


# -- time --------------------------------------------------------------------------------


def test_an_attempt_is_ended_when_its_time_is_over(stage: Stage) -> None:
    stage.write("Tasks", "sleep 1000 & sleep 1000", "trap 'exit 0' TERM; sleep 1000 & wait",
                "echo in time")
    ends(stage, run("-j", "3", "--timeout", "0.5s", "-p", "P", "Tasks"), status=1)
    assert stage.codes("P") == {0: -15, 1: 124, 2: 0}
    outcomes = {each["task"]: each["outcome"] for each in stage.attempts("P")}
    assert outcomes == {0: "timed out", 1: "timed out", 2: "exited"}
    stage.is_empty_soon()


def test_what_ignores_the_first_signal_is_killed_in_the_end(stage: Stage) -> None:
    stage.write("Tasks", DEAF)
    limits = ["--timeout", "0.2", "--kill-after", "0.1"]
    ends(stage, run(*limits, "-p", "P", "Tasks"), status=1)
    assert stage.codes("P") == {0: -9}
    stage.is_empty_soon()


def test_a_task_has_the_time_of_kill_after_to_tidy_up(stage: Stage) -> None:
    # The shell itself is busy for longer than the default: a reader of what nobody writes.
    busy = "mkfifo silence; exec 3<> silence; trap 'read -t 2.5 -u 3; echo > tidied; exit 3' TERM"
    stage.write("Tasks", f"{busy}; sleep 1000 & wait")
    limits = ["--timeout", "0.2", "--kill-after", "60"]
    ends(stage, run(*limits, "-p", "P", "Tasks"), status=1)
    assert stage.codes("P") == {0: 3}
    assert stage.path("tidied").exists()


# -- pairs -------------------------------------------------------------------------------


def test_each_attempt_has_the_whole_time_limit(stage: Stage) -> None:
    stage.write("Tasks", "test $OVERNIGHT_ATTEMPT = 2 || sleep 1000")
    ends(stage, run("--timeout", "0.5", "--retries", "1", "-p", "P", "Tasks"))
    assert [each["outcome"] for each in stage.attempts("P")] == ["timed out", "exited"]
    assert stage.codes("P") == {0: 0}


def test_too_many_failures_count_tasks_and_not_attempts(stage: Stage) -> None:
    stage.write("Tasks", "false", "true")
    limits = ["--retries", "1", "--max-failures", "2"]
    ends(stage, run("-j", "1", *limits, "-p", "P", "Tasks"), status=1)
    assert stage.codes("P") == {1: 0, 0: 1}


def test_disbatch_knows_none_of_these(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    for option in (["--retries", "1"], ["--timeout", "1"], ["--max-failures", "1"]):
        ended = ends(stage, disbatch(*option, "Tasks"), status=2)
        assert "unrecognized arguments" in ended.err
    assert not stage.path("ran").exists()


def test_a_time_limit_of_0_is_none(stage: Stage) -> None:
    stage.write("Tasks", "sleep 0.2")
    ends(stage, run("-q", "--timeout", "0", "-p", "P", "Tasks"))
    assert stage.codes("P") == {0: 0}


def test_retry_without_a_status_file_is_said_to_do_nothing(stage: Stage) -> None:
    stage.write("Tasks", "true")
    told = ends(stage, run("-q", "--retry", "-p", "P", "Tasks")).err
    assert "--retry does nothing without -r" in told
    assert "--retries N" in told
    assert ends(stage, run("-q", "--retry", "-r", "P_status.txt", "-p", "P", "Tasks")).err == ""
