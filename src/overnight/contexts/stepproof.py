"""Asking Slurm, beside the driver's loop, whether the step of an engine has ended."""

from __future__ import annotations

import os
import threading
import time

from overnight.guard.slurmproof import has_ended

ASK_EVERY_S = 5.0
"""Slurm's controller serves everybody."""


class StepProof:
    """The question about one step, until it is answered with yes."""

    def __init__(self, step: str, node: str, launch: str = "") -> None:
        """Ask nothing yet.

        Args:
            step: ``JOB.STEP``.
            node: On which it runs.
            launch: What its processes have in their command lines, where it runs here: then
                they can be seen, and Slurm need not be asked.
        """
        self._step = step
        self._node = node
        self._launch = launch
        self._is_proved = False
        self._is_asking = False

    def is_there(self) -> bool:
        """Whether it is proved that nothing of the step runs; asked for in a thread."""
        if not self._is_proved and not self._is_asking:
            self._is_asking = True
            threading.Thread(target=self._ask, name="overnight proof", daemon=True).start()
        return self._is_proved

    def _ask(self) -> None:
        try:
            self._is_proved = self._proves()
            if not self._is_proved:
                time.sleep(ASK_EVERY_S)
        finally:
            self._is_asking = False

    def _proves(self) -> bool:
        if self._launch:
            return not is_named(self._launch)
        return bool(self._step) and has_ended(self._step, self._node)


def is_named(launch: str) -> bool:
    """Whether a process here has the name of a step in its command line: srun, or a rank."""
    word = launch.encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if word in file.read(1 << 16).split(b"\0"):
                        return True
            except OSError:
                continue  # it has ended meanwhile
    return False
