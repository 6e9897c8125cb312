"""A list through HyperQueue's Python package: server, worker and client in one process.

    hyperqueue_list.py SLOTS LIST

The package carries the real server and worker but no ``hq`` program, so this is how it
can be had from PyPI. A task is one ``bash -c LINE``, without output files.
"""

from __future__ import annotations

import os
import sys

from hyperqueue import (  # type: ignore[import-not-found]  # only in its own environment
    Job,
    LocalCluster,
)
from hyperqueue.cluster import (  # type: ignore[import-not-found]  # as above
    WorkerConfig,
)


def described(list_file: str) -> Job:
    """One HyperQueue job with a task for each line."""
    whole = Job(default_workdir=os.getcwd(), max_fails=None)
    with open(list_file) as lines:
        for line in lines:
            whole.program(["/bin/bash", "-c", line.rstrip("\n")], stdout=None, stderr=None)
    return whole


def main(slots: int, list_file: str) -> int:
    """Run the list; 1 when a line failed."""
    with LocalCluster(worker_config=WorkerConfig(cores=slots)) as cluster:
        client = cluster.client()
        submitted = client.submit(described(list_file))
        return 0 if client.wait_for_jobs([submitted], raise_on_error=False) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
