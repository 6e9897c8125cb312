"""The driver alone: its real loop, scheduler, source and record, and engines that do no work.

    python null_driver.py LIST PREFIX ENGINES SLOTS PROCESSES

Writes JSON into the file ``said``: CPU and wall seconds of the run, without the start of the
interpreter, and the most memory the process has had.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence, Set
from pathlib import Path

from overnight.cli.run import GARBAGE_THRESHOLD
from overnight.core.allocate import NodeShare
from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.driver.loop import Driver
from overnight.driver.record import Record
from overnight.model.messages import Setup
from overnight.model.run import RunFiles
from overnight.observers.log import LogObserver
from overnight.observers.runlog import RunLog
from overnight.sources.listfile import ListFile

ENGINES = Path(__file__).with_name("null_engines.py")


class NullHandle:
    """One of the engines; its process serves others too, and ends with the last link."""

    def __init__(self, fd: int, setup: Setup) -> None:
        self.read_fd = self.write_fd = fd
        self.node = f"null{setup.rank}"
        self.setup = setup

    def is_gone(self) -> bool:
        return True

    def end(self) -> None:
        """It ends when its link is closed."""

    def reports_left(self) -> Sequence[object]:
        return ()

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        return ()


class NullContext:
    """So many engines, in so many processes."""

    label = "null"
    nodes: Sequence[NodeShare] = ()

    def __init__(self, files: RunFiles, engines: int, slots: int, processes: int) -> None:
        self._files = files
        self._engines = engines
        self._slots = slots
        self._processes = processes

    def start(self, next_rank: Callable[[], int], busy: Set[str]) -> Sequence[NullHandle]:
        pairs = [socket.socketpair() for _ in range(self._engines)]
        for first in range(self._processes):
            fds = [theirs.fileno() for _, theirs in pairs[first :: self._processes]]
            if fds:
                subprocess.Popen([sys.executable, str(ENGINES), *map(str, fds)], pass_fds=fds)
        handles = []
        for ours, theirs in pairs:
            theirs.close()
            handles.append(NullHandle(ours.detach(), self._setup(next_rank())))
        return handles

    def _setup(self, rank: int) -> Setup:
        return Setup(self._files.run_id, "Tasks", 1, rank, self._slots, 1, "/", [], False, 5.0,
                     True, None, 2.0, None, [], "", 0.0)


def main() -> None:
    """Run the list."""
    tasks, prefix = sys.argv[1:3]
    engines, slots, processes = map(int, sys.argv[3:6])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files = RunFiles(os.path.realpath(prefix))
    source = ListFile(tasks, is_lenient=False, warn=print)
    driver: Driver

    record = Record(files, "null", lambda flushed: driver.post(flushed))
    context = NullContext(files, engines, slots, processes)
    driver = Driver(Scheduler(Policy()), source, record, [context],
                    [LogObserver(RunLog(files.driver_log))])
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)  # as the command does
    began_cpu_s, began = time.process_time(), time.monotonic()
    verdict = driver.run()
    Path("said").write_text(json.dumps({
        "ending": verdict.ending,
        "cpu_s": time.process_time() - began_cpu_s,
        "wall_s": time.monotonic() - began,
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))


if __name__ == "__main__":
    main()
