"""Allocations that are added to a run while it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.slurm.kit import PYTHON, Job, call, clean_environment, wait_until

RUN = Path(PYTHON).parent / "disBatch"


@contextmanager
def run_here(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run outside of any allocation, on the machine itself."""
    process = subprocess.Popen(
        [str(RUN), "-p", "run", *arguments, "Tasks"], cwd=folder,
        env=clean_environment() | {"LAB_JOB": str(folder)}, stdin=subprocess.DEVNULL,
        stdout=(folder / "run.out").open("w"), stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def add(job: Job, *options: str) -> Job:
    """Submit the utility script of the run, as users do."""
    wait_until((job.folder / "run_dbUtil.sh").exists, "the script is there")
    told = call(
        "sbatch", "--parsable", "-o", str(job.output), *options, "run_dbUtil.sh", cwd=job.folder,
        LAB_JOB=str(job.folder),
    )  # fmt: skip
    job.id = told.strip()
    return job


def test_an_allocation_joins_a_run_works_and_leaves_with_it(job: Job) -> None:
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 4 hostname > on.$DISBATCH_TASKID;"
        " until [ $(ls on.* | wc -l) = 4 ]; do sleep 0.05; done\n"
    )
    with run_here(job.folder, "-s", "localhost:1") as run:
        add(job, "-n", "3", "-N", "2")
        assert run.wait(60) == 0, (job.folder / "run.out").read_text() + job.text() + job.log()
    assert job.wait() == "COMPLETED", job.text()
    nodes = [row[4] for row in job.rows()]
    assert sorted(nodes) == sorted(["node1", "node1", "node2", os.uname().nodename])


def test_a_run_without_resources_waits_for_one(job: Job) -> None:
    (job.folder / "Tasks").write_text("echo ${SLURM_STEP_ID-none} > seen\ntrue\n")
    with run_here(job.folder, "-S") as run:
        add(job, "-n", "2")
        assert run.wait(60) == 0, (job.folder / "run.out").read_text() + job.text() + job.log()
    assert job.wait() == "COMPLETED", job.text()
    assert (job.folder / "seen").read_text() == "none\n"
    assert [row[4] for row in job.rows()] == ["node1", "node1"]


def test_gpus_are_divided_where_the_allocation_is(job: Job) -> None:
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 2 echo $CUDA_VISIBLE_DEVICES > on.$DISBATCH_TASKID;"
        " until [ $(ls on.* | wc -l) = 2 ]; do sleep 0.05; done\n"
    )
    with run_here(job.folder, "-S") as run:
        wait_until((job.folder / "run_dbUtil.sh").exists, "the script is there")
        job.submit(["-N", "1", "--ntasks-per-node=2", "--gres=gpu:2"], "exec ./run_dbUtil.sh -g")
        assert run.wait(60) == 0, (job.folder / "run.out").read_text() + job.text() + job.log()
    assert sorted((job.folder / f"on.{id}").read_text() for id in range(2)) == ["0\n", "1\n"]


def test_a_node_of_it_that_runs_dry_is_given_back(job: Job) -> None:
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 3 [ $DISBATCH_TASKID != 0 ] || until [ -e go ]; do sleep 0.1; done\n"
    )
    with run_here(job.folder, "-S") as run:
        add(job, "-N", "3", "--ntasks-per-node=1")
        wait_until(lambda: job.describe().get("NumNodes") in ("1", "2"), "nodes are given back")
        assert run.poll() is None
        (job.folder / "go").touch()
        assert run.wait(60) == 0, (job.folder / "run.out").read_text() + job.text() + job.log()
    assert job.wait() == "COMPLETED", job.text()
