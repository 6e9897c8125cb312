"""An allocation of Slurm: one step a node, whose first process is also the engine.

srun only starts. Who it starts finds the run by its join file, and says by the name of the
step (``--launch``) which of the awaited ones it is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

from overnight.contexts.endwatch import EndWatch
from overnight.contexts.giveback import GiveBack
from overnight.contexts.local import callers_environment
from overnight.contexts.slurmengine import SlurmEngine
from overnight.core.allocate import NodeShare, slurm_steps
from overnight.core.giveback import Gone
from overnight.errors import NoResources
from overnight.formats import slurmclient as client
from overnight.formats.hostlist import expand_nodelist
from overnight.formats.slurm import job_id, read_jobs
from overnight.formats.srun import (
    NOT_FOR_TASKS,
    OPTIONS_FILE_VARIABLE,
    given_back_to_tasks,
    srun_command,
    srun_environment,
    told_to_tasks,
)
from overnight.guard.slurmcalls import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from overnight.contexts.settings import Settings
    from overnight.model.allocation import SlurmJob, Step
    from overnight.model.messages import Setup
    from overnight.model.options import RunOptions
    from overnight.ports import EngineHandle, Post

END_WITHIN_S = 20.0
"""How long a step that was told to end is waited for before its srun is left to itself."""

LOOK_S = 0.1


def plan_slurm(
    options: RunOptions, environment: Mapping[str, str], divided: Sequence[str]
) -> PlannedSlurm:
    """What an allocation gives a run.

    Args:
        options: Of the run.
        environment: In which Slurm describes the allocation.
        divided: Variables that are divided among the slots of a node.

    Raises:
        NoResources: The allocation cannot be read, or has no slot for a task.
        UsageError: ``-c`` or ``-t`` is out of range.
    """
    try:
        jobs = read_jobs(environment, _expand)
    except ValueError as error:
        raise NoResources(
            f"this allocation of Slurm cannot be read: {error}", kept="nothing was started",
            do="start inside the allocation, with the variables that Slurm set;"
               " or name hosts: -s HOST:COUNT",
        ) from error
    steps, notes = slurm_steps(
        jobs, options.cpus_per_task, options.tasks_per_node, options.fill
    )
    if not steps:
        raise NoResources(
            "no node of this allocation has enough cores for one task",
            kept="nothing was started", do="lower -c, or ask Slurm for more (--cpus-per-task)",
        )
    left_out = sum(len(job.nodes) for job in jobs) - len(steps)
    if left_out:
        notes.append(f"{left_out} nodes of the allocation have no slot, and stay unused")
    if find_spec("cryptography") is None:
        raise NoResources(
            "engines on the nodes of an allocation call this run over TLS, and the Python package"
            " cryptography is not installed", kept="nothing was started",
            do="install overnight with pip or uv, which bring it; or use this node alone:"
               " -s localhost:COUNT",
        )
    label = options.label or f"J{job_id(environment)}"
    return PlannedSlurm(label, jobs, steps, environment, divided, notes)


def _expand(text: str) -> list[str]:
    """Names in a node list; Slurm itself is asked for one that only it understands."""
    try:
        return expand_nodelist(text)
    except ValueError:
        answer = ask(["scontrol", "show", "hostnames", text])
        if answer.code != 0 or not answer.text.split():
            raise
        return answer.text.split()


class PlannedSlurm:
    """An allocation a run could use.

    Attributes:
        label: Of the context.
        nodes: What each node gives, at least one slot.
        notes: What the user should know about the choice.
        jobs: The allocation, or each of its components.
        steps: One for each node.
        divided: Variables that are divided among the slots of a node, there.
        driver_node: The node of the allocation on which the driver runs, if it is on one.
    """

    def __init__(
        self, label: str, jobs: Sequence[SlurmJob], steps: Sequence[Step],
        environment: Mapping[str, str], divided: Sequence[str], notes: Sequence[str],
    ) -> None:
        self.label = label
        self.jobs = jobs
        self.steps = steps
        self.divided = divided
        self.notes = notes
        self.nodes: Sequence[NodeShare] = [
            NodeShare(step.node, step.slots, step.cores_per_task) for step in steps
        ]
        here = environment.get("SLURMD_NODENAME")
        self.driver_node = here if any(here in job.nodes for job in jobs) else None
        self._asks_for_gpus_by_sum = "SLURM_GPUS" in environment

    def make(self, settings: Settings) -> SlurmContext:
        """The context, for a run that has its files now."""
        return SlurmContext(self, settings)

    def count_gpus(self) -> None:
        """A job that asked for GPUs by their sum has a number of its own on each node."""
        if not self._asks_for_gpus_by_sum:
            return
        for job in self.jobs:
            counts = client.gpus_by_node(ask(client.job_command(job.id)).text)
            for step in self.steps:
                if step.job == job.id and counts.get(step.node):
                    step.gpus = counts[step.node]


class SlurmContext:
    """The engines of an allocation."""

    def __init__(self, planned: PlannedSlurm, settings: Settings) -> None:
        self.label = planned.label
        self.nodes: Sequence[NodeShare] = planned.nodes
        options = settings.options
        self.gives_back = not options.no_retire and options.retire_cmd != ""
        self._planned = planned
        self._settings = settings
        self._gone: set[str] = set()  # nodes that nothing is left for
        self._watch: EndWatch | None = None
        self._giver: GiveBack | None = None

    # ---- starting

    def start(self, next_rank: Callable[[], int], busy: Set[str]) -> Sequence[EngineHandle]:
        """Start a step on every node that has no engine.

        Raises:
            NoResources: srun cannot be called.
        """
        self._planned.count_gpus()
        started: list[SlurmEngine] = []
        for step in self._planned.steps:
            if step.node not in busy:
                try:
                    started.append(self._start(step, next_rank()))
                except NoResources:
                    if not started:
                        raise
                    break  # those that were started are on their way, and are not let alone
        self._gone.difference_update([engine.node for engine in started])
        return started

    def _start(self, step: Step, rank: int) -> SlurmEngine:
        share = NodeShare(step.node, step.slots, step.cores_per_task)
        setup = self._setup(share, rank)
        files = self._settings.files
        launch = os.urandom(16).hex()
        process = start_step(
            step, files.engine_file, ["join", files.join, "--launch", launch],
            files.context_log(self.label),
        )
        return SlurmEngine(process, step, setup, launch, self.label, files.engine_file)

    def _setup(
        self, share: NodeShare, rank: int, attach: str | None = None,
        spools: Sequence[str] | None = None,
    ) -> Setup:
        setup = self._settings.setup(rank, share, (), attach, spools)
        setup.divided = list(self._planned.divided)
        if not self._settings.options.keep_slurm_env:
            setup.removes = list(NOT_FOR_TASKS)
            setup.variables += given_back_to_tasks(callers_environment())
            setup.variables += told_to_tasks(share.node, share.slots, share.cores_per_task)
        return setup

    def setup_again(self, share: NodeShare, rank: int, attach: str, spools: Sequence[str]) -> Setup:
        """Settings for an engine on that node which an earlier driver has started."""
        return self._setup(share, rank, attach, spools)

    # ---- its end, and giving nodes back

    def watch(self, post: Post, tell: Callable[[str, str], None]) -> None:
        """From now on the driver is told when the allocation is about to end."""
        options = self._settings.options
        go_on = f"overnight resume {shlex.quote(self._settings.files.prefix)}"
        self._watch = EndWatch([job.id for job in self._planned.jobs], self.label,
                               options.grace, go_on, post)
        if self.gives_back:
            self._giver = GiveBack(
                {job.id: job.nodes for job in self._planned.jobs}, self._planned.driver_node,
                options.retire_cmd, tell, self._watch.ask_now,
            )

    def close(self) -> None:
        """The run is over."""
        if self._watch is not None:
            self._watch.close()
        if self._giver is not None:
            self._giver.close()

    @property
    def driver_node(self) -> str | None:
        """Where the driver runs, if that is one of the nodes: it is never given back."""
        return self._planned.driver_node

    def give_back(self, engine: EngineHandle) -> None:
        """The engine is leaving, and nothing is left for its node."""
        if self._giver is not None and isinstance(engine, SlurmEngine):
            threading.Thread(target=self._give_back, args=(engine, self._giver), daemon=True,
                             name="overnight leaving").start()

    def _give_back(self, engine: SlurmEngine, giver: GiveBack) -> None:
        """In a thread: once its step has ended."""
        give_up_at = time.monotonic() + END_WITHIN_S
        while not engine.is_gone():
            if time.monotonic() >= give_up_at:
                return  # it is not as idle as it was thought to be
            time.sleep(LOOK_S)
        self._gone.add(engine.node)
        # An engine that an earlier driver started here is not among ours: its node stays too.
        active = [share.node for share in self.nodes if share.node not in self._gone]
        giver.node(Gone(engine.node, engine.code or 0, active))


def start_step(
    step: Step, engine_file: str, arguments: Sequence[str], log_path: str
) -> subprocess.Popen[bytes]:
    """Call srun for a step; it ends when all processes of that have.

    Raises:
        NoResources: It cannot be called.
    """
    command = srun_command(step, sys.executable, engine_file, arguments)
    environment = srun_environment(callers_environment(), _options_file())
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(log, f"{time.strftime('%F %T')} {shlex.join(command)}\n".encode())
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            start_new_session=True,  # a Ctrl-C is the driver's to act on
        )
    except OSError as error:
        raise NoResources(
            f"srun cannot be called: {error.strerror}", where=step.node,
            do="load Slurm's programs, or name hosts: -s HOST:COUNT",
        ) from error
    finally:
        os.close(log)


def _options_file() -> list[bytes]:
    path = os.environ.get(OPTIONS_FILE_VARIABLE)
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            return file.read().splitlines()
    except OSError as error:
        raise NoResources(
            f"{OPTIONS_FILE_VARIABLE} cannot be read: {error.strerror}", where=path,
            kept="nothing was started",
        ) from error
