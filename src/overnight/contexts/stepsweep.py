"""Proof on the node itself that a step has left nothing, where Slurm's word is not enough.

That a step has ended proves that its own processes have. What its tasks had started is ended
with it only where Slurm keeps them together in a cgroup (proctrack/cgroup): with
proctrack/linuxproc a task whose runner was killed goes on, as a child of nobody.
"""

from __future__ import annotations

import os
import sys

from overnight.guard.leftovers import SOMETHING_LEFT
from overnight.guard.slurmcalls import ask
from overnight.guard.slurmproof import is_without_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from overnight.contexts.noted import NotedEngine

SWEEP_S = 90.0
UNKNOWN = 0
"""In the place of a process number: nobody could look."""


def sweep(
    noted: NotedEngine, engine_file: str, kill_after_s: float, released: Iterable[int]
) -> Sequence[int]:
    """End what an engine has left on the node of its step, which has ended.

    Args:
        noted: The engine.
        engine_file: Of its run.
        kill_after_s: Between the signals.
        released: Ids of tasks that may leave processes.

    Returns:
        Numbers of processes there that cannot be ended, or ``UNKNOWN``; none: proved. A
        node that Slurm has given up, or whose job has ended, is not looked at: that is
        proof, and nobody could.
    """
    job = noted.step.partition(".")[0]
    if is_without_node(job, noted.node):
        return ()
    answer = ask(
        [
            "srun", f"--jobid={job}", "-N", "1", "-n", "1", "-w", noted.node, "--overlap",
            "--export=ALL", "--input=none", "--mem=0", "--quiet", sys.executable, "-I", engine_file,
            "sweep", noted.run, str(noted.rank), str(noted.pid), str(noted.start),
            f"{kill_after_s:g}", ",".join(map(str, released)), *noted.folders,
        ],
        SWEEP_S, without=tuple(name for name in os.environ if _is_of_job(name)),
    )
    if answer.code == 0 or is_without_node(job, noted.node):
        return ()
    words = answer.text.split()
    if answer.code == SOMETHING_LEFT and words and all(word.isdigit() for word in words):
        return [int(word) for word in words]
    return (UNKNOWN,)


def _is_of_job(name: str) -> bool:
    """Whether a variable describes the job that this process is in, which may be another."""
    return name.startswith(("SLURM_", "SRUN_", "SLURMD_")) and name != "SLURM_CONF"
