"""Gives nodes of an allocation back as they run dry, in a thread of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque

from overnight.core.giveback import (
    AGAIN_S,
    GATHERED_S,
    TRIES,
    Gone,
    command_variables,
    kept_nodes,
)
from overnight.formats.slurmclient import keep_nodes_command
from overnight.guard.slurmcalls import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

COMMAND_S = 600.0
"""A user's command is not waited for longer."""


class GiveBack:
    """Nodes that go, one after the other.

    A user's command is called once for each. The default shrinks the allocation, in one
    call for all nodes that went within a moment.
    """

    def __init__(
        self, jobs: Mapping[str, Sequence[str]], driver_node: str | None, command: str | None,
        tell: Callable[[str, str], None], shrunk: Callable[[], None],
        gathered_s: float = GATHERED_S, again_s: float = AGAIN_S,
    ) -> None:
        """Give nothing back yet.

        Args:
            jobs: Nodes of each job of the allocation, by its id.
            driver_node: Where the driver runs, if that is one of them.
            command: The user's, or None for the default.
            tell: Takes level and text, from a thread.
            shrunk: Called when an allocation has become smaller, from a thread.
            gathered_s: How long the default waits for further nodes.
            again_s: How long it waits when Slurm has refused.
        """
        self._jobs = jobs
        self._driver_node = driver_node
        self._command = command
        self._tell = tell
        self._shrunk = shrunk
        self._gathered_s = gathered_s
        self._again_s = again_s
        self._retired: list[str] = []
        self._waiting: deque[Gone] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def node(self, gone: Gone) -> None:
        """This node can go."""
        with self._changed:
            self._waiting.append(gone)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="overnight give back",
                                                daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """The run is over, and its allocation about to end: nothing more is given back."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    # ---- in the thread

    def _run(self) -> None:
        while gone := self._next():
            self._retired += [each.node for each in gone]
            if self._command is None:
                self._shrink(gone)
            else:
                self._call(self._command, gone)

    def _next(self) -> list[Gone]:
        """Those that go now; none when the run is over."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if self._command is None:
                self._gather()
            if self._is_closed:
                return []
            count = 1 if self._command is not None else len(self._waiting)
            return [self._waiting.popleft() for _ in range(count)]

    def _gather(self) -> None:
        """Wait until no further node has gone for a moment."""
        known = 0
        while known < len(self._waiting) and not self._is_closed:
            known = len(self._waiting)
            until = time.monotonic() + self._gathered_s
            while time.monotonic() < until and known == len(self._waiting) \
                    and not self._is_closed:
                self._changed.wait(until - time.monotonic())

    def _shrink(self, gone: Sequence[Gone]) -> None:
        names = {each.node for each in gone}
        for job, nodes in self._jobs.items():
            kept = kept_nodes(nodes, gone[-1].active, self._driver_node)
            going = [node for node in nodes if node in names and node not in kept]
            if going and kept:
                self._update(job, going, kept)

    def _update(self, job: str, gone: Sequence[str], kept: Sequence[str]) -> None:
        # scontrol leaves scripts that set the variables anew where it is called.
        folder = tempfile.mkdtemp(prefix="overnight-")
        try:
            for tried in range(1, TRIES + 1):
                answer = ask(keep_nodes_command(job, ",".join(kept)), cwd=folder)
                if answer.code == 0:
                    self._tell("info", f"given back: {','.join(gone)}; job {job} keeps"
                                       f" {','.join(kept)}")
                    self._shrunk()
                    return
                if tried < TRIES and self._rest():
                    return
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._tell("warning", f"{','.join(gone)} of job {job} cannot be given back: "
                              f"{answer.text.strip()}")

    def _rest(self) -> bool:
        """Wait before trying again; whether the run is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, self._again_s)
            return self._is_closed

    def _call(self, command: str, gone: Sequence[Gone]) -> None:
        variables = command_variables(gone, self._retired, self._driver_node)
        try:
            done = subprocess.run(
                ["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_S,
                env={**os.environ, **variables}, start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._tell("warning", f"the command that gives {gone[0].node} back: {error}")
            return
        said = done.stdout.decode("utf-8", "replace").strip()
        level = "info" if done.returncode == 0 else "warning"
        self._tell(level, f"the command that gives {gone[0].node} back has ended with"
                          f" {done.returncode}{': ' + said if said else ''}")
        self._shrunk()
