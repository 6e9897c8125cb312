"""Slots and cores. The arithmetic itself is held to the recorded facts (tests/conformance)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.core.allocate import SlurmJob, slurm_shares, ssh_shares
from overnight.errors import UsageError


def slots_of(cores: int, c: float | None, t: int | None) -> int:
    (share,), _ = ssh_shares({"n": cores}, c, t)
    return share.slots


def test_a_core_is_a_slot_unless_told_otherwise() -> None:
    shares, warnings = ssh_shares({"a": 4, "b": 1}, None, None)
    assert [(share.node, share.slots, share.cores_per_task) for share in shares] == [
        ("a", 4, 1), ("b", 1, 1),
    ]  # fmt: skip
    assert warnings == []


def test_more_tasks_than_fit_are_capped_with_a_warning_that_names_the_way() -> None:
    (share,), (warning,) = ssh_shares({"n": 2}, None, 3)
    assert (share.slots, share.cores_per_task) == (2, 1)
    assert "-t 3" in warning
    assert "-c 0.66" in warning
    assert slots_of(2, 0.66, 3) == 3


@given(st.integers(1, 256), st.integers(1, 1_000))
def test_the_fraction_that_a_warning_names_makes_room(cores: int, tasks: int) -> None:
    _, warnings = ssh_shares({"n": cores}, None, tasks)
    if tasks > cores:
        (warning,) = warnings
        fraction = float(warning.split("-c ")[1].split()[0])
        assert slots_of(cores, fraction, tasks) == tasks


@given(st.integers(0, 512), st.floats(0.01, 64), st.one_of(st.none(), st.integers(1, 512)))
def test_slots_never_need_more_cores_than_there_are(cores: int, c: float, t: int | None) -> None:
    (share,), _ = ssh_shares({"n": cores}, c, t)
    assert 0 <= share.slots <= (cores / c if t is None else min(t, cores / c))
    assert share.cores_per_task >= 1


@pytest.mark.parametrize("c", [0.0, -1.0, float("nan"), float("inf")])
def test_a_task_must_use_some_cores(c: float) -> None:
    with pytest.raises(UsageError, match="-c"):
        ssh_shares({"n": 4}, c, None)


@pytest.mark.parametrize("t", [0, -1])
def test_a_node_must_run_some_tasks(t: int) -> None:
    with pytest.raises(UsageError, match="-t"):
        ssh_shares({"n": 4}, None, t)


def test_an_allocation_that_does_not_say_its_tasks_is_filled() -> None:
    """Slurm unsets the tasks per node when a node has been given back."""
    shares, warnings = slurm_shares(SlurmJob(["a", "b"], [4, 2], None), None, None)
    assert [share.slots for share in shares] == [4, 2]
    assert warnings == []


def test_slurms_limit_of_tasks_goes_up_to_what_fits() -> None:
    job = SlurmJob(["a"], [4], [8], cores_per_task=2, tasks_per_node=8)
    (share,), _ = slurm_shares(job, None, None)
    assert (share.slots, share.cores_per_task) == (2, 2)


def test_fill_is_without_effect_where_the_job_has_gpus() -> None:
    job = SlurmJob(["a"], [64], [2], has_gpus=True)
    (share,), _ = slurm_shares(job, None, None, fill=True)
    assert share.slots == 2


def test_an_option_that_contradicts_the_job_wins_and_is_warned_of() -> None:
    job = SlurmJob(["a"], [4], [4], cores_per_task=2, tasks_per_node=2)
    _, warnings = slurm_shares(job, 1.0, 1)
    assert warnings == [
        "disBatch argument cpusPerTask (1.0) conflicts with SLURM_CPUS_PER_TASK (2). "
        "Using disBatch value.",
        "disBatch argument tasksPerNode (1) conflicts with SLURM_NTASKS_PER_NODE (2). "
        "Using disBatch value.",
    ]


@pytest.mark.parametrize(("cores", "tasks"), [([4], [1, 1]), ([4, 4], [1]), ([4, 4, 4], None)])
def test_counts_that_do_not_fit_the_nodes_are_refused(
    cores: list[int], tasks: list[int] | None
) -> None:
    with pytest.raises(UsageError, match="SLURM_"):
        slurm_shares(SlurmJob(["a", "b"], cores, tasks), None, None)
