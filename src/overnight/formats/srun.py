"""How srun is called: one step for each node, which starts a process for each slot.

srun only starts. The step's processes find the run by its join file; nothing of the link
goes through srun's own streams, which are line-buffered, labelled or copied at somebody's
wish.

Every option that a variable could give instead is written out or its variable is taken
away: what a user exported for steps of his own must not change ours.

Sources:
    Slurm 22.05, srun(1), "INPUT ENVIRONMENT VARIABLES"; what each of them does was tried.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from overnight.model.allocation import Step

OPTIONS_FILE_VARIABLE = "DISBATCH_SLURM_SRUN_OPTIONS_FILE"
"""Names a file of NAME=VALUE lines that are set for srun, after everything else."""


def srun_command(step: Step, python: str, engine_file: str, arguments: Sequence[str]) -> list[str]:
    """Program and arguments that start the engine of a node and the ranks of its slots.

    Args:
        step: Of which node.
        python: The interpreter, as the node finds it.
        engine_file: That every rank runs.
        arguments: Of the engine file.

    >>> from overnight.model.allocation import Step
    >>> step = Step("node2", slots=2, cores_per_task=2, cores=4)
    >>> srun_command(step, "python3", "T_engine.pyz", ["join"])[:9]
    ['srun', '-N', '1', '-n', '2', '-c', '2', '-w', 'node2']
    """
    cores = 1 if step.is_overcommitted else step.cores_per_task
    command = [
        "srun", "-N", "1", "-n", str(step.slots), "-c", str(cores), "-w", step.node,
        "--overlap", "--export=ALL", "--input=none", "--mem=0", "--kill-on-bad-exit=0",
        "--wait=0",
    ]
    if step.is_overcommitted:
        command.append("--overcommit")
    if step.gpus is not None:
        command.append(f"--gpus={step.gpus}")
    if step.het_group is not None:
        command.append(f"--het-group={step.het_group}")
    return [*command, python, "-I", engine_file, *arguments]


NOT_FOR_SRUN = (
    "SLURM_CPUS_PER_GPU",
    "SLURM_DISTRIBUTION",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_EXPORT_ENV",
    "SLURM_GPUS",
    "SLURM_HOSTFILE",
    "SLURM_IMMEDIATE",
    "SLURM_KILL_BAD_EXIT",
    "SLURM_LABELIO",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_MULTI_PROG",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_NTASKS_PER_TRES",
    "SLURM_OPEN_MODE",
    "SLURM_OVERCOMMIT",
    "SLURM_REMOTE_CWD",
    "SLURM_SPREAD_JOB",
    "SLURM_STDERRMODE",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_THREADS",
    "SLURM_TIMELIMIT",
    "SLURM_UNBUFFEREDIO",
    "SLURM_USE_MIN_NODES",
    "SLURM_WAIT",
    "SLURM_WORKING_DIR",
    "SRUN_CPUS_PER_TASK",
    "SRUN_EXPORT_ENV",
)
"""Variables that would change where the step's processes run, how many there are, or what
their streams are."""


def srun_environment(
    caller: Mapping[bytes, bytes], options: Iterable[bytes] = ()
) -> dict[bytes, bytes]:
    """The environment that srun is called with.

    Args:
        caller: Whose environment the tasks are to have.
        options: Lines of the user's options file, ``NAME=VALUE``; they come last.

    The binding of CPUs is the user's where he chose one; inside a step it is what srun
    made of that step, and says nothing about ours.
    """
    taken = {name.encode() for name in NOT_FOR_SRUN}
    environment = {name: value for name, value in caller.items() if name not in taken}
    if b"SLURM_STEP_ID" in environment:
        for name in [each for each in environment if each.startswith(b"SLURM_CPU_BIND")]:
            del environment[name]
    environment.setdefault(b"SLURM_CPU_BIND", b"cores")
    environment[b"SLURM_MPI_TYPE"] = b"none"
    for line in options:
        name, equals, value = line.strip().partition(b"=")
        if equals and name and not name.startswith(b"#"):
            environment[name] = value
    return environment


NOT_FOR_TASKS = (
    "PMI*", "PMIX*", "SLURM_STEP_*", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID",
    "SLURM_NODEID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_CPU_BIND*", "SLURM_MPI_TYPE",
)
"""What our step puts into the environment and would make an MPI program in a task think that
it had been started by it. ``*`` at the end stands for any ending."""


def told_to_tasks(node: str, slots: int, cores_per_task: int) -> list[bytes]:
    """``NAME=VALUE`` by which an mpirun in a task starts on the task's own node.

    In a step on one node SLURM_TASKS_PER_NODE is the step's and SLURM_NODELIST the job's:
    Open MPI 4.1 takes the two together and finds no room ("not enough slots").

    >>> told_to_tasks("node2", slots=1, cores_per_task=4)
    [b'SLURM_NODELIST=node2', b'SLURM_TASKS_PER_NODE=4']
    """
    return [
        b"SLURM_NODELIST=" + node.encode(),
        b"SLURM_TASKS_PER_NODE=%d" % max(slots, cores_per_task),
    ]


def given_back_to_tasks(caller: Mapping[bytes, bytes]) -> list[bytes]:
    """``NAME=VALUE`` of what the user himself had set among ``NOT_FOR_TASKS``, for his tasks.

    The binding and the kind of MPI that we choose are for our step alone.
    """
    if b"SLURM_STEP_ID" in caller:
        return []
    return [
        name + b"=" + value for name, value in caller.items()
        if name.startswith(b"SLURM_CPU_BIND") or name == b"SLURM_MPI_TYPE"
    ]
