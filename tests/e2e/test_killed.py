"""What SIGKILL leaves behind, and what a resume makes of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conformance.harness_processes import descendants
from tests.e2e.kit import Live, Stage, disbatch, overnight, run, until

TASKS = 500
KILLS = 100
LATEST_KILL_S = 0.9
"""A resume takes about half of this until tasks run again."""

ONCE = (
    "exec 9>>alone$DISBATCH_TASKID; flock -n 9 || {{ echo $DISBATCH_TASKID >> twice; exit 1; }};"
    " sleep {sleep}; echo $DISBATCH_TASKID >> side"
)
"""A task that notices a second copy of itself, and says in a side file that it is over."""

STAYS_ONCE = "mkdir first 2>/dev/null && { echo > began; sleep 1000; }; echo >> ran"
"""A task that has to be ended when it runs for the first time."""


@pytest.mark.slow
def test_a_driver_killed_a_hundred_times_loses_no_task_and_runs_none_twice_at_once(
    stage: Stage,
) -> None:
    moments = _moments()
    stage.write("Tasks", f"#DISBATCH REPEAT {TASKS} {ONCE.format(sleep=0.1)}")
    for _ in range(KILLS):
        live = stage.start(_go_on(stage, "P"))
        _kill_after(live, moments.uniform(0.0, LATEST_KILL_S))
        assert "Traceback" not in live.err, live.err
    ended = stage.run(_go_on(stage, "P"), limit_s=120)
    assert ended.status == 0, ended.err
    _all_done_once(stage, "P", TASKS)


def _moments() -> random.Random:
    """Moments to kill at; the same again with the seed that a failed test has printed."""
    seed = int(os.environ.get("OVERNIGHT_TEST_SEED", "20261130"))
    print(f"OVERNIGHT_TEST_SEED={seed}")
    return random.Random(seed)


def _go_on(stage: Stage, prefix: str, is_ours: bool = False) -> list[str]:
    """The command that begins the list, or goes on with it."""
    status = f"{prefix}_status.txt"
    again = ["-r", status] if stage.path(status).exists() else []
    arguments = ["-p", prefix, *again, "Tasks"]
    return run("-j", "2", *arguments) if is_ours else disbatch(*arguments)


def _is_over_in(live: Live, wait_s: float) -> bool:
    try:
        live.process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_after(live: Live, wait_s: float) -> None:
    if _is_over_in(live, wait_s):
        assert live.wait().status == 0, live.err
        return
    live.signal(signal.SIGKILL)
    live.process.wait()


def _all_done_once(stage: Stage, prefix: str, count: int) -> None:
    stage.is_empty_soon()
    assert not stage.read("twice"), "tasks ran beside themselves"
    assert stage.codes(prefix) == dict.fromkeys(range(count), 0)
    ran = Counter(map(int, stage.read("side").split()))
    assert ran == dict.fromkeys(range(count), 1), "tasks ran again that had been done"


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [False, True], ids=["disBatch", "overnight run"])
def test_whatever_is_killed_no_task_runs_beside_itself_and_each_has_its_row(
    stage: Stage, is_ours: bool
) -> None:
    moments = _moments()
    tasks = [ONCE.format(sleep=moments.uniform(0.01, 0.1)) for _ in range(100)]
    stage.write("Tasks", "#DISBATCH PERENGINE START true", *tasks[:50], "#DISBATCH BARRIER",
                *tasks[50:])
    for _ in range(15):
        live = stage.start(_go_on(stage, "P", is_ours))
        if not _is_over_in(live, moments.uniform(0.0, 1.0)):
            _kill_some_of(live, moments)
        assert "Traceback" not in live.err, live.err
    # disBatch records what was lost with its engine as failed; such a task runs again with -R.
    command = [*_go_on(stage, "P", is_ours)[:-1], "-R", "Tasks"]
    assert stage.run(command).status == 0
    stage.is_empty_soon()
    assert not stage.read("twice"), "tasks ran beside themselves"
    done = Counter(row.id for row in stage.rows("P") if row.is_task and row.code == 0)
    assert done == dict.fromkeys([*range(50), *range(51, 101)], 1)


def _kill_some_of(live: Live, moments: random.Random) -> None:
    """Kill the driver, its engine or a runner, or driver and engine; and the driver at last."""
    parts = [p.pid for p in descendants(live.pid) if "_engine.pyz" in p.command]
    for pid in moments.choice([[], parts[:1], parts[1:2]]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _is_over_in(live, moments.choice([0.0, 1.0]))
    live.signal(signal.SIGKILL)
    live.process.wait()


def test_a_killed_driver_leaves_no_files_behind_once_its_run_is_finished(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; sleep 0.3; echo > done0", "echo > done1")
    live = stage.start(disbatch("-p", "P", "Tasks", "-t", "1"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    stage.is_empty_soon()
    assert list(stage.folder.glob("*.spool")), "the engine kept its report"
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    left = {path.name for path in stage.folder.iterdir() if path.suffix != ".log"}
    assert left == {
        "Tasks", "P_status.txt", "P_tasks.jsonl", "P_run.json", "P_dbUtil.sh", "began", "done0",
        "done1",
    }


def test_what_a_task_did_while_no_driver_lived_is_its_row(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done; echo out; exit 3",
                "echo late")
    live = stage.start(disbatch("-p", "P", "-t", "1", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    live.wait()
    stage.write("go")
    stage.is_empty_soon()
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    first, second = stage.rows("P")
    assert (first.id, first.code, first.out, first.flags) == (0, 3, "'out\\n'", "RO  ")
    assert (second.id, second.code) == (1, 0)


def test_a_driver_that_resumes_while_the_task_runs_waits_for_it(stage: Stage) -> None:
    stage.write("Tasks", "echo >> began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    live.wait()
    again = stage.start(disbatch("-p", "P", "-r", "P_status.txt", "Tasks"))
    until(lambda: "1 tasks running" in stage.read("P_driver.log"), "the engine is attached")
    stage.write("go")
    assert again.wait().status == 0
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("began") == "\n"


def test_per_engine_commands_that_ran_alone_have_their_rows(stage: Stage) -> None:
    stage.write(
        "Tasks", "#DISBATCH PERENGINE START echo start >> order",
        "#DISBATCH PERENGINE STOP echo stop >> order; exit 4",
        "echo > began; until [ -e go ]; do sleep 0.02; done; echo task >> order",
    )
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    live.wait()
    stage.write("go")
    stage.is_empty_soon()
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    assert stage.read("order") == "start\ntask\nstop\n"
    stops = [row for row in stage.rows("P") if row.flags[3] == "P" and row.line == 2]
    assert [(row.code, row.command) for row in stops] == [(4, "echo stop >> order; exit 4")]


@pytest.mark.parametrize("command", ["disBatch", "overnight run"])
def test_a_killed_engine_leaves_nothing_running(stage: Stage, command: str) -> None:
    stage.write("Tasks", STAYS_ONCE, "true")
    is_ours = command == "overnight run"
    live = stage.start(
        run("-j", "2", "-p", "P", "Tasks") if is_ours else disbatch("-p", "P", "Tasks")
    )
    stage.appears("began")
    os.kill(live.engine(), signal.SIGKILL)
    ended = live.wait()
    stage.is_empty_soon()
    assert "Traceback" not in ended.err
    row = next(row for row in stage.rows("P") if row.id == 0)
    if is_ours:
        assert (ended.status, row.code) == (0, 0)
        outcomes = [one["outcome"] for one in stage.attempts("P") if one["task"] == 0]
        assert len(outcomes) == 2, "the lost attempt and the one that followed"
    else:
        assert (ended.status, row.flags, row.pid, row.code) == (0, "R   ", -1, -100)


def test_disbatch_ends_when_its_engine_died_with_tasks_left(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; sleep 1000", "true", "true")
    live = stage.start(disbatch("-p", "P", "-t", "1", "Tasks"))
    stage.appears("began")
    os.kill(live.engine(), signal.SIGKILL)
    ended = live.wait()
    assert ended.status == 1
    assert "overnight resume" in ended.err
    stage.is_empty_soon()
    assert stage.codes("P") == {0: -100}
    assert stage.run(overnight("resume", "P")).status == 1, "a task is lost, and that stands"
    assert stage.codes("P") == {0: -100, 1: 0, 2: 0}


def test_a_killed_runner_costs_an_attempt_and_no_task(stage: Stage) -> None:
    stage.write("Tasks", STAYS_ONCE, "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    os.kill(live.runners()[0], signal.SIGKILL)
    assert live.wait().status == 0
    stage.is_empty_soon()
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("ran") == "\n"


def test_engine_and_runners_killed_at_once_cost_an_attempt_and_no_task(stage: Stage) -> None:
    stage.write("Tasks", STAYS_ONCE, "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    for pid in [live.engine(), *live.runners()]:
        os.kill(pid, signal.SIGKILL)
    assert live.wait().status == 0
    stage.is_empty_soon()
    assert stage.codes("P") == {0: 0, 1: 0}


def test_the_door_of_a_killed_engine_is_removed_by_the_resume(stage: Stage) -> None:
    stage.write("Tasks", STAYS_ONCE)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    engine = live.engine()
    door = Path(json.loads(stage.read("P_engines.json"))["attach"])
    live.signal(signal.SIGKILL)
    until(door.exists, "the engine listens")
    os.kill(engine, signal.SIGKILL)
    live.wait()
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    assert not door.exists()


def test_driver_and_engine_killed_at_once_leave_no_task_beside_its_rerun(stage: Stage) -> None:
    stage.write("Tasks", STAYS_ONCE)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    for pid in [*live.runners(), live.engine(), live.pid]:
        os.kill(pid, signal.SIGKILL)
    live.process.wait()
    # Its runner is gone: it runs on. It may have said that it began before it sleeps.
    until(lambda: "sleep 1000" in {p.command for p in stage.left()}, "the task runs on")
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    assert "sleep 1000" not in {p.command for p in stage.left()}
    assert stage.codes("P") == {0: 0}
    assert stage.read("ran") == "\n"


@pytest.mark.parametrize("moment", ["starting", "joining"])
def test_a_driver_killed_in_its_first_moments_leaves_a_run_that_can_be_begun(
    stage: Stage, moment: str
) -> None:
    stage.write("Tasks", *["until [ -e go ]; do sleep 0.02; done"] * 2)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    if moment == "starting":
        stage.appears("P_lock")
    else:
        live.engine()
    live.signal(signal.SIGKILL)
    live.process.wait()
    stage.write("go")
    assert stage.run(_go_on(stage, "P")).status == 0
    assert stage.codes("P") == {0: 0, 1: 0}
    stage.is_empty_soon()


def test_a_resume_under_another_prefix_collects_what_ran_alone(stage: Stage) -> None:
    stage.write("Tasks", "echo >> began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(disbatch("-p", "P", "-t", "1", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    live.wait()
    other = stage.start(disbatch("-p", "Q", "-r", "P_status.txt", "Tasks"))
    until(lambda: "1 tasks running" in stage.read("Q_driver.log"), "the engine is attached")
    other.signal(signal.SIGKILL)
    other.wait()
    third = stage.start(disbatch("-p", "Q", "-r", "Q_status.txt", "-r", "P_status.txt", "Tasks"))
    until(lambda: stage.read("Q_driver.log").count("1 tasks running") == 2, "attached again")
    stage.write("go")
    assert third.wait().status == 0
    assert stage.codes("Q") == {0: 0, 1: 0}
    assert stage.read("began") == "\n"
