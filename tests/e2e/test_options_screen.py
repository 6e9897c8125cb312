"""Options about the screen: each test fails where its option has no effect."""

from __future__ import annotations

import shlex
import signal

import pytest

from tests.e2e.kit import Stage, Window, disbatch, overnight, run, until
from tests.e2e.options_kit import BOUND_S, WAIT_FOR_GO, empties, ends, events, new_files, watching

GOOD_AND_BAD = ("true", "echo why >&2; exit 3")


# -- less and more -----------------------------------------------------------------------


def test_a_run_ends_with_a_summary_and_a_quiet_one_with_nothing(stage: Stage) -> None:
    stage.write("Tasks", *GOOD_AND_BAD)
    told = ends(stage, run("-p", "P", "Tasks"), status=1)
    assert "2 tasks: 1 done, 1 failed" in told.err
    assert f"overnight resume -R {stage.path('P')}" in told.err
    for option in ("-q", "--quiet"):
        ended = ends(stage, run(option, "-p", f"Q{option}", "Tasks"), status=1)
        assert (ended.out, ended.err) == ("", "")


def test_a_quiet_run_still_says_what_is_left(stage: Stage) -> None:
    stage.write("Tasks", "true", "true")
    ended = empties(stage, run("-q", "-j", "1", "-C", "1", "-p", "P", "Tasks"))
    assert "Tasks are left. Go on with:" in ended.err


def test_a_quiet_run_draws_nothing_on_a_terminal(stage: Stage) -> None:
    stage.write("Tasks", f"echo > began; {WAIT_FOR_GO}")
    window = Window(stage, run("-q", "-p", "P", "Tasks"))
    stage.appears("began")
    stage.write("go")
    assert window.live.wait(BOUND_S).status == 0
    assert window.text == ""


def test_json_has_an_object_for_each_event_and_the_summary_last(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH PERENGINE START true", "true", "#DISBATCH BARRIER", "exit 3")
    ended = ends(stage, run("-j", "1", "--json", "-p", "P", "Tasks"), status=1)
    told = [one for one in events(ended.out) if one["event"] != "notice"]
    assert [one["event"] for one in told] == [
        "started", "per-engine", "assigned", "attempt", "barrier", "assigned", "attempt",
        "finished",
    ]
    first, last = told[0], told[-1]
    assert (first["prefix"], first["total"], first["slots"]) == (str(stage.path("P")), 2, 1)
    assert (last["done"], last["failed"], last["ending"]) == (1, 1, "complete")
    assert last["rerun"] == f"overnight resume -R {stage.path('P')}"
    assert last["status_file"] == str(stage.path("P_status.txt"))


def test_json_tells_of_an_attempt_what_the_task_log_says(stage: Stage) -> None:
    stage.write("Tasks", "echo out; exit 3")
    ended = ends(stage, run("--json", "-p", "P", "Tasks"), status=1)
    (told,) = [one for one in events(ended.out) if one["event"] == "attempt"]
    (kept,) = stage.attempts("P")
    assert told == {"event": "attempt", **kept}


# -- and go away -------------------------------------------------------------------------


@pytest.mark.parametrize(("fails", "status"), [("", 0), ("false", 1)])
def test_a_detached_run_goes_on_and_can_be_watched(stage: Stage, fails: str, status: int) -> None:
    stage.write("Tasks", f"{WAIT_FOR_GO}; {fails}", "true")
    begun = ends(stage, run("--detach", "-j", "2", "-p", "P", "Tasks"))
    assert f"overnight attach {stage.path('P')}" in begun.out
    assert begun.err == ""
    watcher = watching(stage, "P")
    assert not watcher.is_over
    stage.write("go")
    ended = watcher.wait(BOUND_S)
    assert ended.status == status
    assert f"The run has ended: {2 - status} done, {status} failed" in ended.out
    stage.is_empty_soon()
    assert stage.codes("P") == {0: status, 1: 0}


def test_a_detached_run_outlives_its_terminal(stage: Stage) -> None:
    stage.write("Tasks", f"{WAIT_FOR_GO}", "true")
    window = Window(stage, run("--detach", "-j", "1", "-p", "P", "Tasks"))
    window.shows("overnight attach")
    assert window.live.wait(BOUND_S).status == 0
    window.close()
    stage.write("go")
    stage.is_empty_soon()
    assert stage.codes("P") == {0: 0, 1: 0}


def test_leaving_a_detached_run_alone_does_not_end_it(stage: Stage) -> None:
    stage.write("Tasks", WAIT_FOR_GO)
    ends(stage, run("--detach", "-p", "P", "Tasks"))
    watcher = watching(stage, "P")
    watcher.signal(signal.SIGINT)
    assert watcher.wait(BOUND_S).status == 130
    stage.write("go")
    stage.is_empty_soon()
    assert stage.codes("P") == {0: 0}


def test_attach_takes_the_last_run_of_the_folder(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, run("-q", "-p", "P", "Tasks"))
    assert "1 done" in ends(stage, overnight("attach")).out


def test_what_is_wrong_is_said_before_a_run_detaches(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH BARIER")
    ended = ends(stage, run("--detach", "-p", "P", "Tasks"), status=1)
    assert "Tasks, line 1" in ended.err
    assert "overnight attach" not in ended.out
    assert new_files(stage, "Tasks") == set()


def test_disbatch_detaches_not(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    assert "--detach" in ends(stage, disbatch("--detach", "Tasks"), status=2).err


# -- pairs -------------------------------------------------------------------------------


def test_json_and_quiet_leave_the_events_alone(stage: Stage) -> None:
    stage.write("Tasks", *GOOD_AND_BAD)
    ended = ends(stage, run("--json", "-q", "-p", "P", "Tasks"), status=1)
    told = [one["event"] for one in events(ended.out)]
    assert (told[0], told[-1], ended.err) == ("started", "finished", "")


def test_json_without_quiet_shows_the_summary_beside_the_events(stage: Stage) -> None:
    stage.write("Tasks", *GOOD_AND_BAD)
    ended = ends(stage, run("--json", "-p", "P", "Tasks"), status=1)
    assert "2 tasks: 1 done, 1 failed" in ended.err
    assert events(ended.out)[-1]["event"] == "finished"


def test_a_detached_run_writes_its_events_to_a_file(stage: Stage) -> None:
    stage.write("Tasks", WAIT_FOR_GO)
    command = shlex.join(run("--detach", "--json", "-p", "P", "Tasks"))
    begun = ends(stage, ["bash", "-c", f"{command} > events"])
    assert "overnight attach" in begun.err
    stage.write("go")
    stage.is_empty_soon()
    told = [one["event"] for one in events(stage.read("events"))]
    assert (told[0], told[-1]) == ("started", "finished")


@pytest.mark.parametrize("option", ["--json", "--print"])
def test_a_detached_run_prints_nothing_on_a_terminal_it_leaves(stage: Stage, option: str) -> None:
    stage.write("Tasks", "echo > ran")
    window = Window(stage, run("--detach", option, "Tasks"))
    window.shows("use a file or a pipe: > FILE")
    assert window.live.wait(BOUND_S).status == 2
    assert new_files(stage, "Tasks") == set()


def test_a_detached_run_reads_its_list_from_a_pipe(stage: Stage) -> None:
    command = shlex.join(run("--detach", "-p", "P", "-"))
    ends(stage, ["bash", "-c", f"printf 'true\\ntrue\\n' | {command}"])
    stage.is_empty_soon()
    assert stage.codes("P") == {0: 0, 1: 0}


def test_print_and_json_exclude_each_other(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, run("--print", "--json", "Tasks"), status=2)
    assert "--print and --json both write to standard output" in ended.err


def test_a_dry_run_detaches_from_nothing(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    assert "task 0, line 1" in ends(stage, run("--dry-run", "--detach", "Tasks")).out
    until(lambda: not stage.left(), "nothing is left running")
    assert new_files(stage, "Tasks") == set()
