"""Runs in each shape of allocation: which slots, which devices, which rows."""

from __future__ import annotations

import shlex
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.slurm.kit import DISBATCH, OVERNIGHT, Cluster, Job, call, clean_environment

SAYS_WHERE = 'echo "$SLURMD_NODENAME $DISBATCH_CYLINDER_RANK $DISBATCH_CORES_PER_TASK" > on.{id}'
HOLDS = "until [ $(ls on.* | wc -l) -ge {count} ]; do sleep 0.05; done"


def write_tasks(folder: Path, count: int, command: str, holds: int | None = None) -> None:
    """A list of tasks that note something in ``on.ID``; each waits until so many have."""
    wait = "; " + HOLDS.format(count=count if holds is None else holds)
    lines = [command.format(id=id) + wait for id in range(count)]
    (folder / "Tasks").write_text("\n".join(lines) + "\n")


def noted(folder: Path) -> list[str]:
    paths = sorted(folder.glob("on.*"), key=lambda path: int(path.suffix[1:]))
    return [path.read_text().strip() for path in paths]


def succeeds(job: Job, count: int) -> list[list[str]]:
    """The rows of a job that is to do all its tasks well."""
    state = job.wait()
    assert (state, job.describe()["ExitCode"]) == ("COMPLETED", "0:0"), job.text() + job.log()
    rows = job.rows()
    assert [(row[1], row[6]) for row in rows] == [(str(id), "0") for id in range(count)]
    return rows


def test_a_batch_job_over_three_nodes(job: Job) -> None:
    write_tasks(job.folder, 5, SAYS_WHERE)
    job.submit(["-n", "5", "-c", "2"], f"{DISBATCH} -p run Tasks")
    rows = succeeds(job, 5)
    assert Counter(noted(job.folder)) == {
        "node1 0 2": 1, "node1 1 2": 1, "node2 0 2": 1, "node2 1 2": 1, "node3 0 2": 1,
    }  # fmt: skip
    assert [row[4] for row in rows] == [line.split()[0] for line in noted(job.folder)]
    assert (job.folder / f"run_J{job.id}.context.log").exists()
    assert not (job.folder / "run_join").exists(), "the secret does not outlive the run"


def test_the_program_itself_is_the_batch_script(job: Job) -> None:
    # sbatch runs a copy of it in a folder of its own
    write_tasks(job.folder, 2, SAYS_WHERE)
    job.submit_program(["-n", "2"], "-p", "run", "Tasks")
    succeeds(job, 2)


def test_a_command_of_ours_uses_the_allocation_too(job: Job) -> None:
    write_tasks(job.folder, 3, SAYS_WHERE)
    job.submit(["-N", "3", "--ntasks-per-node=1"], f"{OVERNIGHT} run -p run Tasks")
    succeeds(job, 3)
    assert sorted(line.split()[0] for line in noted(job.folder)) == ["node1", "node2", "node3"]


@pytest.mark.parametrize("submit_host", ["machine", "login"])
def test_salloc_with_the_driver_outside_of_the_allocation(
    cluster: Cluster, job: Job, submit_host: str
) -> None:
    # The machine's own name may be a loopback address: nodes must find it all the same.
    write_tasks(job.folder, 4, SAYS_WHERE)
    script = f"export {shlex.quote(job.mark)}; {DISBATCH} -p run Tasks"
    command = ["salloc", "-n", "4", "-N", "2", "bash", "-c", script]
    if submit_host == "login":
        command = cluster.command_on("login", command)
    done = subprocess.run(
        ["timeout", "-s", "KILL", "60", *command], cwd=job.folder, env=clean_environment(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + job.log()
    rows = job.rows()
    assert {row[4] for row in rows} == {"node1", "node2"} and len(rows) == 4


def test_each_member_of_an_array_is_a_run_of_its_own(job: Job) -> None:
    (job.folder / "Tasks").write_text("echo $SLURM_ARRAY_TASK_ID >> seen.$SLURM_ARRAY_TASK_ID\n")
    job.submit(["--array=1-3", "-n", "1"], f"{DISBATCH} -p run_$SLURM_ARRAY_TASK_ID Tasks")
    job.wait_gone()
    assert [(job.folder / f"seen.{n}").read_text() for n in (1, 2, 3)] == ["1\n", "2\n", "3\n"]
    assert all(len(job.rows(f"run_{n}")) == 1 for n in (1, 2, 3))


def test_a_heterogeneous_job(job: Job) -> None:
    write_tasks(job.folder, 4, SAYS_WHERE)
    script = f"export {shlex.quote(job.mark)}; {DISBATCH} -p run Tasks"
    call("salloc", "-n", "1", "-c", "2", ":", "-n", "3", "bash", "-c", script, cwd=job.folder)
    assert Counter(noted(job.folder)) == {
        "node1 0 2": 1, "node2 0 1": 1, "node2 1 1": 1, "node2 2 1": 1,
    }  # fmt: skip
    assert {row[6] for row in job.rows()} == {"0"}


def test_more_slots_than_cores(job: Job) -> None:
    # four tasks of Slurm's on one core, of which as many run as the core is divided into
    write_tasks(job.folder, 4, SAYS_WHERE, holds=2)
    job.submit(["-N", "1", "-n", "4", "--overcommit"], f"{DISBATCH} -c 0.5 -p run Tasks")
    succeeds(job, 4)


def test_a_fraction_of_a_core(job: Job) -> None:
    write_tasks(job.folder, 4, SAYS_WHERE)
    job.submit(["-N", "1", "-n", "2"], f"{DISBATCH} -c 0.5 --fill -p run Tasks")
    succeeds(job, 4)
    assert "--overcommit" in job.log()


@pytest.mark.parametrize("options", [["--export=ALL,SLURM_LABELIO=1"], ["--export=NONE"]])
def test_what_users_export_for_their_steps_does_not_change_ours(
    job: Job, options: list[str]
) -> None:
    write_tasks(job.folder, 2, SAYS_WHERE)
    script = f"export SLURM_UNBUFFEREDIO=1 SLURM_EXACT=1; {DISBATCH} -p run Tasks"
    job.submit(["-n", "2", *options], script, SBATCH_EXPORT="NONE")
    succeeds(job, 2)


# ---- devices

SAYS_GPU = 'echo "$SLURMD_NODENAME ${{CUDA_VISIBLE_DEVICES-none}}" > on.{id}'


def test_gpus_per_task_are_those_that_slurm_gave_each(job: Job) -> None:
    write_tasks(job.folder, 4, SAYS_GPU)
    job.submit(["-n", "4", "-N", "2", "--gpus-per-task=1"], f"{DISBATCH} -g -p run Tasks")
    succeeds(job, 4)
    assert sorted(noted(job.folder)) == ["node1 0", "node1 1", "node2 0", "node2 1"]


def test_gpus_of_a_node_are_divided_among_its_slots(job: Job) -> None:
    write_tasks(job.folder, 4, SAYS_GPU)
    job.submit(["-N", "2", "--ntasks-per-node=2", "--gres=gpu:2"],
               f"{DISBATCH} -g -p run Tasks")
    succeeds(job, 4)
    assert sorted(noted(job.folder)) == ["node1 0", "node1 1", "node2 0", "node2 1"]


def test_fewer_gpus_than_slots_lower_the_slots(job: Job) -> None:
    write_tasks(job.folder, 4, SAYS_GPU, holds=2)
    job.submit(["-N", "1", "--ntasks-per-node=4", "--gres=gpu:2"],
               f"{DISBATCH} -g -p run Tasks")
    succeeds(job, 4)
    assert {line.split()[1] for line in noted(job.folder)} == {"0", "1"}
    assert "the slots are lowered to 2" in job.log()


def test_without_g_tasks_share_what_the_node_has(job: Job) -> None:
    write_tasks(job.folder, 2, SAYS_GPU)
    job.submit(["-N", "1", "--ntasks-per-node=2", "--gres=gpu:2"], f"{DISBATCH} -p run Tasks")
    succeeds(job, 2)
    assert noted(job.folder) == ["node1 0,1", "node1 0,1"]


def test_gpus_that_were_asked_for_by_their_sum(job: Job) -> None:
    write_tasks(job.folder, 2, SAYS_GPU)
    job.submit(["-N", "2", "-n", "2", "--gpus=3"], f"{DISBATCH} -p run Tasks")
    succeeds(job, 2)
    assert sorted(noted(job.folder)) == ["node1 0,1", "node2 0"]


# ---- what tasks see

ASKS = "env | grep -E '^(PMI|SLURM_STEP|SLURM_PROCID|SLURM_LOCALID|SLURM_MPI_TYPE)' > on.{id}; true"


def test_variables_of_our_step_are_not_the_tasks(job: Job) -> None:
    write_tasks(job.folder, 1, ASKS)
    job.submit(["-n", "1"], f"{DISBATCH} -p run Tasks")
    succeeds(job, 1)
    assert noted(job.folder) == [""]


def test_they_are_where_that_is_wished(job: Job) -> None:
    write_tasks(job.folder, 1, ASKS)
    job.submit(["-n", "1"], f"{DISBATCH} --keep-slurm-env -p run Tasks")
    succeeds(job, 1)
    assert "SLURM_STEP_ID=0" in noted(job.folder)[0].splitlines()


@pytest.mark.needs("mpirun")
@pytest.mark.parametrize("options", [["--ntasks-per-node=2"], ["-n", "2", "-c", "2"]])
def test_mpirun_in_a_task_starts_on_its_node(job: Job, options: list[str]) -> None:
    write_tasks(job.folder, 2, "mpirun --allow-run-as-root -n 2 hostname > on.{id}", holds=1)
    job.submit(["-N", "2", *options], f"{DISBATCH} -p run Tasks")
    rows = succeeds(job, 2)
    assert noted(job.folder) == [f"{row[4]}\n{row[4]}" for row in rows]


@pytest.mark.parametrize("where", ["", "-w $SLURMD_NODENAME"])
def test_a_task_may_call_srun_itself(job: Job, where: str) -> None:
    write_tasks(job.folder, 2, f"srun -N 1 -n 2 {where} --overlap --mem=0 hostname > on.{{id}}")
    job.submit(["-N", "2", "-n", "2", "-c", "2"], f"{DISBATCH} -p run Tasks")
    rows = succeeds(job, 2)
    if where:
        assert noted(job.folder) == [f"{row[4]}\n{row[4]}" for row in rows]
