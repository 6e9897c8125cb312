"""``sweep``: end what a gone engine has left on this node, and say what cannot be ended.

Started by a driver that cannot look itself, where a manager has said that the engine's own
processes have ended. A manager that follows processes by their parents loses those whose
parent was killed.
"""

from __future__ import annotations

import sys

from overnight.guard.leftovers import SOMETHING_LEFT, GoneEngine, end_leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """End what is left.

    Args:
        arguments: Run, rank, process number and start time of the engine, seconds between
            the signals, ids of tasks that may leave processes (with commas, may be empty),
            and the run's folder under each of its names.
    """
    run, rank, pid, start, kill_after_s, released, *folders = arguments
    spared = {int(id) for id in released.split(",") if id}
    left = end_leftovers(
        GoneEngine(run, int(rank), int(pid), int(start), folders), float(kill_after_s),
        lambda task_id, started_at: task_id in spared,
    )
    if not left:
        return 0
    sys.stdout.write(" ".join(str(process.pid) for process in left) + "\n")
    return SOMETHING_LEFT
