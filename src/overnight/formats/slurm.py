"""What Slurm says of an allocation in the variables of a job."""

from __future__ import annotations

from overnight.formats.hostlist import MOST_HOSTS, expand_nodelist
from overnight.model.allocation import SlurmJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_DIGITS = 9
_SHOWN = 60


def job_id(environment: Mapping[str, str]) -> str | None:
    """Id of the allocation that these variables are of, or None outside of any.

    A heterogeneous job goes by the id of its first component, a member of an array by its own.
    """
    return environment.get("SLURM_JOBID") or environment.get("SLURM_JOB_ID") or None


def batch_job(environment: Mapping[str, str]) -> str:
    """The job whose end is the end of this process, and how often it was started again.

    ``JOB/RESTARTS``; empty outside of jobs, and for a command under ``salloc``, which Slurm
    does not end.

    >>> batch_job({"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "node1"})
    '7/0'
    """
    job = job_id(environment)
    if job is None or "SLURMD_NODENAME" not in environment:
        return ""
    return f"{job}/{environment.get('SLURM_RESTART_COUNT') or 0}"


def read_jobs(
    environment: Mapping[str, str],
    expand: Callable[[str], Sequence[str]] = expand_nodelist,
) -> list[SlurmJob]:
    """The allocation: one job, or each component of a heterogeneous one in order.

    ``salloc`` gives a heterogeneous job no plain variables, ``sbatch`` gives it those of its
    first component beside those of each: where there are components they count.

    Args:
        environment: Of a batch script, of a command under ``salloc``, or of a step.
        expand: Gives the names in a compact list of nodes.

    Raises:
        ValueError: A variable is missing or does not parse; the message names it.
    """
    size = environment.get("SLURM_HET_SIZE", "")
    if size.isdigit() and int(size) > 1:
        return [_component(environment, group, expand) for group in range(int(size))]
    return [_job(environment, "", job_id(environment) or "", None, expand)]


def _component(
    environment: Mapping[str, str], group: int, expand: Callable[[str], Sequence[str]]
) -> SlurmJob:
    ending = f"_HET_GROUP_{group}"
    id = environment.get(f"SLURM_JOB_ID{ending}") or job_id(environment) or ""
    return _job(environment, ending, id, group, expand)


def _job(
    environment: Mapping[str, str], ending: str, id: str, group: int | None,
    expand: Callable[[str], Sequence[str]],
) -> SlurmJob:
    def value(*names: str) -> str | None:
        found = (environment.get(name + ending) for name in names)
        return next((text for text in found if text), None)

    def number(name: str) -> int | None:
        text = value(name)
        if text is None:
            return None
        if not _is_number(text):
            raise ValueError(f"{name}{ending} is {text[:_SHOWN]!r}, not a number")
        return int(text)

    node_list = value("SLURM_NODELIST", "SLURM_JOB_NODELIST")
    cores = value("SLURM_JOB_CPUS_PER_NODE")
    if node_list is None or cores is None:
        missing = "SLURM_JOB_NODELIST" if node_list is None else "SLURM_JOB_CPUS_PER_NODE"
        raise ValueError(f"{missing}{ending} is not set")
    tasks = value("SLURM_TASKS_PER_NODE")
    return SlurmJob(
        nodes=expand(node_list),
        cores=per_node_counts(cores),
        tasks=None if tasks is None else per_node_counts(tasks),
        cores_per_task=number("SLURM_CPUS_PER_TASK"),
        tasks_per_node=number("SLURM_NTASKS_PER_NODE"),
        has_gpus="CUDA_VISIBLE_DEVICES" in environment or "GPU_DEVICE_ORDINAL" in environment,
        id=id,
        het_group=group,
    )


def per_node_counts(text: str) -> list[int]:
    """Give one number for each node from a list such as ``3(x2),1``.

    So SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE are written.

    Raises:
        ValueError: It is no such list, or counts more than 65,536 nodes.

    >>> per_node_counts("3(x2),1")
    [3, 3, 1]
    """
    counts: list[int] = []
    for item in text.strip().split(","):
        number, bracket, rest = item.partition("(")
        times = rest[1:-1] if bracket and rest.startswith("x") and rest.endswith(")") else ""
        if not _is_number(number) or (bracket and not (_is_number(times) and int(times))):
            raise _malformed(text, f'"{item[:_SHOWN]}" is not of the form 3 or 3(x2)')
        repeated = int(times) if bracket else 1
        if len(counts) + repeated > MOST_HOSTS:
            raise _malformed(text, f"it counts more than {MOST_HOSTS} nodes")
        counts += [int(number)] * repeated
    return counts


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _malformed(text: str, reason: str) -> ValueError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ValueError(f"{shown!r} is no list of counts per node: {reason}")
