"""Ranks: processes of one step, one a slot, of which the first is also the engine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from overnight.guard.processes import read_process
from overnight.model.outcome import Cancelled, Lost, Signalled
from tests.engine.kit import Started, attempt, engine_file, started, wait_until

BASE = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "CUDA"))}


class Step:
    """A step of plain processes, as srun would start them."""

    def __init__(self, engine: Started, ranks: list[subprocess.Popen[bytes]], launch: str) -> None:
        self.engine = engine
        self.driver = engine.driver
        self.ranks = ranks
        self.launch = launch

    def pids(self) -> list[int]:
        return [self.engine.pid, *(rank.pid for rank in self.ranks)]


@contextmanager
def step(
    folder: Path, count: int, own: Mapping[int, Mapping[str, str]] | None = None, **changes: object
) -> Iterator[Step]:
    """A step of that many ranks; ``own`` has further variables of each."""
    launch = os.urandom(8).hex()

    def environment(rank: int) -> dict[str, str]:
        return BASE | {"SLURM_LOCALID": str(rank)} | dict((own or {}).get(rank, {}))

    ranks: list[subprocess.Popen[bytes]] = []
    values: dict[str, object] = {"slots": count, **changes}
    try:
        with started(folder, environment=environment(0), launch=launch, **values) as engine:
            for rank in range(1, count):
                ranks.append(subprocess.Popen(
                    [sys.executable, "-I", engine_file(folder), "rank", "--launch", launch],
                    env=environment(rank), stdin=subprocess.DEVNULL,
                    stderr=(folder / f"rank{rank}.log").open("wb"),
                ))
            yield Step(engine, ranks, launch)
        for rank in ranks:
            rank.wait(20)
        assert [path.read_text() for path in folder.glob("rank*.log")] == [""] * len(ranks)
    finally:
        for rank in ranks:
            with suppress(ProcessLookupError):
                rank.kill()
            rank.wait()


def hold(id: int, folder: Path) -> str:
    """A task that says where it runs and goes on until it may end."""
    return (
        f'echo "$PPID $DISBATCH_CYLINDER_RANK ${{CUDA_VISIBLE_DEVICES-none}}" > on.{id};'
        " until [ -e go ]; do sleep 0.02; done"
    )


def said(folder: Path, id: int) -> list[str]:
    wait_until(lambda: (folder / f"on.{id}").exists() and bool((folder / f"on.{id}").read_text()),
               f"task {id} runs")
    return (folder / f"on.{id}").read_text().split()


def test_a_task_is_forked_inside_the_rank_of_its_slot(tmp_path: Path) -> None:
    with step(tmp_path, 3) as it:
        it.driver.open()
        it.driver.assign(*(attempt(id, hold(id, tmp_path)) for id in range(3)))
        parents = {slot: int(parent) for parent, slot, _ in (said(tmp_path, i) for i in range(3))}
        (tmp_path / "go").touch()
        for id in range(3):
            assert it.driver.report_of(id).outcome.code == 0
        assert parents["1"] == it.ranks[0].pid and parents["2"] == it.ranks[1].pid
        assert it.driver.rooms == []


def test_each_task_sees_what_its_rank_was_given(tmp_path: Path) -> None:
    own = {rank: {"CUDA_VISIBLE_DEVICES": str(rank + 5)} for rank in range(2)}
    with step(tmp_path, 2, own, divided=["CUDA_VISIBLE_DEVICES"]) as it:
        it.driver.open()
        it.driver.assign(*(attempt(id, hold(id, tmp_path)) for id in range(2)))
        seen = {slot: device for _, slot, device in (said(tmp_path, id) for id in range(2))}
        (tmp_path / "go").touch()
        assert seen == {"0": "5", "1": "6"}
        it.driver.report_of(0), it.driver.report_of(1)
        assert it.driver.notices == [] and it.driver.rooms == []


def test_a_list_that_all_ranks_show_is_divided_and_decides_how_many_slots_there_are(
    tmp_path: Path,
) -> None:
    own = {rank: {"CUDA_VISIBLE_DEVICES": "3,7"} for rank in range(3)}
    with step(tmp_path, 3, own, divided=["CUDA_VISIBLE_DEVICES"]) as it:
        it.driver.open()
        assert it.driver.rooms == [2]
        it.driver.assign(*(attempt(id, hold(id, tmp_path)) for id in range(2)))
        seen = {slot: device for _, slot, device in (said(tmp_path, id) for id in range(2))}
        (tmp_path / "go").touch()
        assert seen == {"0": "3", "1": "7"}
        it.driver.report_of(0), it.driver.report_of(1)
        assert "the slots are lowered to 2" in " ".join(it.driver.notices)


def test_a_list_is_not_divided_unless_that_was_asked_for(tmp_path: Path) -> None:
    own = {rank: {"CUDA_VISIBLE_DEVICES": "3,7"} for rank in range(2)}
    with step(tmp_path, 2, own) as it:
        it.driver.open()
        (report,) = it.driver.run("[ $CUDA_VISIBLE_DEVICES = 3,7 ]")
        assert report.outcome.code == 0


def test_variables_of_the_step_are_kept_from_tasks(tmp_path: Path) -> None:
    own = {rank: {"PMI_RANK": "1", "SLURM_STEP_ID": "0", "KEPT": "1"} for rank in range(2)}
    removes = ["PMI*", "SLURM_LOCALID", "SLURM_STEP_*"]
    with step(tmp_path, 2, own, removes=removes) as it:
        it.driver.open()
        asks = 'echo "${PMI_RANK-}${SLURM_STEP_ID-}${SLURM_LOCALID-}$KEPT" >> seen; sleep 0.2'
        it.driver.run(asks, asks)
        assert (tmp_path / "seen").read_text() == "1\n1\n"


def test_a_rank_that_dies_loses_its_attempt_and_its_slot_and_nothing_else(tmp_path: Path) -> None:
    with step(tmp_path, 2) as it:
        it.driver.open()
        it.driver.assign(*(attempt(id, hold(id, tmp_path)) for id in range(2)))
        slots = {id: said(tmp_path, id)[1] for id in range(2)}
        dead, alive = sorted(slots, key=lambda id: slots[id] != "1")
        it.ranks[0].kill()
        report = it.driver.report_of(dead)
        assert isinstance(report.outcome, Lost)
        it.driver.wait(lambda: it.driver.rooms == [1], "it says that a slot is gone")
        (tmp_path / "go").touch()
        assert it.driver.report_of(alive).outcome.code == 0
        assert it.driver.run("true")[0].outcome.code == 0


def test_when_the_engine_dies_the_ranks_end_what_they_run_and_leave(tmp_path: Path) -> None:
    with step(tmp_path, 2) as it:
        it.driver.open()
        command = "echo $$ > pid.$DISBATCH_CYLINDER_RANK; sleep 600"
        it.driver.assign(attempt(0, command), attempt(1, command))
        pids = [tmp_path / "pid.0", tmp_path / "pid.1"]
        wait_until(lambda: all(path.exists() and path.read_text() for path in pids), "both run")
        it.engine.kill(signal.SIGKILL)
        wait_until(
            lambda: all(read_process(int(path.read_text())) is None for path in pids),
            "their tasks have ended",
        )
        assert it.ranks[0].wait(20) == 0


def test_what_the_end_of_the_allocation_ends_is_cut_off_and_has_not_failed(tmp_path: Path) -> None:
    with step(tmp_path, 2) as it:
        it.driver.open()
        command = "echo $$ > pid.$DISBATCH_CYLINDER_RANK; exec sleep 600"
        it.driver.assign(attempt(0, command), attempt(1, command))
        pids = [tmp_path / "pid.0", tmp_path / "pid.1"]
        wait_until(lambda: all(path.exists() and path.read_text() for path in pids), "both run")
        # Tasks first: their reports must not be taken for failures meanwhile.
        for pid in [*(int(path.read_text()) for path in pids), *reversed(it.pids())]:
            os.kill(pid, signal.SIGTERM)
        for id in range(2):
            outcome = it.driver.report_of(id).outcome
            assert isinstance(outcome, Cancelled)
            assert (outcome.code, outcome.reason) == (-15, "deadline")
        wait_until(it.engine.has_ended, "it leaves")


def test_a_task_that_somebody_else_has_terminated_has_failed(tmp_path: Path) -> None:
    with step(tmp_path, 2) as it:
        it.driver.open()
        (report,) = it.driver.run("kill -TERM $$")
        assert isinstance(report.outcome, Signalled) and report.outcome.code == -15


def test_who_is_no_rank_of_a_step_is_turned_away(tmp_path: Path) -> None:
    with step(tmp_path, 1) as it:
        it.driver.wait(lambda: bool(it.driver.hello), "hello")
        path = f"/tmp/overnight-{os.getuid()}/{it.launch}.ranks"
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(10)
            stranger.connect(path)
            assert stranger.recv(1) == b""
        it.driver.open()
        assert it.driver.run("true")[0].outcome.code == 0
