"""What ``<prefix>_dbUtil.sh`` does: add a context to its run, be an engine of it, watch it."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from overnight.cli.arguments import cores, count, positive
from overnight.cli.join import become_engine
from overnight.contexts.choose import choose_contexts, names_slurm
from overnight.driver.describe import read_description
from overnight.driver.lock import is_gone, read_owner
from overnight.errors import NoResources, OvernightError, UsageError
from overnight.model.options import RunOptions
from overnight.model.run import RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.contexts.choose import PlannedContext
    from overnight.contexts.slurm import PlannedSlurm

RUN_DONE = "Run done, context not registering."
NO_MONITOR = "Cannot contact the disBatch server. This usally means the run has ended."
"""disBatch's own words, its spelling included: scripts look for them."""

PROGRAM = "dbUtil.sh"


def main(arguments: Sequence[str]) -> int:
    """Do what the script was called for.

    Args:
        arguments: Prefix of the run, and what the script was given.

    Returns:
        0 when the context that was added has ended in order; else 1, or 2 for arguments
        that are not understood.
    """
    files = RunFiles(arguments[0])
    given = list(arguments[1:])
    try:
        return _do(files, given)
    except OvernightError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130


def _do(files: RunFiles, given: list[str]) -> int:
    if "--mon" in given:
        print("The monitor is not there yet." if _is_live(files) else NO_MONITOR,
              file=sys.stderr)
        return 1
    is_engine = "--engine" in given
    parsed = _parser().parse_args([one for one in given if one != "--engine"])
    if not _is_live(files):
        print(RUN_DONE, file=sys.stderr)
        return 1
    if is_engine:
        become_engine(files, [] if parsed.label is None else [f"--label={parsed.label}"])
    return _add(files, _options(files, parsed), parsed)


def _is_live(files: RunFiles) -> bool:
    """Whether a driver owns the run, as far as this host can tell."""
    owner = read_owner(files.lock)
    return owner is not None and not is_gone(owner)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Add a context to this run; it stays until its engines have"
                                  " ended. --engine makes this machine one engine of it, --mon"
                                  " watches the run.",
    )
    parser.add_argument("-s", "--ssh-node", action="append", default=[], metavar="HOST:COUNT",
                        help="slots on a host; localhost is this machine; commas allowed")
    parser.add_argument("-c", "--cpusPerTask", type=cores, metavar="X",
                        help="cores a task uses (default: as the run has it)")
    parser.add_argument("-t", "--tasksPerNode", type=positive, metavar="N",
                        help="most tasks at once per node (default: as the run has it)")
    parser.add_argument("-E", "--env-resource", action="append", default=[], metavar="VAR",
                        help="divide the values of VAR among the slots (default: as the run)")
    parser.add_argument("-C", "--context-task-limit", type=count, default=0, metavar="N",
                        help="the context leaves after N tasks (0: no limit)")
    parser.add_argument("-g", "--gpu", action="store_true",
                        help="divide CUDA_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL")
    parser.add_argument("-l", "--label", metavar="NAME", help="label of the context")
    parser.add_argument("--fill", action="store_true", help="use extra cores of an allocation")
    parser.add_argument("-K", "--no-retire", action="store_true", help="give no node back")
    parser.add_argument("-k", "--retire-cmd", metavar="COMMAND",
                        help="command that gives a node back")
    return parser


def _options(files: RunFiles, parsed: argparse.Namespace) -> RunOptions:
    """Options of the context: the run's own count where none were given."""
    description = read_description(files)
    of_run = description.options if description is not None else RunOptions()
    return RunOptions(
        ssh_node=tuple(parsed.ssh_node), label=parsed.label, fill=parsed.fill, is_compatible=True,
        cpus_per_task=parsed.cpusPerTask or of_run.cpus_per_task,
        tasks_per_node=parsed.tasksPerNode or of_run.tasks_per_node,
        env_resource=tuple(parsed.env_resource) or of_run.env_resource,
        gpu=parsed.gpu or of_run.gpu,
        no_retire=parsed.no_retire, retire_cmd=parsed.retire_cmd,
        context_task_limit=parsed.context_task_limit, grace=of_run.grace,
        keep_slurm_env=of_run.keep_slurm_env,
    )


def _launch(planned: PlannedSlurm, files: RunFiles, options: RunOptions) -> int:
    """Add the allocation that this script was submitted to."""
    from overnight.cli.ask import ask
    from overnight.contexts.slurmlaunch import launch

    def drain(label: str) -> None:
        tell("warning", f"the allocation of {label} is about to end: it takes no more tasks")
        try:
            ask(files, {"verb": "drain", "targets": [label]})
        except OvernightError as error:
            tell("warning", str(error))

    def tell(level: str, text: str) -> None:
        print(f"{PROGRAM}: {text}", file=sys.stderr)

    # Slurm's warning is for the engines, which have it too: this script ends when they have.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    return launch(planned, files, options, drain, tell)


def _add(files: RunFiles, options: RunOptions, parsed: argparse.Namespace) -> int:
    """Become the engine of this machine; what is elsewhere is not this script's to start."""
    if parsed.ssh_node and parsed.retire_cmd is not None:
        raise UsageError("--retire-cmd gives Slurm nodes back: it does not go with -s")
    here = os.uname().nodename
    for context in choose_contexts(options, os.environ):
        for note in context.notes:
            print(f"{PROGRAM}: {note}", file=sys.stderr)
        if names_slurm(options, os.environ):
            return _launch(context, files, options)  # type: ignore[arg-type]  # it is one
        shares = [share for share in context.nodes if share.node == here]
        if not shares:
            raise NoResources(
                "none of these hosts is this machine", kept="nothing was started",
                do="call the script there",
            )
        become_engine(files, _joining(context, options, parsed.context_task_limit))
    return 1


def _joining(context: PlannedContext, options: RunOptions, task_limit: int) -> list[str]:
    here = os.uname().nodename
    share = next(share for share in context.nodes if share.node == here)
    values: Sequence[dict[str, str]] = getattr(context, "own_values", ())
    names = list(values[0]) if values else []
    return [
        *([f"--label={options.label}"] if options.label else []),
        f"--slots={share.slots}", f"--cores-per-task={share.cores_per_task}",
        f"--task-limit={task_limit}",
        *(f"--share={name}={','.join(each[name] for each in values)}" for name in names),
    ]
