"""Options about how a task is run: each test fails where its option has no effect."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.kit import Stage, disbatch, run
from tests.e2e.options_kit import WAIT_FOR_GO, ends, ids, new_files, tasks_of

BARRIER_MISSPELT = "#DISBATCH BARIER"


# -- with bash or without ----------------------------------------------------------------


def _programs(stage: Stage, pid: int) -> list[str]:
    """What the dynamic loader started under this process number, in order."""
    said = stage.read(f"loaded.{pid}").splitlines()
    return [line.split()[-1] for line in said if "initialize program:" in line]


@pytest.mark.parametrize(("options", "through_bash"), [([], False), (["--always-shell"], True)])
def test_plain_lines_are_started_through_bash_if_that_is_wanted(
    stage: Stage, options: list[str], through_bash: bool
) -> None:
    plain = "cat /dev/null"  # the first few plain lines go to bash in either case
    stage.write("Tasks", *[plain] * 5)
    loader = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(stage.path("loaded"))}
    ends(stage, run("-j", "1", *options, "-p", "P", "Tasks"), env=loader)
    last = _programs(stage, tasks_of(stage, "P")[-1].pid)
    assert (last[0], "cat" in last[-1]) == ("/bin/bash" if through_bash else "cat", True)


# -- what a task leaves behind -----------------------------------------------------------

LEAVES = "sleep 1000 > /dev/null 2>&1 & echo $! > child"


def _child_lives(stage: Stage) -> bool:
    return int(stage.read("child")) in [process.pid for process in stage.left()]


def test_what_a_task_leaves_behind_is_ended(stage: Stage) -> None:
    stage.write("Tasks", LEAVES)
    ends(stage, run("-p", "P", "Tasks"))
    assert not _child_lives(stage)
    (attempt,) = stage.attempts("P")
    assert (attempt["left_running"], stage.codes("P")) == (0, {0: 0})


def test_what_a_task_leaves_behind_may_live_on(stage: Stage) -> None:
    stage.write("Tasks", LEAVES)
    ended = ends(stage, run("--leave-children", "-p", "P", "Tasks"))
    assert _child_lives(stage)
    (attempt,) = stage.attempts("P")
    assert attempt["left_running"] == 1
    assert "1 processes were left running" in ended.err


def test_with_disbatch_it_always_lives_on(stage: Stage) -> None:
    stage.write("Tasks", LEAVES)
    ends(stage, disbatch("Tasks"))
    assert _child_lives(stage)


# -- output that comes late --------------------------------------------------------------


def test_late_output_is_waited_for_as_long_as_one_wants(stage: Stage) -> None:
    stage.write("Tasks", "(sleep 1; echo late) &")
    ends(stage, run("--leave-children", "--late-output", "60", "-p", "P", "Tasks"))
    (row,) = stage.rows("P")
    assert (row.out_count, row.out) == (5, r"'late\n'")


def test_late_output_is_not_waited_for_longer_than_that(stage: Stage) -> None:
    stage.write("Tasks", f"({WAIT_FOR_GO}; echo late) &")
    live = stage.start(disbatch("--late-output", "0.1", "-p", "P", "Tasks"))
    assert live.wait(4.5).status == 0, "disBatch would wait for 5 s"
    (row,) = stage.rows("P")
    assert row.out_count == 0
    stage.write("go")
    stage.is_empty_soon()


def test_a_closed_stream_is_waited_for_no_longer(stage: Stage) -> None:
    stage.write("Tasks", f"({WAIT_FOR_GO}) > /dev/null 2>&1 &")
    ends(stage, disbatch("--late-output", "1h", "-p", "P", "Tasks"))
    assert stage.left(), "the child lives"
    stage.write("go")
    stage.is_empty_soon()


# -- suspicious lines --------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--directives", "refuse"]])
def test_a_suspicious_line_is_refused_before_anything_is_made(
    stage: Stage, options: list[str]
) -> None:
    stage.write("Tasks", "echo > ran", BARRIER_MISSPELT, "true")
    ended = ends(stage, disbatch(*options, "-p", "P", "Tasks"), status=1)
    assert "Tasks, line 2" in ended.err
    assert "BARIER" in ended.err
    assert new_files(stage, "Tasks") == set()


def test_a_suspicious_line_may_be_read_leniently_with_a_warning(stage: Stage) -> None:
    stage.write("Tasks", "true", BARRIER_MISSPELT, "true")
    ended = ends(stage, disbatch("--directives", "lenient", "-p", "P", "Tasks"))
    assert "line 2" in ended.err
    assert "is passed over" in ended.err
    assert ids(stage, "P") == [0, 1]


# -- what is not there yet ---------------------------------------------------------------

NOT_THERE_YET = [
    ["--taskcommand", "make tasks", "Tasks"], ["--taskserver"], ["--taskserver", "h:1"],
    ["--kvsserver", "h:1", "Tasks"], ["-w", "Tasks"], ["--status-server", "Tasks"],
]


@pytest.mark.parametrize("options", NOT_THERE_YET, ids=lambda options: " ".join(options))
@pytest.mark.parametrize("command", [run(), disbatch()[:1]], ids=["overnight run", "disBatch"])
def test_what_is_not_there_yet_is_refused_in_one_message(
    stage: Stage, command: list[str], options: list[str]
) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, [*command, *options], status=2)
    (message,) = [line for line in ended.err.splitlines() if "error:" in line]
    assert options[0] in message
    assert message.endswith("is not there yet")
    assert new_files(stage, "Tasks") == set()


@pytest.mark.parametrize(
    ("options", "name"),
    [(["--mailTo", "a@b", "--mailFreq", "2"], "--mailTo"), (["--reissue-after", "1h"],
                                                           "--reissue-after")],
)
def test_what_can_be_done_without_is_named_and_the_run_goes_on(
    stage: Stage, options: list[str], name: str
) -> None:
    stage.write("Tasks", "true")
    ended = ends(stage, disbatch(*options, "-p", "P", "Tasks"))
    assert ended.err == f"disBatch: {name} is not there yet: the run goes on without it\n"
    assert stage.codes("P") == {0: 0}


def test_no_check_leaves_out_what_no_run_does_yet(stage: Stage) -> None:
    stage.write("Tasks", "true")
    assert ends(stage, disbatch("--no-check", "-p", "P", "Tasks")).err == ""


@pytest.mark.parametrize(
    "options",
    [["--mailFreq", "2", "Tasks"], ["-S", "-s", "localhost:1"], ["-S", "-E", "X"],
     ["-S", "-k", ""]],
    ids=lambda options: " ".join(options),
)
def test_some_combinations_are_answered_with_the_help_text(
    stage: Stage, options: list[str]
) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, [disbatch()[0], *options], status=1)
    assert "--context-task-limit" in ended.out
    assert new_files(stage, "Tasks") == set()


@pytest.mark.parametrize("command", [run(), disbatch()[:1]], ids=["overnight run", "disBatch"])
def test_help_and_version_start_nothing(stage: Stage, command: list[str]) -> None:
    stage.write("Tasks", "echo > ran")
    for option in ("-h", "--help"):
        assert "--status-header" in ends(stage, [*command, option, "Tasks"]).out
    assert "command line of disBatch 3.0" in ends(stage, [*command, "--version", "Tasks"]).out
    assert new_files(stage, "Tasks") == set()


# -- pairs -------------------------------------------------------------------------------


def test_children_that_may_live_on_end_with_an_attempt_that_is_cut_off(stage: Stage) -> None:
    stage.write("Tasks", f"{LEAVES}; sleep 1000")
    live = stage.start(run("--leave-children", "-p", "P", "Tasks"))
    stage.appears("child")
    live.signal(signal.SIGINT)
    live.says("Once more ends them")
    live.signal(signal.SIGINT)
    assert live.wait(20).status == 3
    stage.is_empty_soon()


def test_every_line_through_bash_fails_as_a_line_of_bash_does(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 4, "no-such-program")
    for prefix, options in (("P", []), ("Q", ["--always-shell"])):
        ends(stage, run("-j", "1", *options, "-p", prefix, "Tasks"), status=1)
    (direct,), (shell,) = ([row for row in stage.rows(p) if row.id == 4] for p in "PQ")
    assert (direct.code, direct.err) == (shell.code, shell.err)
    assert (shell.code, "no-such-program" in shell.err) == (127, True)
