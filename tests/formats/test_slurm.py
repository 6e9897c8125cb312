"""What Slurm says of an allocation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.slurm import job_id, per_node_counts, read_jobs


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("4", [4]),
        ("40,8", [40, 8]),
        ("3(x2),1", [3, 3, 1]),
        ("2(x1)", [2]),
        ("40,128(x3)", [40, 128, 128, 128]),
        ("0,2", [0, 2]),
        (" 4(x2)\n", [4, 4]),
    ],
)
def test_a_list_gives_one_number_for_each_node(text: str, counts: list[int]) -> None:
    assert per_node_counts(text) == counts


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ",", "1,", ",1", "1,,2", "x", "-1", "+1", "1.5", "2(3)", "2(x)", "2(x0)", "2(x-1)",
        "2(x3", "2x3", "2(x3)4", "(x3)", "2(x3))", "2((x3)", "2(X3)", "1 2", "1, 2", "²", "2(x²)",
        "1(x65537)", "1(x40000),1(x40000)", "1(x9999999999)", "9" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_such_list_is_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of counts per node: ") as refused:
        per_node_counts(text)
    assert len(str(refused.value)) < 300


@given(st.lists(st.tuples(st.integers(0, 512), st.integers(1, 9)), min_size=1, max_size=5))
def test_a_list_is_read_as_it_is_written(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)
    assert per_node_counts(text) == [count for count, times in runs for _ in range(times)]


@given(st.text(alphabet="12(x), ", max_size=12))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        counts = per_node_counts(text)
    except ValueError:
        return
    assert counts


SBATCH = {
    "SLURM_JOBID": "7", "SLURM_NODELIST": "node[1-2]", "SLURM_JOB_CPUS_PER_NODE": "4(x2)",
    "SLURM_TASKS_PER_NODE": "2(x2)",
}  # fmt: skip


def test_outside_of_an_allocation_there_is_no_job() -> None:
    assert job_id({"PATH": "/bin"}) is None
    assert job_id(SBATCH) == "7"


def test_a_job_whose_tasks_are_not_said_is_read_all_the_same() -> None:
    # so it is after the script that scontrol leaves when an allocation shrinks
    environment = {key: value for key, value in SBATCH.items() if "TASKS" not in key}
    (job,) = read_jobs(environment)
    assert (job.nodes, job.cores, job.tasks) == (["node1", "node2"], [4, 4], None)


@pytest.mark.parametrize("name", ["SLURM_NODELIST", "SLURM_JOB_CPUS_PER_NODE"])
def test_what_is_missing_is_named(name: str) -> None:
    environment = {key: value for key, value in SBATCH.items() if key != name}
    with pytest.raises(ValueError, match=r"SLURM_JOB_\w+ is not set"):
        read_jobs(environment)


@pytest.mark.parametrize("text", ["two", "-1", "1.5", "²"])
def test_a_number_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="SLURM_CPUS_PER_TASK is "):
        read_jobs({**SBATCH, "SLURM_CPUS_PER_TASK": text})


def test_the_components_of_a_heterogeneous_job_count_and_not_the_plain_variables() -> None:
    environment = {
        **SBATCH, "SLURM_HET_SIZE": "2",
        "SLURM_JOB_ID_HET_GROUP_0": "7", "SLURM_JOB_ID_HET_GROUP_1": "8",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "node[1-2]", "SLURM_JOB_NODELIST_HET_GROUP_1": "node3",
        "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0": "4(x2)", "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "1",
    }  # fmt: skip
    first, second = read_jobs(environment)
    assert (first.id, first.het_group, first.nodes) == ("7", 0, ["node1", "node2"])
    assert (second.id, second.het_group, second.nodes) == ("8", 1, ["node3"])
