"""Ending tasks: the whole tree, whatever it tried, and nothing beside it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from overnight.guard.processes import read_process
from overnight.model.outcome import Cancelled, Exited, Signalled, TimedOut
from overnight.model.report import Report
from overnight.model.task import PerEngine
from tests.engine.kit import Started, attempt, started, wait_until

IGNORES_TERM = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done"
TREE = (
    "echo $$ >> pids; sleep 600 & echo $! >> pids; "
    "( setsid bash -c 'echo $$ >> pids; exec sleep 600' & ); "  # a session of its own, no parent
    "( bash -c 'echo $$ >> pids; exec env -i sleep 600' & ); "  # no parent and no marks
    "touch ready; wait; sleep 600"
)
LACKS = [
    pytest.param({}, id="all"),
    pytest.param({"OVERNIGHT_TEST_NO_PIDFD": "1"}, id="no pidfd"),
    pytest.param({"OVERNIGHT_TEST_NO_SUBREAPER": "1"}, id="no subreaper"),
]


def pids_in(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def is_alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.is_dead


def wait_for_pids(folder: Path, count: int) -> list[int]:
    wait_until(lambda: len(pids_in(folder)) == count, f"{count} processes wrote their number")
    return pids_in(folder)


def end_and_take(engine: Started, id: int, **changes: object) -> Report:
    engine.driver.end([id], **changes)
    return engine.driver.report_of(id)


@pytest.mark.parametrize("lacks", LACKS)
def test_a_cancelled_task_is_ended_with_all_that_it_started(
    tmp_path: Path, lacks: dict[str, str]
) -> None:
    with started(tmp_path, environment={**os.environ, **lacks}) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, TREE))
        pids = wait_for_pids(tmp_path, 4)
        wait_until((tmp_path / "ready").exists, "the task is ready")
        report = end_and_take(engine, 0)
        alive = [pid for pid in pids if is_alive(pid)]
    assert isinstance(report.outcome, Cancelled)
    assert (report.outcome.code, report.outcome.reason) == (-15, "test")
    assert alive == []


def test_without_proc_a_cancelled_task_is_ended_with_its_process_group(tmp_path: Path) -> None:
    environment = {**os.environ, "OVERNIGHT_TEST_NO_PROC": "1"}
    with started(tmp_path, environment=environment) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, "echo $$ >> pids; sleep 600 & echo $! >> pids; wait"))
        pids = wait_for_pids(tmp_path, 2)
        end_and_take(engine, 0)
        wait_until(lambda: not any(map(is_alive, pids)), "the group is gone")


def test_what_ignores_the_first_signal_is_killed(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, IGNORES_TERM))
        (pid,) = wait_for_pids(tmp_path, 1)
        report = end_and_take(engine, 0, kill_after_s=0.2)
    assert isinstance(report.outcome, Cancelled)
    assert report.outcome.code == -9
    assert not is_alive(pid)


def test_a_task_that_forks_while_it_is_ended_leaves_nobody(tmp_path: Path) -> None:
    forks = "trap '' TERM; while :; do ( trap '' TERM; sleep 600 ) & sleep 0.01; done"
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, f"echo $$ >> pids; {forks}"))
        (pid,) = wait_for_pids(tmp_path, 1)
        report = end_and_take(engine, 0, kill_after_s=0.1)
        (runner,) = engine.runners()
        left = read_children(runner)
    assert isinstance(report.outcome, Cancelled)
    assert not is_alive(pid)
    assert left == []


def read_children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_task_that_ends_by_itself_after_the_signal_keeps_its_code(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.assign(
            attempt(0, "trap 'exit 7' TERM; echo $$ >> pids; while :; do sleep 0.02; done")
        )
        wait_for_pids(tmp_path, 1)
        report = end_and_take(engine, 0)
    assert isinstance(report.outcome, Cancelled)
    assert report.outcome.code == 7


def test_a_stopped_task_can_be_ended(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, "echo $$ >> pids; kill -STOP $$; sleep 600"))
        (pid,) = wait_for_pids(tmp_path, 1)
        wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(), "it has stopped")
        report = end_and_take(engine, 0, kill_after_s=0.2)
    assert isinstance(report.outcome, Cancelled)
    assert not is_alive(pid)


def test_only_the_tasks_named_are_ended(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        wait = "echo $$ >> pids; while [ ! -e go ]; do sleep 0.02; done"
        engine.driver.assign(attempt(0, wait), attempt(1, wait))
        wait_for_pids(tmp_path, 2)
        end_and_take(engine, 1)
        (tmp_path / "go").touch()
        assert isinstance(engine.driver.report_of(0).outcome, Exited)


def test_a_neighbour_with_the_marks_of_a_task_is_not_touched(tmp_path: Path) -> None:
    """Another run of the same name in another folder has the same marks on its tasks."""
    with started(tmp_path) as engine:
        engine.driver.open()
        (seen,) = engine.driver.run("env -0 > env")
        environment = dict(
            e.split("=", 1) for e in (tmp_path / "env").read_text().rstrip("\0").split("\0")
        ) | {"DISBATCH_TASKID": "1"}
        neighbour = subprocess.Popen(["sleep", "600"], env=environment)
        try:
            environment["DISBATCH_CYLINDER_RANK"] = str(seen.slot)
            engine.driver.assign(attempt(1, TREE))
            wait_for_pids(tmp_path, 4)
            end_and_take(engine, 1)
            assert neighbour.poll() is None
        finally:
            neighbour.kill()
            neighbour.wait()


def test_a_time_limit_ends_the_task_and_is_its_outcome(tmp_path: Path) -> None:
    with started(tmp_path, timeout_s=0.3) as engine:
        engine.driver.open()
        (report, short) = engine.driver.run("echo $$ >> pids; sleep 600", "exit 0")
    assert isinstance(report.outcome, TimedOut)
    assert (report.outcome.code, report.outcome.limit_s) == (-15, 0.3)
    assert 0.3 <= report.elapsed_s < 5
    assert not is_alive(pids_in(tmp_path)[0])
    assert isinstance(short.outcome, Exited)


def test_children_are_ended_before_the_report_where_none_may_stay(tmp_path: Path) -> None:
    with started(tmp_path, leaves_children=False, late_output_s=0.2) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("sleep 600 & echo $! >> pids; setsid sleep 601 & exit 3")
        (pid,) = pids_in(tmp_path)
        alive = is_alive(pid)
    assert isinstance(report.outcome, Exited)
    assert report.outcome.code == 3
    assert report.left_running == 0
    assert not alive


@pytest.mark.parametrize("lacks", LACKS)
def test_children_that_may_stay_are_counted_and_never_signalled_again(
    tmp_path: Path, lacks: dict[str, str]
) -> None:
    environment = {**os.environ, **lacks}
    with started(tmp_path, leaves_children=True, environment=environment) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("sleep 600 > /dev/null 2>&1 & echo $! >> pids")
        (pid,) = pids_in(tmp_path)
        engine.driver.end(None)
        engine.driver.close()
        wait_until(engine.has_ended, "the engine's process ends")
        alive = is_alive(pid)
        os.kill(pid, signal.SIGKILL)
    assert report.left_running == 1
    assert alive


def test_attempts_after_a_released_child_are_reported_as_before(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.run("sleep 600 > /dev/null 2>&1 & echo $! >> pids")
        reports = engine.driver.run("true", "sleep 601 > /dev/null 2>&1 & echo $! >> pids", "true")
        for pid in pids_in(tmp_path):
            os.kill(pid, signal.SIGKILL)
    assert [report.left_running for report in reports] == [0, 1, 0]


def test_what_a_start_command_leaves_running_stays_and_is_ended_with_the_engine(
    tmp_path: Path,
) -> None:
    server = PerEngine(True, 0, 1, b"sleep 600 > /dev/null 2>&1 & echo $! >> pids")
    with started(tmp_path, leaves_children=False) as engine:
        engine.driver.open([server])
        engine.driver.run("true")
        (pid,) = pids_in(tmp_path)
        was_alive = is_alive(pid)
        engine.driver.close()
        wait_until(engine.has_ended, "the engine's process ends")
    assert was_alive
    assert not is_alive(pid)


def test_abandoned_children_that_end_are_reaped(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        engine.driver.run(*["( ( sleep 0.01 > /dev/null 2>&1 & ) & )"] * 5)
        (runner,) = engine.runners()
        engine.driver.run("sleep 0.1", "true")
        wait_until(lambda: read_children(runner) == [], "no zombie is left")


def test_a_signal_to_the_terminals_group_does_not_reach_engine_or_tasks(tmp_path: Path) -> None:
    """Ctrl-C goes to the foreground group: the engine and its tasks are in none of it."""
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, "echo $$ >> pids; while [ ! -e go ]; do sleep 0.02; done"))
        (pid,) = wait_for_pids(tmp_path, 1)
        group = os.getpgrp()
        numbers = [engine.pid, *engine.runners(), pid]
        assert all(read_process(n).group != group for n in numbers)  # type: ignore[union-attr]
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            for process in (engine.pid, *engine.runners()):
                os.kill(process, number)
        (tmp_path / "go").touch()
        assert isinstance(engine.driver.report_of(0).outcome, Exited)


def test_an_engine_told_to_end_ends_its_tasks_reports_them_and_leaves(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open([PerEngine(False, 0, 1, b"touch stopped")])
        engine.driver.assign(attempt(0, TREE), attempt(1))
        pids = wait_for_pids(tmp_path, 4)
        engine.kill(signal.SIGTERM)
        report = engine.driver.report_of(0)
        engine.driver.wait(lambda: engine.driver.link.closed, "the engine leaves")
        wait_until(engine.has_ended, "the engine's process ends")
    assert isinstance(report.outcome, Cancelled)
    assert engine.driver.recalled == [1]
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not (tmp_path / "stopped").exists()


def test_a_kill_that_was_not_the_kernels_is_not_called_one(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("kill -9 $$")
    assert isinstance(report.outcome, Signalled)
    assert not report.outcome.by_oom_killer


def test_tasks_are_preferred_by_the_kernel_when_memory_runs_out(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("cat /proc/self/oom_score_adj")
        own = int(Path(f"/proc/{engine.pid}/oom_score_adj").read_text())
    assert int(report.out.head) > own



def test_what_a_trap_starts_to_tidy_up_may_finish(tmp_path: Path) -> None:
    """A first signal is for what runs when it comes, not for what answers it."""
    line = "trap 'sleep 0.3; echo > tidied; exit 3' TERM; sleep 600 & wait"
    with started(tmp_path, slots=1, timeout_s=0.2, kill_after_s=20.0) as engine:
        engine.driver.open()
        (report,) = engine.driver.run(line)
    assert (tmp_path / "tidied").exists()
    assert report.outcome.code == 3
