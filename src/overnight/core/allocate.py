"""How many slots each node gets, and how many cores each task in them.

The arithmetic is disBatch's, with two corrections where its manual says otherwise than the
program does: ``-t`` goes up to cores / cpusPerTask, as does SLURM_NTASKS_PER_NODE; and a
task is never told that it has no core.
"""

from __future__ import annotations

from overnight.errors import UsageError
from overnight.model.allocation import SlurmJob, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NodeShare", "SlurmJob", "slurm_shares", "slurm_steps", "ssh_shares"]


class NodeShare:
    """What one node gives.

    Attributes:
        node: Its name.
        slots: Tasks at once. A node without a slot is listed too; it gets no engine.
        cores_per_task: What a task is told it may use, at least 1.
    """

    __slots__ = ("cores_per_task", "node", "slots")

    def __init__(self, node: str, slots: int, cores_per_task: int) -> None:
        self.node = node
        self.slots = slots
        self.cores_per_task = cores_per_task

    def __repr__(self) -> str:
        return f"NodeShare({self.node!r}, {self.slots}, {self.cores_per_task})"


def ssh_shares(
    cores_by_node: Mapping[str, int], cores_per_task: float | None, tasks_per_node: int | None
) -> tuple[list[NodeShare], list[str]]:
    """Divide hosts that were named with their cores.

    Args:
        cores_by_node: In the order in which they were named.
        cores_per_task: ``-c``; may be a fraction.
        tasks_per_node: ``-t``.

    Returns:
        A share for each node, and warnings for the user.

    Raises:
        UsageError: ``-c`` or ``-t`` is out of range.
    """
    _check_options(cores_per_task, tasks_per_node)
    shares: list[NodeShare] = []
    warnings: list[str] = []
    for node, cores in cores_by_node.items():
        fitting = int(cores // (cores_per_task or 1))
        slots = fitting if tasks_per_node is None else min(tasks_per_node, fitting)
        if tasks_per_node is not None and slots < tasks_per_node:
            warnings.append(_capped(node, cores, slots, tasks_per_node))
        shares.append(NodeShare(node, slots, max(1, cores // (slots or 1))))
    return shares, warnings


def slurm_shares(
    job: SlurmJob, cores_per_task: float | None, tasks_per_node: int | None, fill: bool = False
) -> tuple[list[NodeShare], list[str]]:
    """Divide the nodes of a Slurm allocation.

    Args:
        job: What the allocation says of itself.
        cores_per_task: ``-c``; may be a fraction. Wins over the job's.
        tasks_per_node: ``-t``. Wins over the job's.
        fill: ``--fill``: use cores beyond those that the job's tasks ask for. Without
            effect where the job has GPUs: more tasks would have to share them.

    Returns:
        A share for each node, and warnings for the user (disBatch's words).

    Raises:
        UsageError: ``-c`` or ``-t`` is out of range, or the job contradicts itself.
    """
    _check_options(cores_per_task, tasks_per_node)
    _check_job(job)
    cores_used = cores_per_task or job.cores_per_task or 1
    limit = job.tasks_per_node if tasks_per_node is None else tasks_per_node
    ignores_tasks = tasks_per_node is not None or (
        job.tasks_per_node is None and fill and not job.has_gpus
    )
    shares: list[NodeShare] = []
    for at, (node, cores) in enumerate(zip(job.nodes, job.cores, strict=True)):
        slots = int(cores // cores_used)
        if limit is not None:
            slots = min(slots, limit)
        if job.tasks is not None and not ignores_tasks:
            slots = min(slots, job.tasks[at])
        told = cores // (slots or 1) if cores_per_task is None else int(cores_per_task)
        shares.append(NodeShare(node, slots, max(1, told)))
    return shares, _conflicts(job, cores_per_task, tasks_per_node)


def slurm_steps(
    jobs: Sequence[SlurmJob], cores_per_task: float | None, tasks_per_node: int | None,
    fill: bool = False,
) -> tuple[list[Step], list[str]]:
    """The steps that an allocation is used with: one for each node that has a slot.

    Args:
        jobs: The allocation, or each of its components.
        cores_per_task: ``-c``.
        tasks_per_node: ``-t``.
        fill: ``--fill``.

    Returns:
        Steps in the order of the nodes, and warnings for the user, each once.

    Raises:
        UsageError: As ``slurm_shares``.
    """
    steps: list[Step] = []
    warnings: list[str] = []
    for job in jobs:
        shares, more = slurm_shares(job, cores_per_task, tasks_per_node, fill)
        warnings += more
        for share, cores in zip(shares, job.cores, strict=True):
            if share.slots:
                steps.append(Step(
                    share.node, share.slots, share.cores_per_task, cores, job.id, job.het_group
                ))
    return steps, list(dict.fromkeys(warnings))


def _check_options(cores_per_task: float | None, tasks_per_node: int | None) -> None:
    # Written so that nan is refused as well.
    if cores_per_task is not None and not 0 < cores_per_task < float("inf"):
        raise UsageError(f"-c {cores_per_task:g}: the cores of a task must be more than 0")
    if tasks_per_node is not None and tasks_per_node < 1:
        raise UsageError(f"-t {tasks_per_node}: a node must run at least 1 task at a time")


def _check_job(job: SlurmJob) -> None:
    for name, counts in (
        ("SLURM_JOB_CPUS_PER_NODE", job.cores),
        ("SLURM_TASKS_PER_NODE", job.tasks),
    ):
        if counts is not None and len(counts) != len(job.nodes):
            raise UsageError(
                f"{name} counts {len(counts)} nodes, SLURM_NODELIST names {len(job.nodes)}",
                do="start inside the allocation, with the variables that Slurm set",
            )


def _conflicts(
    job: SlurmJob, cores_per_task: float | None, tasks_per_node: int | None
) -> list[str]:
    warnings = []
    for given, name, theirs, variable in (
        (cores_per_task, "cpusPerTask", job.cores_per_task, "SLURM_CPUS_PER_TASK"),
        (tasks_per_node, "tasksPerNode", job.tasks_per_node, "SLURM_NTASKS_PER_NODE"),
    ):
        if given is not None and theirs is not None and given != theirs:
            warnings.append(
                f"disBatch argument {name} ({given}) conflicts with {variable} ({theirs}). "
                "Using disBatch value."
            )
    return warnings


def _capped(node: str, cores: int, slots: int, tasks_per_node: int) -> str:
    """Say that ``-t`` cannot be had, and which ``-c`` would make room for it."""
    told = f"{node}: -t {tasks_per_node} does not fit on its cores; slots used: {slots}"
    fraction = _fraction(cores, tasks_per_node)
    return f"{told} (-c {fraction} would make room)" if fraction else told


def _fraction(cores: int, tasks: int) -> str:
    """A ``-c`` with which so many tasks fit; empty where there is none."""
    for digits in range(2, 7):
        units = cores * 10**digits // tasks
        # Where it divides evenly, binary fractions may make it one task too few.
        for fraction in (units / 10**digits, (units - 1) / 10**digits):
            if fraction > 0 and int(cores // fraction) >= tasks:
                return f"{fraction:.{digits}f}"
    return ""
