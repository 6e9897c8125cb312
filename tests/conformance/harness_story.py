"""Plays the bug cases of kind ``cli``: files, a start, steps that wait or interfere, checks.

A case tells a story about one run: it is started in a session and a folder of its own, steps act
on it, and at the end all its checks have to hold. Waiting is for conditions; a case's own
``sleep`` is the only rest taken.
"""

from __future__ import annotations

import base64
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.harness import HERE, Stage, environment, start
from tests.conformance.harness_checks import TIMEOUT, Evidence, holds
from tests.conformance.harness_processes import (
    Process,
    descendants,
    end_marked,
    processes,
    wait_until,
)

STUBS = HERE / "bugs" / "stubs"
DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")

Data = Mapping[str, Any]


class NoEngine(Exception):
    """The program has no process that answers to a signal meant for an engine."""


def read_stories() -> Iterator[dict[str, Any]]:
    """All bug cases, by name, of whatever kind."""
    for path in sorted((HERE / "bugs").glob("*.yaml")):
        yield yaml.safe_load(path.read_text(encoding="utf-8"))


def _file_bytes(file: Data) -> bytes:
    if "base64" in file:
        return base64.b64decode(file["base64"])
    if "generate" in file:
        text = "".join(piece["text"] * piece.get("times", 1) for piece in file["generate"])
    else:
        text = file["text"]
    return text.encode()


def _make_files(case: Data, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in case.get("dirs", ()):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, file in case.get("files", {}).items():
        (folder / name).write_bytes(_file_bytes(file))


def _is_engine(process: Process) -> bool:
    return "_engine.pyz" in process.command


def _is_engine_of_disbatch(process: Process) -> bool:
    return "--engine" in process.command


def _engine_below(pid: int) -> int:
    """The engine among the descendants of a driver, ours or disBatch's."""
    tree = descendants(pid)
    if ours := [process.pid for process in tree if _is_engine(process)]:
        return ours[0]  # the nearest: runners are below their engine
    if theirs := [process.pid for process in tree if _is_engine_of_disbatch(process)]:
        return theirs[-1]  # the farthest: shells that start it are above
    raise NoEngine


class Story:
    """One case on its way: what runs of it, what it has to wait for, what has gone wrong."""

    def __init__(self, case: Data, command: str, root: Path) -> None:
        self.case = case
        self.stage = Stage(root, command)
        self.folder = self.stage.folder / case.get("cwd", "")
        self.evidence = Evidence(
            self.folder, self.stage.mark, frozenset(process.pid for process in processes())
        )
        self.failures: list[str] = []
        self._command = shlex.split(command)
        self._environment = self._make_environment()
        self._deadline = time.monotonic() + float(case["timeout_s"])
        self._started_at = 0.0
        self._start_count = 0
        self._run: subprocess.Popen[bytes] | None = None

    def _make_environment(self) -> dict[str, str]:
        added: dict[str, str | None] = dict.fromkeys(DEVICE_VARIABLES)
        added |= self.case.get("env", {})
        variables = environment(self.stage.mark, added)
        if self.case.get("stubs"):
            variables["PATH"] = f"{STUBS}{os.pathsep}{variables['PATH']}"
        return variables

    def play(self) -> list[str]:
        """Play the case to its end; what failed, and nothing is left running."""
        _make_files(self.case, self.folder)
        steps = self.case.get("steps") or [{"start": {}}, {"wait_exit": {}}]
        try:
            for step in steps:
                self._take(step)
            self.look(self.case["expect"])
        finally:
            end_marked(self.stage.mark)
        return self.failures

    def _take(self, step: Data) -> None:
        ((name, asked),) = step.items()
        _STEPS[name](self, asked)

    def _situation(self) -> str:
        evidence = self.evidence
        took = "" if evidence.took_s is None else f" after {evidence.took_s:.1f} s"
        return (
            f"exit {evidence.exit_status}{took}, rows {evidence.raw_rows()[-5:]}, "
            f"stderr {evidence.said('err')[-600:]!r}"
        )

    def _left(self, limit_s: float = float("inf")) -> float:
        """Seconds to wait at most: the step's own limit, or what the case has left."""
        return max(0.0, min(limit_s, self._deadline - time.monotonic()))

    def _launch(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        self._start_count += 1
        self._started_at = time.monotonic()
        self.evidence.exit_status = self.evidence.took_s = None
        return self._spawn(argv, **options)

    def _spawn(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        options.setdefault("stdin", subprocess.DEVNULL)
        name = f"start{self._start_count}"
        return start(argv, self.stage, name, cwd=self.folder, env=self._environment, **options)

    def _wait(self, process: subprocess.Popen[bytes], limit_s: float) -> None:
        try:
            self.evidence.exit_status = process.wait(self._left(limit_s))
        except subprocess.TimeoutExpired:
            self.evidence.exit_status = TIMEOUT
            self.failures.append(f"still runs after {time.monotonic() - self._started_at:.1f} s")
        self.evidence.took_s = time.monotonic() - self._started_at

    def _wait_for(self, condition: Callable[[], bool], asked: Data) -> None:
        if not wait_until(condition, self._left(asked["timeout_s"])):
            self.failures.append(f"waited in vain: {dict(asked)}; {self._situation()}")

    @property
    def run(self) -> subprocess.Popen[bytes]:
        """The run the story is about."""
        assert self._run is not None, "the case does not begin with a start"
        return self._run

    # ------------------------------------------------------------------ steps

    def start(self, asked: Data) -> None:
        stdin = self.case.get("stdin")
        source = subprocess.PIPE if stdin else subprocess.DEVNULL
        self._run = self._launch([*self._command, *self.case["argv"]], stdin=source)
        if stdin:
            pieces = stdin.get("pieces") or [stdin]
            threading.Thread(target=self._feed, args=(self._run, pieces), daemon=True).start()

    def _feed(self, process: subprocess.Popen[bytes], pieces: list[Data]) -> None:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:
            for piece in pieces:
                time.sleep(piece.get("after_s", 0))
                if "touch" in piece:
                    (self.folder / piece["touch"]).touch()
                pipe.write(piece.get("text", "").encode())
                pipe.flush()

    def sleep(self, seconds: float) -> None:
        """Rest as the case says: it is about what happens, or does not, in that time."""
        time.sleep(self._left(seconds))

    def wait_exit(self, asked: Data) -> None:
        self._wait(self.run, asked.get("timeout_s", float("inf")))
        if "exit" in asked:
            self.look([{"exit": asked["exit"]}])

    def wait_file(self, asked: Data) -> None:
        text = asked.get("contains", "")

        def is_there() -> bool:
            found = self.evidence.text_of(asked["path"])
            return found is not None and text in found

        self._wait_for(is_there, asked)

    def wait_rows(self, asked: Data) -> None:
        self._wait_for(lambda: len(self.evidence.task_rows()) >= asked["n"], asked)

    def signal(self, asked: Data) -> None:
        number = signal.Signals[f"SIG{asked['sig']}"]
        match asked["target"]:
            case "runner":
                self.run.send_signal(number)
            case "group":
                os.killpg(self.run.pid, number)
            case "engine":
                os.kill(_engine_below(self.run.pid), number)

    def run_program(self, asked: Data) -> None:
        self._start_count += 1
        process = self._spawn(asked["argv"])
        if not asked.get("background"):
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._left(asked.get("timeout_s", float("inf"))))

    def run_again(self, asked: Data) -> None:
        argv = asked.get("argv_exact") or [*self._command, *asked["argv"]]
        self._wait(self._launch(argv), asked.get("timeout_s", float("inf")))

    def look(self, checks: list[Data]) -> None:
        """Write down which of these checks do not hold now."""
        for check in checks:
            if not holds(self.evidence, check):
                self.failures.append(f"{check} does not hold: {self._situation()}")


_STEPS: dict[str, Callable[[Story, Any], None]] = {
    "start": Story.start,
    "sleep": Story.sleep,
    "wait_exit": Story.wait_exit,
    "wait_file": Story.wait_file,
    "wait_rows": Story.wait_rows,
    "signal": Story.signal,
    "run": Story.run_program,
    "run_again": Story.run_again,
    "assert": Story.look,
}
