"""A real Slurm on this machine, and jobs in it. Every call of a client has a time limit."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
DISBATCH = f"exec {PYTHON} {ROOT}/disBatch"
OVERNIGHT = f"exec env PYTHONPATH={ROOT}/src {PYTHON} -m overnight"
CALL_S = 60
LOOK_S = 0.1
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def wait_until(
    condition: Callable[[], object], what: str, within_s: float = 60,
    story: Callable[[], str] = str,
) -> None:
    """Wait for a condition, or fail with what there is to say of it."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {within_s:g} s: {what}\n{story()}"
        time.sleep(LOOK_S)


def call(*command: str, cwd: Path | None = None, **variables: str) -> str:
    """What a client answers; ``timeout`` ends one that hangs, whatever it does with signals."""
    done = subprocess.run(
        ["timeout", "-s", "KILL", str(CALL_S), *command], cwd=cwd,
        env=clean_environment() | variables, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{shlex.join(command)}: {done.returncode}: {done.stderr}"
    return done.stdout


def clean_environment() -> dict[str, str]:
    """Ours, without what an outer job or run would have put into it."""
    outer = ("SLURM_", "DISBATCH_", "KVSSTCP_", "PMI", "CUDA_", "GPU_DEVICE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(outer)}
    return kept | {"SLURM_CONF": os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")}


class Cluster:
    """The lab's Slurm: node1, node2, node3 with 4 CPUs and 2 GPUs each, and ``login``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lab(self, script: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, self._folder / script, *words], capture_output=True, text=True,
            timeout=180, check=False, stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{script} {shlex.join(words)}: {done.stderr}"
        return done.stdout

    def command_on(self, node: str, command: Sequence[str]) -> list[str]:
        """A command that runs on a node of the lab."""
        return [sys.executable, str(self._folder / "slurm"), "exec", node, *command]

    def up(self) -> None:
        self.lab("slurm", "up")

    def down(self) -> None:
        self.lab("slurm", "down")

    def kill_engine_of_task(self, job: Job, task: int) -> None:
        """SIGKILL to the engine, and no other process, of the node where this task runs."""
        marks = {f"DISBATCH_TASKID={task}".encode(), job.mark.encode()}
        shell = next(pid for pid, entries in _environments() if marks <= entries)
        runner = _parent(shell)
        engine = runner if b"SLURM_LOCALID=0" not in _environment(runner) else _parent(runner)
        os.kill(engine, signal.SIGKILL)

    def kill_ours_on(self, node: str, job: Job) -> None:
        """SIGKILL to the engine and all ranks of a node, and to none of their tasks."""
        marks = {f"SLURMD_NODENAME={node}".encode(), job.mark.encode()}
        for pid, entries in _environments():
            words = _command(pid)
            if marks <= entries and any(word.endswith(b"_engine.pyz") for word in words):
                os.kill(pid, signal.SIGKILL)

    def kill_driver(self, job: Job) -> None:
        """SIGKILL to the driver of a job, whose batch script it is."""
        (pid,) = [
            pid for pid, entries in _environments() if job.mark.encode() in entries
            and any(word.endswith(b"/disBatch") for word in _command(pid))
        ]
        os.kill(pid, signal.SIGKILL)

    def processes(self, mark: str) -> list[str]:
        """Command lines of processes, on any node, that carry this in their environment."""
        found = []
        for pid, entries in _environments():
            if mark.encode() in entries:
                with suppress(OSError):
                    line = Path(f"/proc/{pid}/cmdline").read_bytes()
                    found.append(line.replace(b"\0", b" ").decode(errors="replace").strip())
        return found


def _environments() -> Iterator[tuple[int, set[bytes]]]:
    for path in Path("/proc").glob("[0-9]*"):
        yield int(path.name), _environment(int(path.name))


def _environment(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _command(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@dataclass
class Job:
    """A batch job that runs something of ours in a folder of its own.

    Everything that it starts carries ``mark`` in its environment.
    """

    cluster: Cluster
    folder: Path
    id: str = ""
    output: Path = field(init=False)

    def __post_init__(self) -> None:
        self.output = self.folder / "job.out"

    @property
    def mark(self) -> str:
        return f"LAB_JOB={self.folder}"

    def submit(
        self, options: Sequence[str], script: str, name: str = "job", **variables: str
    ) -> Job:
        path = self.folder / f"{name}.sh"
        self.output = self.folder / f"{name}.out"
        path.write_text(f"#!/bin/bash\nexport {shlex.quote(self.mark)}\n{script}\n")
        told = call(
            "sbatch", "--parsable", "-o", str(self.output), *options, str(path),
            cwd=self.folder, **variables,
        )  # fmt: skip
        self.id = told.strip().split(";")[0]
        return self

    def submit_program(self, options: Sequence[str], *arguments: str) -> Job:
        """The installed program as the batch script, as ``sbatch -n 5 disBatch Tasks``."""
        program = Path(PYTHON).parent / "disBatch"
        told = call(
            "sbatch", "--parsable", "-o", str(self.output), *options, str(program), *arguments,
            cwd=self.folder, LAB_JOB=str(self.folder),
        )  # fmt: skip
        self.id = told.strip().split(";")[0]
        return self

    def log(self, prefix: str = "run") -> str:
        """What the run's files say of how it went."""
        paths = [*self.folder.glob(f"{prefix}*.log"), *self.folder.glob(f"{prefix}_status.txt")]
        return "".join(f"== {path.name}\n{path.read_text()}" for path in paths)

    def wait_gone(self, within_s: float = 90) -> None:
        """Wait until nothing of it, or of any of its members, is in the queue."""
        wait_until(
            lambda: not call("squeue", "-h", "-o", "%F").split().count(self.id),
            f"job {self.id} is gone", within_s,
        )  # fmt: skip

    def describe(self) -> dict[str, str]:
        text = call("scontrol", "-o", "show", "job", self.id)
        return dict(re.findall(r"(\w+)=(\S*)", text))

    @property
    def state(self) -> str:
        return self.describe()["JobState"]

    def wait(self, within_s: float = 90) -> str:
        """Wait for its end; its state and what it printed are in the message of a failure."""
        wait_until(lambda: self.state in ENDED, f"job {self.id} has ended", within_s)
        return self.state

    def text(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def cancel(self) -> None:
        if self.id and self.state not in ENDED:
            call("scancel", self.id)
            self.wait()

    def rows_so_far(self, prefix: str = "run") -> list[list[str]]:
        """Rows, of a run that may only just have begun."""
        there = (self.folder / f"{prefix}_status.txt").exists()
        return self.rows(prefix) if there else []

    def rows(self, prefix: str = "run") -> list[list[str]]:
        """Rows of a status file of this folder, by task id."""
        path = self.folder / f"{prefix}_status.txt"
        rows = [line.split("\t", 14) for line in path.read_text().splitlines()]
        return sorted(rows, key=lambda row: int(row[1]))
