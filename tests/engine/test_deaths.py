"""Runners and engines that die: nothing of them lives on, nothing is lost in silence."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from overnight.guard.processes import read_process
from overnight.guard.sweep import end_marked
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
        setup = engine.driver.setup
        assert end_marked(setup.run, setup.rank, kill_after_s=0.5) >= len(pids)
        assert alive_of(pids) == []


def test_what_ends_leftovers_waits_for_runners_that_do_it_themselves(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 2)
        engine.kill()
        wait_until(engine.has_ended, "the engine has ended")
        setup = engine.driver.setup
        assert end_marked(setup.run, setup.rank, engine_pid=engine.pid) == 0
        assert alive_of(pids) == []


def test_another_engines_tasks_are_not_taken_for_leftovers(tmp_path: Path) -> None:
    """Two runs of one name: the marks of their tasks are the same."""
    with started(tmp_path, slots=2, run="same") as engine:
        engine.driver.open()
        pids = run_trees(engine, tmp_path, 1)
        assert end_marked("same", 0) == 0
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
