"""What a resource manager has given: nodes, and what each of them may be used for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SlurmJob:
    """What an allocation of Slurm says of itself; one component of it, where it has several.

    Attributes:
        nodes: Names, in Slurm's order.
        cores: Of each node.
        tasks: Slurm's tasks of each node, or None where the job does not say.
        cores_per_task: SLURM_CPUS_PER_TASK, or None.
        tasks_per_node: SLURM_NTASKS_PER_NODE, or None.
        has_gpus: Whether CUDA_VISIBLE_DEVICES or GPU_DEVICE_ORDINAL is set.
        id: Of the job, or of this component of a heterogeneous one.
        het_group: Number of the component, or None for an ordinary job.
    """

    __slots__ = (
        "cores", "cores_per_task", "has_gpus", "het_group", "id", "nodes", "tasks",
        "tasks_per_node",
    )

    def __init__(
        self,
        nodes: Sequence[str],
        cores: Sequence[int],
        tasks: Sequence[int] | None,
        cores_per_task: int | None = None,
        tasks_per_node: int | None = None,
        has_gpus: bool = False,
        id: str = "",
        het_group: int | None = None,
    ) -> None:
        self.nodes = nodes
        self.cores = cores
        self.tasks = tasks
        self.cores_per_task = cores_per_task
        self.tasks_per_node = tasks_per_node
        self.has_gpus = has_gpus
        self.id = id
        self.het_group = het_group


class Step:
    """The step of one node.

    Attributes:
        node: As Slurm names it.
        slots: Processes of it, one a slot.
        cores_per_task: Cores that srun is asked for, for each of them.
        cores: Of the node in this allocation.
        job: Id of the job, or of the component that the node belongs to.
        het_group: Number of that component, or None for an ordinary job.
        gpus: To be asked for by number, or None where the step gets the job's by itself.
    """

    __slots__ = ("cores", "cores_per_task", "gpus", "het_group", "job", "node", "slots")

    def __init__(
        self, node: str, slots: int, cores_per_task: int, cores: int, job: str = "",
        het_group: int | None = None, gpus: int | None = None,
    ) -> None:
        self.node = node
        self.slots = slots
        self.cores_per_task = cores_per_task
        self.cores = cores
        self.job = job
        self.het_group = het_group
        self.gpus = gpus

    @property
    def is_overcommitted(self) -> bool:
        """Whether its slots want more cores than the node has: they share them then."""
        return self.slots * self.cores_per_task > self.cores
