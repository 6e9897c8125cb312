"""What ``overnight attach`` says of a run that nobody drives any more, and its exit status."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.kit import Ended, Stage, overnight, run, until
from tests.e2e.options_kit import ends, watching

LINGERS = "echo > began; until [ -e go ]; do sleep 0.02; done"


def attached(stage: Stage) -> Ended:
    return stage.run(overnight("attach", "P"))


def test_a_driver_that_was_killed_is_told_with_what_is_left(stage: Stage) -> None:
    stage.write("Tasks", "true", "false", LINGERS, "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    stage.has_rows("P", 2)
    live.signal(signal.SIGKILL)
    live.wait()
    ended = attached(stage)
    assert ended.status == 3
    assert ended.out.startswith("The driver was killed: 1 done, 1 failed, 2 left.\n")
    assert f"Go on with:\n  overnight resume {stage.path('P')}\n" in ended.out


def test_a_watcher_notices_that_the_driver_is_killed(stage: Stage) -> None:
    stage.write("Tasks", LINGERS)
    live = stage.start(run("-p", "P", "Tasks"))
    stage.appears("began")
    watcher = watching(stage, "P")
    live.signal(signal.SIGKILL)
    live.wait()
    ended = watcher.wait()
    assert ended.status == 3
    assert ended.out.startswith("The driver was killed: 0 done, 0 failed, 1 left.\n")


def test_who_looks_away_is_told_that_the_run_goes_on(stage: Stage) -> None:
    stage.write("Tasks", LINGERS)
    live = stage.start(run("-p", "P", "Tasks"))
    stage.appears("began")
    watcher = watching(stage, "P")
    watcher.says("0 of 1 tasks")
    watcher.signal(signal.SIGINT)
    left = watcher.wait()
    assert left.status == 130
    command = f"overnight attach {stage.path('P')}"
    assert left.out == f"\nThe run goes on. Look again:\n  {command}\n"
    stage.write("go")
    assert live.wait().status == 0


def test_a_run_that_was_stopped_is_told_with_the_tasks_it_cut_off(stage: Stage) -> None:
    stage.write("Tasks", "true", LINGERS, "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    for said in ("Once more ends them", "Once more kills them"):
        live.signal(signal.SIGINT)
        live.says(said)
    live.wait()
    ended = attached(stage)
    assert ended.status == 3
    assert ended.out.startswith("The run was stopped (")
    assert "): 1 done, 0 failed, 2 left (1 of them cut off).\n" in ended.out
    assert "resume -R" not in ended.out, "a task that was cut off has not failed"


def test_a_barrier_is_no_task_that_is_left(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER", LINGERS, "#DISBATCH BARRIER", "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    stage.has_rows("P", 2)
    watcher = watching(stage, "P")
    watcher.says("1 of 3 tasks")
    live.says("1 of 3 tasks")
    live.signal(signal.SIGKILL)
    live.wait()
    assert watcher.wait().out.startswith("The driver was killed: 1 done, 0 failed, 2 left.\n")
    assert stage.run(overnight("report", "P_status.txt")).out.startswith("3 tasks: 1 done, 2 ")


def test_a_check_that_ended_the_run_is_told_with_the_one_command_that_helps(stage: Stage) -> None:
    stage.write("Tasks", "false", "#DISBATCH BARRIER CHECK", "true")
    ends(stage, run("-q", "-p", "P", "Tasks"), status=1)
    ended = attached(stage)
    assert ended.status == 3
    assert ended.out.startswith("A BARRIER CHECK found failed tasks")
    assert "0 done, 1 failed, 1 left.\n" in ended.out
    assert ended.out.endswith(f"\n  overnight resume -R {stage.path('P')}\n")
    assert f"overnight resume {stage.path('P')}" not in ended.out


@pytest.mark.parametrize(
    ("then", "status", "said"),
    [("true", 0, "1 done, 0 failed.\n"), ("false", 1, "0 done, 1 failed.\n")],
)
def test_a_failure_counts_until_it_is_made_good(
    stage: Stage, then: str, status: int, said: str
) -> None:
    stage.write("Tasks", "test -e good")
    ends(stage, run("-q", "-p", "P", "Tasks"), status=1)
    ends(stage, ["bash", "-c", f"{then} && touch good; true"])
    stage.run(overnight("resume", "-q", "-R", "P"))
    ended = attached(stage)
    assert (ended.status, ended.out.startswith(f"The run has ended: {said}")) == (status, True)


def test_old_failures_are_told_as_such(stage: Stage) -> None:
    stage.write("Tasks", "true", "false")
    ends(stage, run("-q", "-p", "Old", "Tasks"), status=1)
    stage.write("Tasks", "true", "false", "true")
    ends(stage, run("-q", "-p", "P", "-r", "Old_status.txt", "Tasks"), status=1)
    ended = attached(stage)
    assert ended.status == 1
    assert "1 done, 0 failed, 1 done before, 1 failed before.\n" in ended.out


def test_of_a_killed_stream_nobody_knows_how_much_is_left(stage: Stage) -> None:
    with stage.write("Tasks", LINGERS).open() as lines:
        live = stage.start(run("-p", "P", "-"), stdin=lines)
        stage.appears("began")
        live.signal(signal.SIGKILL)
        live.wait()
    ended = attached(stage)
    assert ended.status == 3
    assert "an unknown number left" in ended.out
    assert "  ... | overnight run -r " in ended.out


def test_slots_that_files_do_not_tell_of_are_not_shown(stage: Stage) -> None:
    stage.write("Tasks", LINGERS)
    ends(stage, run("--detach", "-p", "P", "Tasks"))
    until(stage.path("began").exists, "the task runs")
    watcher = watching(stage, "P")
    watcher.says("0 of 1 tasks")
    stage.write("go")
    assert "running" not in watcher.wait().err
