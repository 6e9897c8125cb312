"""Runners and engines that die: nothing of them lives on, nothing is lost in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from overnight.guard.leftovers import GoneEngine, end_leftovers, leftovers
from overnight.guard.processes import read_process
from overnight.model.outcome import Exited, Lost
from tests.engine.kit import Started, attempt, started, wait_until

TREE = (
    "echo $$ >> pids; sleep 600 & echo $! >> pids; "
    "( setsid bash -c 'echo $$ >> pids; exec sleep 600' & ); wait; sleep 600"
)


def pids_in(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive_of(pids: list[int]) -> list[int]:
    processes = [read_process(pid) for pid in pids]
    return [each.pid for each in processes if each is not None and not each.is_dead]


def run_trees(engine: Started, folder: Path, count: int) -> list[int]:
    engine.driver.assign(*[attempt(id, TREE) for id in range(count)])
    wait_until(lambda: len(pids_in(folder)) == 3 * count, "all processes run")
    return pids_in(folder)


LACKS = [
    pytest.param({}, id="all"),
    pytest.param({"OVERNIGHT_TEST_NO_SUBREAPER": "1"}, id="no subreaper"),
]


@pytest.mark.parametrize("lacks", LACKS)
def test_when_a_runner_dies_its_tasks_are_ended_lost_and_others_go_on(
    tmp_path: Path, lacks: dict[str, str]
) -> None:
    with started(tmp_path, slots=2, environment={**os.environ, **lacks}) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 2)
        (runner,) = engine.runners()
        os.kill(runner, signal.SIGKILL)
        reports = [engine.driver.report_of(id) for id in range(2)]
        alive = alive_of(pids)
        (after,) = engine.driver.run("exit 4")
        zombies = [p for p in children_of(engine.pid) if read_process(p).is_dead]  # type: ignore[union-attr]
    assert [report.outcome.words() for report in reports] == ["lost: its runner died"] * 2
    assert all(isinstance(report.outcome, Lost) for report in reports)
    assert [report.pid for report in reports] == [-1, -1]
    assert alive == []
    assert isinstance(after.outcome, Exited)
    assert zombies == []


def children_of(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_when_an_engine_dies_its_runners_end_their_tasks_and_leave(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 2)
        runners = engine.runners()
        engine.kill()
        engine.driver.wait(lambda: engine.driver.link.closed, "the engine is gone")
        wait_until(lambda: alive_of([*pids, *runners]) == [], "nothing of it is left")


def test_when_engine_and_runner_die_the_driver_ends_what_they_had_started(
    tmp_path: Path,
) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 2)
        runners = engine.runners()
        for pid in (*runners, engine.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(engine.has_ended, "the engine has ended")
        wait_until(lambda: alive_of(runners) == [], "the runner has ended")
        assert end_leftovers(engine.gone(), kill_after_s=0.5) == []
        assert alive_of(pids) == []


def test_leftovers_are_found_wherever_the_kernel_has_put_them(tmp_path: Path) -> None:
    """Orphans go to the subreaper above them, which need not stand above who asks."""
    adopting = tmp_path / "adopting"
    adopting.write_text(
        f"#!{sys.executable}\n"
        "import ctypes, os, subprocess, sys, time\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "marks = dict(os.environ, DISBATCH_JOBID='r', DISBATCH_ENGINE_RANK='0', PWD=os.getcwd())\n"
        "subprocess.Popen(['sh', '-c', 'sleep 600 & echo $! > pid'], env=marks).wait()\n"
        "open('ready', 'w').close()\n"
        "time.sleep(600)\n"
    )
    adopting.chmod(0o700)
    adopter = subprocess.Popen([str(adopting)], cwd=tmp_path)
    try:
        wait_until(lambda: (tmp_path / "ready").exists(), "the orphan has its new parent")
        orphan = int((tmp_path / "pid").read_text())
        gone = GoneEngine("r", 0, 1 << 22, 0, [str(tmp_path)])
        assert [each.pid for each in leftovers(gone, lambda id, at: False)] == [orphan]
        assert end_leftovers(gone, kill_after_s=0.5) == []
        assert alive_of([orphan]) == []
    finally:
        adopter.kill()
        adopter.wait()


def test_a_stopped_runner_of_a_dead_engine_is_ended_with_its_tasks(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 1)
        (runner,) = engine.runners()
        os.kill(runner, signal.SIGSTOP)
        engine.kill()
        wait_until(engine.has_ended, "the engine has ended")
        assert end_leftovers(engine.gone(), kill_after_s=0.1, runners_within_s=0.5) == []
        assert alive_of([runner, *pids]) == []


def test_what_a_finished_task_was_allowed_to_leave_is_no_leftover(tmp_path: Path) -> None:
    with started(tmp_path, slots=1, leaves_children=True) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("sleep 600 > /dev/null 2>&1 & echo $! > pid")
        assert report.left_running == 1
        left = int((tmp_path / "pid").read_text())
        runners = engine.runners()
        for pid in (*runners, engine.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(engine.has_ended, "the engine has ended")
        try:
            assert end_leftovers(engine.gone(), 0.1, lambda id, at: id == 0) == []
            assert alive_of([left]) == [left]
        finally:
            os.kill(left, signal.SIGKILL)


def test_another_run_of_the_same_name_is_not_touched(tmp_path: Path) -> None:
    environment = {
        **os.environ, "DISBATCH_JOBID": "r", "DISBATCH_ENGINE_RANK": "0", "PWD": "/elsewhere",
    }
    other = subprocess.Popen(["sleep", "600"], env=environment)
    try:
        gone = GoneEngine("r", 0, 1 << 22, 0, [str(tmp_path)])
        assert leftovers(gone, lambda id, at: False) == []
    finally:
        other.kill()
        other.wait()


def test_what_ends_leftovers_waits_for_runners_that_do_it_themselves(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 2)
        engine.kill()
        wait_until(engine.has_ended, "the engine has ended")
        assert end_leftovers(engine.gone()) == []
        assert alive_of(pids) == []


def test_another_engines_tasks_are_not_taken_for_leftovers(tmp_path: Path) -> None:
    """Two runs of one name: the marks of their tasks are the same."""
    with started(tmp_path, slots=2, run="same") as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 1)
        assert leftovers(engine.gone(), lambda id, at: False) == []
        assert len(alive_of(pids)) == 3
        engine.driver.end(None)
        engine.driver.report_of(0)


def test_a_runner_that_dies_idle_is_replaced(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.run("true")
        (runner,) = engine.runners()
        os.kill(runner, signal.SIGKILL)
        wait_until(lambda: len(engine.runners()) == 1 and engine.runners() != [runner], "another")
        (report,) = engine.driver.run("exit 3")
    assert report.outcome.code == 3
