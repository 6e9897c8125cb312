"""Runs that machines join: joiners, and a wire between them and the run that can be cut."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path

from tests.e2e.kit import Live, Stage, overnight, run, until

ALONE = (
    "exec 9>>alone$DISBATCH_TASKID; flock -n 9 || echo $DISBATCH_TASKID >> twice;"
    " echo $DISBATCH_TASKID $DISBATCH_ENGINE_RANK >> began;"
)
"""What a task begins with that notices a second copy of itself at the same time."""


def waits_for(name: str) -> str:
    """A task that runs until a file is there."""
    return f"{ALONE} until [ -e {name} ]; do sleep 0.05; done; echo $DISBATCH_TASKID >> ended"


def listening(stage: Stage, *arguments: str, prefix: str = "P") -> Live:
    """A run that machines can join, once they can."""
    live = stage.start(run("--listen", "-p", prefix, *arguments, "Tasks"))
    stage.appears(f"{prefix}_join")
    return live


def join(stage: Stage, *arguments: str, prefix: str = "P") -> Live:
    """An engine that joins."""
    return stage.start(overnight("join", prefix, *arguments))


def began(stage: Stage) -> dict[int, list[int]]:
    """Ranks of the engines on which each task has begun, in order."""
    found: dict[int, list[int]] = {}
    for line in stage.read("began").splitlines():
        id, rank = line.split()
        found.setdefault(int(id), []).append(int(rank))
    return found


def log_says(stage: Stage, text: str, prefix: str = "P") -> None:
    """Wait until the driver's log holds this."""
    name = f"{prefix}_driver.log"
    until(lambda: text in stage.read(name), f"{text!r} in {name}: {stage.read(name)}")


class Wire:
    """A connection between joiners and a run that can be cut, and be dead for a time.

    It stands between them by a join file of its own, ``<prefix>_wire_join``.
    """

    def __init__(self, stage: Stage, prefix: str = "P") -> None:
        self._stage = stage
        self._prefix = prefix
        self._door = socket.socket()
        self._door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._door.bind(("127.0.0.1", 0))
        self._door.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_dead = False
        self._lock = threading.Lock()
        self.accepted = 0
        threading.Thread(target=self._serve, daemon=True).start()
        self.follow()

    @property
    def join_file(self) -> Path:
        return self._stage.path("wire_join")

    def follow(self) -> None:
        """Lead to whoever is the driver now."""
        found = json.loads(self._stage.read(f"{self._prefix}_join"))
        self._target = found["loopback_port"]
        found["loopback_port"], found["addresses"] = self._door.getsockname()[1], []
        draft = self._stage.path("wire_draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(found))
        draft.rename(self.join_file)

    def engine(self, *options: str, through: tuple[str, ...] = ()) -> Live:
        """An engine that joins over this wire."""
        import sys

        file = self._stage.path(f"{self._prefix}_engine.pyz")
        return self._stage.start(
            [*through, sys.executable, "-I", str(file), "join", str(self.join_file), *options]
        )

    def cut(self, *, dead: bool = False) -> None:
        """Cut what there is; a dead wire leads nowhere until it is mended."""
        with self._lock:
            self._is_dead = dead
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._lock:
            self._is_dead = False

    def close(self) -> None:
        self.cut(dead=True)
        self._door.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            near.close()
            return
        with self._lock:
            if self._is_dead:
                near.close()
                far.close()
                return
            self._pairs.append((near, far))
        _carry_between(near, far)
        for each in (near, far):
            each.close()


def _carry_between(one: socket.socket, other: socket.socket) -> None:
    poll = select.poll()
    ends = {one.fileno(): (one, other), other.fileno(): (other, one)}
    for fd in ends:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            source, sink = ends[fd]
            try:
                data = source.recv(65536)
                sink.sendall(data)
            except OSError:
                return
            if not data:
                return


ELSEWHERE = (
    "unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
    'hostname elsewhere; exec "$@"', "sh",
)
"""Runs a command on what nobody can tell from another machine: other name, other processes."""


def engine_pids(live: Live) -> list[int]:
    """Processes of a joiner that are engines: its children, by number."""
    children = Path(f"/proc/{live.pid}/task/{live.pid}/children")
    return [int(each) for each in children.read_text().split()]


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def all_pids() -> list[int]:
    return [int(each) for each in os.listdir("/proc") if each.isdigit()]
