"""``overnight join``: be an engine of a run that goes on elsewhere."""

from __future__ import annotations

import argparse
import os
import sys

from overnight.cli.arguments import count, positive
from overnight.errors import NoResources, UsageError
from overnight.model.run import RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

ENDINGS = ("_join", "_status.txt", "_dbUtil.sh", "_engine.pyz", "_run.json", "_lock")


def main(arguments: Sequence[str]) -> NoReturn:
    """Become an engine of the run; the process ends when that leaves.

    Raises:
        NoResources: The run has no engine file: it has ended.
    """
    parser = argparse.ArgumentParser(
        prog="overnight join",
        description="Be an engine of a run that listens, on this machine, until the run ends."
                    " Whatever starts it - mpirun, flux, a batch script - may end it.",
    )
    parser.add_argument("run", metavar="RUN",
                        help="prefix of the run, or one of its files, in a shared folder")
    parser.add_argument("-n", "-j", "--jobs", type=positive, metavar="N",
                        help="tasks at once (default: the cores this process may use)")
    parser.add_argument("-s", "--ssh-node", metavar="localhost:N",
                        help="the same, as disBatch writes it")
    parser.add_argument("-l", "--label", default="", metavar="NAME",
                        help="context that the engine belongs to (default: one of its own)")
    parser.add_argument("-C", "--context-task-limit", type=count, default=0, metavar="N",
                        help="the context leaves after N tasks (0: no limit)")
    parser.add_argument("--node", default="", metavar="NAME",
                        help="how rows name this machine (default: its own name)")
    parsed = parser.parse_args(arguments)
    files = files_of(parsed.run)
    slots = parsed.jobs if parsed.ssh_node is None else _slots_here(parsed.ssh_node)
    if "/" in parsed.label:
        raise UsageError(f"a label names files: {parsed.label!r} must not hold a slash")
    options = [f"--label={parsed.label}", f"--task-limit={parsed.context_task_limit}"]
    if slots is not None:
        options.append(f"--slots={slots}")
    if parsed.node:
        options.append(f"--node={parsed.node}")
    become_engine(files, options)


def files_of(name: str) -> RunFiles:
    """The files of a run that goes on, by its prefix or one of them."""
    path = os.path.abspath(name)
    for ending in ENDINGS:
        if path.endswith(ending):
            return RunFiles(path[: -len(ending)])
    return RunFiles(path)


def become_engine(files: RunFiles, options: Sequence[str]) -> NoReturn:
    """Put the run's own engine file in the place of this process.

    Raises:
        NoResources: It is not there: the run has ended, or this is no run.
    """
    if not os.path.exists(files.engine_file):
        raise NoResources(
            "nobody can join: the run has ended, or its folder is not shared with this machine",
            where=files.engine_file, kept="nothing was started",
        )
    sys.stdout.flush()
    os.execv(sys.executable, [
        sys.executable, "-I", files.engine_file, "join", files.join, *options,
    ])


def _slots_here(text: str) -> int:
    host, colon, number = text.rpartition(":")
    if not colon or not number.isdigit() or int(number) < 1 \
            or host.split(".")[0] not in ("localhost", os.uname().nodename.split(".")[0]):
        raise UsageError(f"-s {text}: an engine joins where it is started: -s localhost:N")
    return int(number)
