"""Real ssh hosts on this machine: where the lab is, and what tests do with it.

The lab makes hosts of namespaces, each with a name, process numbers, a network and an sshd
of its own; it lies beside this checkout, or where ``OVERNIGHT_LAB`` says.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.harness_processes import MARK

NAMES = ("lab1", "lab2", "lab3")
LIMIT_S = 60.0
QUICK = (
    "ssh -o ServerAliveInterval=1 -o ServerAliveCountMax=2 -o ConnectTimeout=3"
)
"""The user's ssh, which notices a cut link within seconds."""


def lab_folder() -> Path:
    """Where the scripts of the lab are, or would be."""
    beside = Path(__file__).parents[2] / "shared" / "lab"
    return Path(os.environ.get("OVERNIGHT_LAB", str(beside)))


class Hosts:
    """Hosts that are up."""

    def __init__(self, shared: Path) -> None:
        self._lab = lab_folder()
        self.shared = shared

    def up(self) -> None:
        """Start them; this folder shows through on all of them."""
        # Home folders of their own: login files of this machine's user are no part of a test.
        self._call("hosts", "up", "--private-home", "--share", str(self.shared),
                   "--share", str(Path(__file__).parents[1]))

    def down(self) -> None:
        """End them, and all that runs on them."""
        self._call("hosts", "down")

    def fault(self, *arguments: str) -> None:
        """Bring a fault about, or undo it."""
        self._call("fault", *arguments)

    def on(self, host: str, *command: str) -> str:
        """What a command prints that runs on a host, without ssh."""
        return self._call("hosts", "exec", host, *command)

    def processes(self, host: str) -> list[tuple[int, str]]:
        """Numbers, as the host sees them, and command lines of what was started there by ssh."""
        lines = self.on(host, "ps", "-e", "-ww", "-o", "pid=,args=").splitlines()
        found = [(int(line.split(None, 1)[0]), line.split(None, 1)[1]) for line in lines]
        ours = ("engine.pyz", "task.sh", "sleep", "bash -c", "sh -c")
        return [each for each in found if any(word in each[1] for word in ours)]

    def end_all(self) -> None:
        """End whatever a test has left."""
        for host in NAMES:
            numbers = [str(pid) for pid, _ in self.processes(host)]
            if numbers:
                self.on(host, "bash", "-c", f"kill -9 {' '.join(numbers)}; true")

    def engine(self, host: str) -> int:
        """Number of the engine's process on a host, as the host sees it."""
        found = [pid for pid, args in self.processes(host) if "engine.pyz" in args]
        assert found, f"no engine on {host}"
        return min(found)

    def _call(self, script: str, *arguments: str) -> str:
        environment = {key: value for key, value in os.environ.items() if key != MARK}
        done = subprocess.run(
            [str(self._lab / script), *arguments], capture_output=True, text=True, cwd="/",
            timeout=LIMIT_S, env=environment, check=False,
        )
        assert done.returncode == 0, f"{script} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout


def counts(names: Sequence[str] = NAMES, each: int = 1) -> str:
    """What ``-s`` is given for these hosts."""
    return ",".join(f"{name}:{each}" for name in names)
