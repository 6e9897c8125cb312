"""``overnight attach``: show a run that goes on elsewhere, from its files."""

from __future__ import annotations

import signal
import sys
import time

from overnight.cli.ending import WORDS
from overnight.cli.exit_status import FAILED, OK, TASKS_LEFT
from overnight.cli.go_on import GoOn, advice
from overnight.cli.parser import Parser
from overnight.cli.resume import find_run
from overnight.cli.warnings_in_log import WarningsInLog
from overnight.core.summary import left_words
from overnight.core.summary.rerun import shell_word
from overnight.core.verdict import COMPLETE
from overnight.driver.describe import read_description
from overnight.driver.lock import is_gone, read_owner
from overnight.formats.statusfile import parse_row
from overnight.model.progress import Progress
from overnight.watch.screen import open_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.driver.describe import Description
    from overnight.formats.statusfile import OldRow
    from overnight.model.run import RunFiles

LOOK_EVERY_S = 0.5
WATCHER_LEFT = 130
BLOCK = 1 << 20

# Fates of a task, each outranking those before it, as for a resume.
NONE, CUT_OFF, FAILED_BEFORE, FAILED_NOW, DONE_BEFORE, DONE, BARRIER = range(7)
FATE_WORDS = {
    DONE: "done", FAILED_NOW: "failed", DONE_BEFORE: "done before",
    FAILED_BEFORE: "failed before",
}


def main(arguments: Sequence[str]) -> int:
    """Follow a run to its end, or until Ctrl-C; the run does not notice either way.

    Returns:
        3 when tasks are left, else 1 when one has failed, else 0; 130 when the watcher left
        first.
    """
    parser = Parser(
        prog="overnight attach", description="Show a run that goes on elsewhere.",
    )
    parser.add_argument("run", nargs="?", metavar="RUN",
                        help="prefix of the run (default: the last run in this folder)")
    files = find_run(parser.parse_args(arguments).run)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    follower = Follower(files)
    log = WarningsInLog(files, read_description(files))
    screen = open_screen(sys.stderr)
    try:
        while is_live(files):
            follower.read_on()
            for warning in log.read_on():
                screen.say(warning)
            screen.show(follower.progress())
            time.sleep(LOOK_EVERY_S)
        follower.read_on()
    except KeyboardInterrupt:
        screen.close()
        print(f"\n{goes_on_text(files)}")
        return WATCHER_LEFT
    finally:
        screen.close()
    end = End(files, follower)
    log.read_on()
    print(end.text(list(log.warned.lines(log.path))))
    return end.status()


def goes_on_text(files: RunFiles) -> str:
    """That the end of the watching was not the end of the run, and how to look again."""
    return f"The run goes on. Look again:\n  overnight attach {shell_word(files.prefix)}"


def is_live(files: RunFiles) -> bool:
    """Whether a driver owns the run, as far as this host can tell."""
    owner = read_owner(files.lock)
    return owner is not None and not is_gone(owner)


class Follower:
    """Reads a status file as it grows: the fate of each task, in a byte each.

    Attributes:
        counts: Tasks, by fate.
    """

    def __init__(self, files: RunFiles) -> None:
        self.counts = [0] * (BARRIER + 1)
        self._fates = bytearray()
        self._last_failure = ""
        self._status = open(files.status, "rb", buffering=0)  # noqa: SIM115  # until exit
        self._unfinished = b""
        description = read_description(files)
        self._total = description.total if description else None
        self._started_at = description.started_at if description else time.time()

    def read_on(self) -> None:
        """Take in the rows that have been added."""
        while block := self._status.read(BLOCK):
            *lines, self._unfinished = (self._unfinished + block).split(b"\n")
            for line in lines:
                row = parse_row(line)
                if row is not None and row.kind != "P":
                    self._take(row)

    def _take(self, row: OldRow) -> None:
        fate = _fate(row)
        if fate == FAILED_NOW:
            self._last_failure = f"task {row.id} (line {row.line}): exit code {row.code}"
        if row.id >= len(self._fates):
            self._fates.extend(bytes(row.id + 1 - len(self._fates)))
        known = self._fates[row.id]
        if fate > known:
            self._fates[row.id] = fate
            self.counts[known] -= 1
            self.counts[fate] += 1

    @property
    def left(self) -> int | None:
        """Tasks without a fate that lasts, or None where the list's length is not known."""
        if self._total is None:
            return None
        return max(0, self._total - sum(self.counts[FAILED_BEFORE:BARRIER]))

    def progress(self) -> Progress:
        """How far the run is; its slots are the driver's own knowledge."""
        counts = self.counts
        now = time.time()
        done, failed = counts[DONE], counts[FAILED_NOW] + counts[CUT_OFF]
        rate = (done + failed) / max(now - self._started_at, 0.001)
        before = counts[DONE_BEFORE] + counts[FAILED_BEFORE]
        return Progress(self._total, done, failed, before, None, self._started_at,
                        now, rate, 0, None, self._last_failure)


def _fate(row: OldRow) -> int:
    if row.kind in "BC":
        return BARRIER
    if row.kind == "S":
        return FAILED_BEFORE if row.code else DONE_BEFORE
    if row.code == 0:
        return DONE
    return CUT_OFF if row.kind == "Z" else FAILED_NOW


class End:
    """What became of a run that no driver owns any more."""

    def __init__(self, files: RunFiles, follower: Follower) -> None:
        """Look at what its driver left.

        Raises:
            ResumeRefused: That cannot be understood.
        """
        self._files = files
        self._counts = follower.counts
        self._description: Description | None = read_description(files)
        self._was_killed = read_owner(files.lock) is not None
        # What an earlier driver said of its end does not hold for one that was killed.
        described = self._description
        self._ending = None if self._was_killed or described is None else described.ending
        self._left = follower.left

    @property
    def _has_failures(self) -> bool:
        return bool(self._counts[FAILED_NOW] or self._counts[FAILED_BEFORE])

    @property
    def _has_tasks_left(self) -> bool:
        """As its driver has said at its end, else as the rows tell."""
        if self._ending is not None and self._description is not None:
            return self._description.has_tasks_left
        return bool(self._left or self._counts[CUT_OFF]) or (
            self._was_killed and self._left is None
        )

    def status(self) -> int:
        """What the command ends with."""
        if self._has_tasks_left:
            return TASKS_LEFT
        return FAILED if self._has_failures else OK

    def text(self, warnings: Sequence[str] = ()) -> str:
        """What became of it, how much was done, what it warned of, and the command that goes on."""
        described = self._description
        go_on = GoOn(self._files, is_fed=described is not None
                     and described.options.task_file == "-")
        lines = [f"{self._what()}: {self._counts_text()}.", *warnings]
        if self._was_killed:
            lines.append("Tasks that ran when it was killed may run on: a resume waits for them.")
        if text := advice(self._ending, self._has_failures, self._has_tasks_left, go_on):
            lines.append(text)
        return "\n".join(lines)

    def _what(self) -> str:
        if self._was_killed:
            return "The driver was killed"
        words = WORDS.get(self._ending or COMPLETE, "")
        reason = self._description.reason if self._description else ""
        return (f"{words} ({reason})" if words and reason else words) or "The run has ended"

    def _counts_text(self) -> str:
        counts = self._counts
        parts = [
            f"{counts[fate]:,} {words}" for fate, words in FATE_WORDS.items()
            if counts[fate] or fate in (DONE, FAILED_NOW)
        ]
        if self._has_tasks_left:
            left = "an unknown number" if self._left is None else f"{self._left:,}"
            parts.append(f"{left} {left_words(counts[CUT_OFF])}")
        return ", ".join(parts)
