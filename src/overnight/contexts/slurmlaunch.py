"""Adding an allocation to a run that goes on elsewhere, from inside that allocation.

The launcher starts the same steps as a run in an allocation does. Their engines call the
run by its join file and say what the driver would have said of its own: slots, label, what
is divided. The launcher stays until they have ended, gives nodes back as they run dry, and
asks the driver to let them go when the allocation is about to end.
"""

from __future__ import annotations

import os
import time

from overnight.contexts.endwatch import EndWatch
from overnight.contexts.giveback import GiveBack
from overnight.contexts.local import callers_environment
from overnight.contexts.slurm import start_step
from overnight.core.giveback import Gone
from overnight.formats.srun import NOT_FOR_TASKS, given_back_to_tasks, told_to_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from overnight.contexts.slurm import PlannedSlurm
    from overnight.model.allocation import Step
    from overnight.model.options import RunOptions
    from overnight.model.run import RunFiles

LOOK_S = 0.2


def launch(
    planned: PlannedSlurm, files: RunFiles, options: RunOptions,
    drain: Callable[[str], None], tell: Callable[[str, str], None],
) -> int:
    """Start an engine on each node, and stay until they have ended.

    Args:
        planned: The allocation this process is in.
        files: Of the run.
        options: Of the context.
        drain: Asks the driver to let the engines of a context take nothing more.
        tell: Takes level and text for a person.

    Returns:
        0 when an engine has ended in order, 1 when none has.

    Raises:
        NoResources: srun cannot be called.
    """
    planned.count_gpus()
    gives_back = not options.no_retire and options.retire_cmd != ""
    running = {}
    for step in planned.steps:
        arguments = ["join", files.join, *_arguments(planned, step, options, gives_back)]
        running[step.node] = start_step(
            step, files.engine_file, arguments, files.context_log(planned.label)
        )
    return _mind(planned, running, options, gives_back, drain, tell)


def _arguments(
    planned: PlannedSlurm, step: Step, options: RunOptions, gives_back: bool
) -> list[str]:
    variables = told_to_tasks(step.node, step.slots, step.cores_per_task)
    variables += given_back_to_tasks(callers_environment())
    keeps = options.keep_slurm_env
    return [
        "--launch", os.urandom(16).hex(), "--label", planned.label, "--node", step.node,
        "--slots", str(step.slots), "--cores-per-task", str(step.cores_per_task),
        "--task-limit", str(options.context_task_limit),
        "--lends", "yes" if gives_back else "no",
        *(["--divide", ",".join(planned.divided)] if planned.divided else []),
        *([] if keeps else ["--without", ",".join(NOT_FOR_TASKS)]),
        *([] if keeps else [word for each in variables for word in ("--set", os.fsdecode(each))]),
    ]


def _mind(
    planned: PlannedSlurm, running: dict[str, subprocess.Popen[bytes]], options: RunOptions,
    gives_back: bool, drain: Callable[[str], None], tell: Callable[[str, str], None],
) -> int:
    watch = EndWatch(
        [job.id for job in planned.jobs], planned.label, options.grace, "",
        lambda event: drain(planned.label),
    )
    giver = GiveBack(
        {job.id: job.nodes for job in planned.jobs}, planned.driver_node, options.retire_cmd,
        tell, watch.ask_now,
    )
    has_worked = False
    while running:
        for node, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[node]
            has_worked = has_worked or process.returncode == 0
            if running and gives_back and process.returncode == 0:
                giver.node(Gone(node, process.returncode, list(running)))
        time.sleep(LOOK_S)
    watch.close()
    giver.close()
    return 0 if has_worked else 1
