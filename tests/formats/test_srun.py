"""How srun is called for each shape of allocation: the command lines are golden files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from overnight.core.allocate import slurm_steps
from overnight.formats.slurm import read_jobs
from overnight.formats.srun import (
    NOT_FOR_SRUN,
    given_back_to_tasks,
    srun_command,
    srun_environment,
)

JOIN = ["join", "/data/Tasks_7f_join", "--launch", "5e2a"]

# As Slurm 22.05 sets them; what has no say in the steps is left out.
SHAPES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "sbatch-n5": (
        {"SLURM_JOB_ID": "2", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NTASKS": "5",
         "SLURM_JOB_CPUS_PER_NODE": "4,1", "SLURM_TASKS_PER_NODE": "4,1",
         "SLURM_MEM_PER_CPU": "1000"}, {},
    ),
    "sbatch-n5-c2": (
        {"SLURM_JOB_ID": "2", "SLURM_JOB_NODELIST": "node[1-3]", "SLURM_NTASKS": "5",
         "SLURM_JOB_CPUS_PER_NODE": "4(x2),2", "SLURM_TASKS_PER_NODE": "2(x2),1",
         "SLURM_CPUS_PER_TASK": "2", "SLURM_MEM_PER_CPU": "1000"}, {},
    ),
    "salloc-tasks-per-node": (
        {"SLURM_JOB_ID": "3", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NTASKS": "4",
         "SLURM_JOB_CPUS_PER_NODE": "2(x2)", "SLURM_TASKS_PER_NODE": "2(x2)",
         "SLURM_NTASKS_PER_NODE": "2"}, {},
    ),
    "salloc-uneven": (
        {"SLURM_JOB_ID": "8", "SLURM_JOB_NODELIST": "node[1-3]", "SLURM_NTASKS": "9",
         "SLURM_JOB_CPUS_PER_NODE": "4(x2),1", "SLURM_TASKS_PER_NODE": "4(x2),1"}, {},
    ),
    "gpus-per-task": (
        {"SLURM_JOB_ID": "4", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NTASKS": "3",
         "SLURM_JOB_CPUS_PER_NODE": "2,1", "SLURM_TASKS_PER_NODE": "2,1",
         "SLURM_GPUS_PER_TASK": "1", "SLURM_JOB_GPUS": "0,1",
         "CUDA_VISIBLE_DEVICES": "0,1", "GPU_DEVICE_ORDINAL": "0,1"}, {},
    ),
    "gres": (
        {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NTASKS": "4",
         "SLURM_JOB_CPUS_PER_NODE": "2(x2)", "SLURM_TASKS_PER_NODE": "2(x2)",
         "SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_GPUS": "0,1",
         "CUDA_VISIBLE_DEVICES": "0,1", "GPU_DEVICE_ORDINAL": "0,1"}, {"fill": True},
    ),
    "heterogeneous": (
        {"SLURM_JOB_ID": "6", "SLURM_HET_SIZE": "2", "SLURM_NTASKS": "4",
         "SLURM_JOB_ID_HET_GROUP_0": "6", "SLURM_JOB_ID_HET_GROUP_1": "7",
         "SLURM_CPUS_PER_TASK_HET_GROUP_0": "2",
         "SLURM_JOB_NODELIST_HET_GROUP_0": "node1", "SLURM_JOB_NODELIST_HET_GROUP_1": "node2",
         "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0": "2",
         "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "3",
         "SLURM_TASKS_PER_NODE_HET_GROUP_0": "1", "SLURM_TASKS_PER_NODE_HET_GROUP_1": "3"}, {},
    ),
    "array": (
        {"SLURM_JOB_ID": "15", "SLURM_ARRAY_JOB_ID": "14", "SLURM_ARRAY_TASK_ID": "7",
         "SLURM_JOB_NODELIST": "node1", "SLURM_JOB_CPUS_PER_NODE": "1",
         "SLURM_TASKS_PER_NODE": "1"}, {},
    ),
    "fraction-of-a-core": (
        {"SLURM_JOB_ID": "9", "SLURM_JOB_NODELIST": "node[1-2]",
         "SLURM_JOB_CPUS_PER_NODE": "2(x2)", "SLURM_TASKS_PER_NODE": "4,3"},
        {"cores_per_task": 0.5},
    ),
    "fill": (
        {"SLURM_JOB_ID": "10", "SLURM_JOB_NODELIST": "node[1-2]",
         "SLURM_JOB_CPUS_PER_NODE": "4(x2)", "SLURM_TASKS_PER_NODE": "2,1",
         "SLURM_CPUS_PER_TASK": "2"}, {"fill": True},
    ),
    "tasks-per-node-chosen": (
        {"SLURM_JOB_ID": "11", "SLURM_JOB_NODELIST": "node[1-2]",
         "SLURM_JOB_CPUS_PER_NODE": "4(x2)", "SLURM_TASKS_PER_NODE": "4(x2)"},
        {"tasks_per_node": 1, "cores_per_task": 2.0},
    ),
    "a-node-too-small": (
        {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "node[1-3]",
         "SLURM_JOB_CPUS_PER_NODE": "4,1,4", "SLURM_TASKS_PER_NODE": "2,1,2"},
        {"cores_per_task": 2.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_allocation_has_its_steps(
    shape: str, must_be_golden: Callable[[str, str], None]
) -> None:
    environment, chosen = SHAPES[shape]
    steps, warnings = slurm_steps(
        read_jobs(environment), chosen.get("cores_per_task"), chosen.get("tasks_per_node"),
        chosen.get("fill", False),
    )
    lines = [f"# {name}={value}" for name, value in environment.items()]
    lines += [f"# {name}: {value}" for name, value in chosen.items()]
    lines += [f"warning: {warning}" for warning in warnings]
    lines += [
        " ".join(srun_command(step, "python3", "/data/Tasks_7f_engine.pyz", JOIN))
        for step in steps
    ]
    must_be_golden(f"srun/{shape}.txt", "\n".join(lines) + "\n")


def test_a_job_that_asked_for_gpus_by_their_sum_has_them_named_for_each_node() -> None:
    (step, *_), _ = slurm_steps(read_jobs(SHAPES["sbatch-n5"][0]), None, None)
    step.gpus = 2
    assert "--gpus=2" in srun_command(step, "python3", "/data/T_engine.pyz", JOIN)


def environment_of(**variables: str) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in variables.items()}


@pytest.mark.parametrize("name", NOT_FOR_SRUN)
def test_what_would_change_the_step_is_taken_from_srun(name: str) -> None:
    assert name.encode() not in srun_environment(environment_of(**{name: "1"}))


def test_srun_keeps_the_rest_and_binds_to_cores_without_a_kind_of_mpi() -> None:
    given = environment_of(PATH="/bin", SLURM_JOB_ID="7", SLURM_GPUS_PER_TASK="1")
    assert srun_environment(given) == {
        **given, b"SLURM_CPU_BIND": b"cores", b"SLURM_MPI_TYPE": b"none",
    }  # fmt: skip


def test_a_binding_that_the_user_chose_is_kept() -> None:
    given = environment_of(SLURM_CPU_BIND="none")
    assert srun_environment(given)[b"SLURM_CPU_BIND"] == b"none"


def test_a_binding_that_srun_made_of_an_outer_step_is_not() -> None:
    given = environment_of(
        SLURM_STEP_ID="0", SLURM_CPU_BIND="quiet,mask_cpu:0x1", SLURM_CPU_BIND_LIST="0x1"
    )
    made = srun_environment(given)
    assert made[b"SLURM_CPU_BIND"] == b"cores" and b"SLURM_CPU_BIND_LIST" not in made


def test_the_options_file_comes_last() -> None:
    lines = [b"SLURM_CPU_BIND=rank\n", b"# a remark=1\n", b"\n", b"SLURM_OVERCOMMIT=1"]
    made = srun_environment(environment_of(SLURM_CPU_BIND="none"), lines)
    assert made[b"SLURM_CPU_BIND"] == b"rank" and made[b"SLURM_OVERCOMMIT"] == b"1"
    assert not any(name.startswith(b"#") for name in made)


def test_tasks_get_back_what_the_user_chose_for_steps_of_his_own() -> None:
    given = environment_of(SLURM_MPI_TYPE="pmix", SLURM_CPU_BIND="none", PATH="/bin")
    assert given_back_to_tasks(given) == [b"SLURM_MPI_TYPE=pmix", b"SLURM_CPU_BIND=none"]
    assert given_back_to_tasks({**given, b"SLURM_STEP_ID": b"0"}) == []
