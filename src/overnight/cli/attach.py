"""``overnight attach``: show a run that goes on elsewhere, from its files."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from overnight.cli.resume import find_run
from overnight.core.summary import rerun_command
from overnight.driver.describe import read_description
from overnight.driver.lock import is_gone, read_owner
from overnight.formats.statusfile import parse_row
from overnight.model.progress import Progress
from overnight.watch.screen import open_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.model.run import RunFiles

LOOK_EVERY_S = 0.5
BLOCK = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Follow a run to its end, or until Ctrl-C; the run does not notice either way.

    Returns:
        0 when no task has failed, 1 when one has, 130 when the watcher left first.
    """
    parser = argparse.ArgumentParser(
        prog="overnight attach", description="Show a run that goes on elsewhere.",
    )
    parser.add_argument("run", nargs="?", metavar="RUN",
                        help="prefix of the run (default: the last run in this folder)")
    files = find_run(parser.parse_args(arguments).run)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    follower = Follower(files)
    screen = open_screen(sys.stderr)
    try:
        while follower.is_live():
            follower.read_on()
            screen.show(follower.progress())
            time.sleep(LOOK_EVERY_S)
        follower.read_on()
    finally:
        screen.close()
    print(f"The run has ended: {follower.done} done, {follower.failed} failed,"
          f" {follower.skipped} done before.")
    if follower.failed:
        print(f"Run the failed ones again:\n  {rerun_command(files.status)}")
    return 1 if follower.failed else 0


class Follower:
    """Reads a status file as it grows.

    Attributes:
        done: Tasks that ended well in this run.
        failed: Tasks that ended otherwise.
        skipped: Tasks that an earlier run had done.
    """

    def __init__(self, files: RunFiles) -> None:
        self.done = self.failed = self.skipped = 0
        self._barriers = 0
        self._last_failure = ""
        self._files = files
        self._status = open(files.status, "rb", buffering=0)  # noqa: SIM115  # until exit
        self._unfinished = b""
        description = read_description(files)
        self._total = description.total if description else None
        self._started_at = description.started_at if description else time.time()

    def is_live(self) -> bool:
        """Whether a driver owns the run, as far as this host can tell."""
        owner = read_owner(self._files.lock)
        return owner is not None and not is_gone(owner)

    def read_on(self) -> None:
        """Count the rows that have been added."""
        while block := self._status.read(BLOCK):
            *lines, self._unfinished = (self._unfinished + block).split(b"\n")
            for line in lines:
                self._count(line)

    def _count(self, line: bytes) -> None:
        row = parse_row(line)
        if row is None or row.kind == "P":
            return
        if row.kind in "BC":
            self._barriers += 1
        elif row.kind == "S":
            self.skipped += 1
        elif row.code == 0:
            self.done += 1
        else:
            self.failed += 1
            self._last_failure = f"task {row.id} (line {row.line}): exit code {row.code}"

    def progress(self) -> Progress:
        """How far the run is."""
        now = time.time()
        ended = self.done + self.failed
        rate = ended / max(now - self._started_at, 0.001)
        total = None if self._total is None else self._total - self._barriers
        return Progress(total, self.done, self.failed, self.skipped, 0, self._started_at, now,
                        rate, 0, None, self._last_failure)
