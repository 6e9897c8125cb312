"""Real runs: the installed commands, started in a folder of their own and watched from outside.

Every wait is for a condition and has a limit. Whatever a test starts carries the mark of its
stage in its environment, so that what is left of it is found whoever its parent is now.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.harness_processes import MARK, Process, descendants, end_marked, marked

LIMIT_S = 60.0
_STEERING = ("DISBATCH_", "SLURM_", "OVERNIGHT_", "KVSSTCP_", "CUDA_", "GPU_")


def until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Look again and again until a condition holds, or fail and say which one it was."""
    give_up_at = time.monotonic() + limit_s
    nap = select.poll()
    while not condition():
        assert time.monotonic() < give_up_at, f"waited {limit_s:g} s for this: {what}"
        nap.poll(10)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a status file as it stands there."""

    flags: str
    id: int
    line: int
    repeat: int
    node: str
    pid: int
    code: int
    elapsed_s: float
    started_at: float
    finished_at: float
    out_count: int
    out: str
    err_count: int
    err: str
    command: str

    @property
    def is_task(self) -> bool:
        """Neither a barrier nor a per-engine command."""
        return self.flags[0] not in "BC" and self.flags[3] != "P"

    @property
    def is_cut(self) -> bool:
        """We ended it."""
        return self.flags[0] == "R" and self.flags[3] == "Z"


def read_rows(path: Path) -> list[Row]:
    """All rows of a status file; one that is torn fails the test."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    assert text == "" or text.endswith("\n"), f"the last row is torn: {text[-80:]!r}"
    lines = text.split("\n")[:-1]
    return [_row(line) for line in lines if not line.startswith("ROE[ PSZ]")]


def _row(line: str) -> Row:
    f = line.split("\t", 14)
    assert len(f) == 15, f"not a row: {line!r}"
    numbers = [int(f[1]), int(f[2]), int(f[3])]
    times = [float(each) for each in f[7:10]]
    return Row(f[0], *numbers, f[4], int(f[5]), int(f[6]), *times, int(f[10]), f[11], int(f[12]),
               f[13], f[14])


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that is over."""

    status: int  # as a shell would have it: 128 and the number for a signal
    out: str
    err: str


class Live:
    """A command that runs.

    Attributes:
        pid: Of it.
        process: To feed or to close its standard input.
    """

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._out = out
        self._err = err

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._out.read_text("utf-8", "replace")

    @property
    def err(self) -> str:
        """Error output so far."""
        return self._err.read_text("utf-8", "replace")

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process alone; it is our child and not reaped."""
        if not self.is_over:
            os.kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        """Send a signal as a terminal does, to everything in the foreground group."""
        if not self.is_over:
            os.killpg(self.pid, number)

    def says(self, text: str) -> None:
        """Wait until its error output holds this."""
        until(lambda: text in self.err or self.is_over, f"{text!r} on the screen")
        assert text in self.err, f"it ended and never said {text!r}:\n{self.err}"

    def wait(self, limit_s: float = LIMIT_S) -> Ended:
        """Wait for its end."""
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not over after {limit_s:g} s:\n{self.err}") from None
        return Ended(128 - status if status < 0 else status, self.out, self.err)

    def engine(self) -> int:
        """Number of the engine's process, once there is one."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [p.pid for p in descendants(self.pid) if "_engine.pyz" in p.command]
            return bool(found) or self.is_over

        until(is_there, "an engine")
        assert found, f"it ended without an engine:\n{self.err}"
        return found[0]

    def runners(self) -> list[int]:
        """Numbers of the engine's runners, once there is one."""
        engine = self.engine()
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [
                p.pid for p in descendants(engine)
                if p.parent == engine and "_engine.pyz" in p.command
            ]
            return bool(found)

        until(is_there, "a runner")
        return found


class Stage:
    """An empty folder, and every process that a test starts in it."""

    def __init__(self, folder: Path, kept: Path) -> None:
        """Use these two folders.

        Args:
            folder: Where commands run.
            kept: For what the commands write to their screens.
        """
        self.folder = folder
        self._kept = kept
        self._count = 0
        self._latest: Live | None = None

    # -- files

    def path(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, *lines: str) -> Path:
        """A file of these lines."""
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return path

    def read(self, name: str) -> str:
        """What a file holds, nothing when it is missing."""
        try:
            return self.path(name).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def rows(self, prefix: str) -> list[Row]:
        return read_rows(self.path(f"{prefix}_status.txt"))

    def codes(self, prefix: str) -> dict[int, int]:
        """Exit codes by task id; two rows for one task fail the test."""
        rows = [row for row in self.rows(prefix) if row.is_task]
        doubled = [id for id, count in Counter(row.id for row in rows).items() if count > 1]
        assert not doubled, f"more than one row for tasks {doubled}"
        return {row.id: row.code for row in rows}

    def attempts(self, prefix: str) -> list[dict[str, Any]]:
        """The lines of ``_tasks.jsonl``."""
        text = self.path(f"{prefix}_tasks.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def has_rows(self, prefix: str, count: int) -> None:
        """Wait until the status file has so many rows at least."""
        name = f"{prefix}_status.txt"
        until(lambda: self.read(name).count("\n") >= count, f"{count} rows in {name}")

    def appears(self, name: str) -> None:
        """Wait for a file that the command started last is to make, or to have made."""
        path, live = self.path(name), self._latest
        until(lambda: path.exists() or (live and live.is_over), f"a file {name}")
        assert path.exists(), f"it ended without a file {name}: {live and live.err}"

    # -- processes

    def start(self, command: Sequence[str], *, env: dict[str, str] | None = None,
              cwd: Path | None = None, **options: Any) -> Live:
        """Start a command in a session of its own; ``options`` are those of ``Popen``."""
        self._count += 1
        out, err = (self._kept / f"{self._count}.{end}" for end in ("out", "err"))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            given = {
                "stdin": subprocess.DEVNULL, "stdout": out_file, "stderr": err_file,
                "start_new_session": True, **options,
            }
            process = subprocess.Popen(
                list(command), cwd=cwd or self.folder, env=self.environment(env), **given,
            )
        self._latest = Live(process, out, err)
        return self._latest

    def environment(self, added: dict[str, str] | None = None) -> dict[str, str]:
        """The caller's without what would steer a run, and with the mark of this stage."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_STEERING)}
        return {**kept, "LC_ALL": "C.UTF-8", MARK: str(self._kept), **(added or {})}

    def run(self, command: Sequence[str], *, limit_s: float = LIMIT_S, **options: Any) -> Ended:
        """Start a command and wait for its end."""
        return self.start(command, **options).wait(limit_s)

    def left(self) -> list[Process]:
        """What is alive of all that was started here."""
        return marked(self._kept)

    def is_empty_soon(self, limit_s: float = 15.0) -> None:
        """Wait until nothing runs any more; what does not leave fails the test."""
        try:
            until(lambda: not self.left(), "nothing is left running", limit_s)
        except AssertionError:
            raise AssertionError(f"left running: {self.left()}") from None

    def close(self) -> None:
        """End whatever is left."""
        end_marked(self._kept)


def overnight(*arguments: str | Path) -> list[str]:
    """The ``overnight`` command of this environment."""
    return [str(Path(sys.executable).with_name("overnight")), *map(str, arguments)]


def run(*arguments: str | Path) -> list[str]:
    """``overnight run``."""
    return overnight("run", *arguments)


def disbatch(*arguments: str | Path) -> list[str]:
    """The ``disBatch`` command of this environment, with two slots here."""
    return [str(Path(sys.executable).with_name("disBatch")), "-s", "localhost:2",
            *map(str, arguments)]


class Window:
    """A terminal in which a command runs: what it shows, what is typed, and its closing."""

    def __init__(self, stage: Stage, command: Sequence[str], **env: str) -> None:
        self._fd, theirs = pty.openpty()
        self._shown = b""
        self.live = stage.start(
            ["setsid", "--ctty", *command], env={"TERM": "xterm", **env}, stdin=theirs,
            stdout=theirs, stderr=theirs, start_new_session=False,
        )
        os.close(theirs)
        os.set_blocking(self._fd, False)

    @property
    def text(self) -> str:
        """All that was shown so far."""
        try:
            while block := os.read(self._fd, 1 << 16):
                self._shown += block
        except OSError:
            pass  # nothing at present, or nobody holds the other end any more
        return self._shown.decode("utf-8", "replace")

    def shows(self, text: str, limit_s: float = LIMIT_S) -> None:
        """Wait until this has been shown."""
        try:
            until(lambda: text in self.text, f"{text!r} on the terminal", limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; it showed\n{self.text}") from None

    def press(self, key: bytes) -> None:
        r"""Type something: ``b"\x03"`` is Ctrl-C."""
        os.write(self._fd, key)

    def close(self) -> None:
        """Close the window: the kernel hangs up on whoever runs in it."""
        os.close(self._fd)


def at_most_at_once(rows: Iterable[Row]) -> int:
    """Most tasks that ran at the same time, by their times to the millisecond."""
    moments = sorted(
        moment for row in rows
        for moment in ((row.started_at + 0.002, 1), (row.finished_at - 0.002, -1))
        if row.elapsed_s > 0.004
    )
    most = running = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    return most


INTERRUPTS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}
