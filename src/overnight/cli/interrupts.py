"""Signals at the terminal, as stops of the run: each says on the screen what the next does.

What a signal does depends on how far the command is:

    nothing is made yet   it ends the command at once
    held                  files are being made: it waits for the driver
    driving               it is a stop of the run
    over                  the exit status is known: it ends the command at once with that
"""

from __future__ import annotations

import os
import signal

from overnight.cli.exit_status import BY_SIGNAL, TASKS_LEFT
from overnight.core.events import END, KILL, SOFT, StopAsked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from overnight.driver.loop import Driver

AT_ONCE = (
    (END, "{name}: ending the run and its tasks ({grace:g} s, then they are killed)"),
    (KILL, "{name} again: killing what is left"),
)
IN_STAGES = (
    (SOFT, "{name}: nothing new is started; running tasks finish. Once more ends them."),
    (END, "{name} again: ending the running tasks. Once more kills them at once."),
    (KILL, "{name} for the third time: killing what is left"),
)
"""What the first, second ... signal does: for disBatch, and for ``overnight run``."""


class Interrupts:
    """Turns SIGINT and SIGTERM, and SIGHUP for disBatch, into stops of a driver.

    Only the command line installs one: a driver in somebody's program leaves its signals
    alone.
    """

    def __init__(
        self, say: Callable[[str], None], *, is_compatible: bool, grace_s: float,
        is_in_slurm: bool = False,
    ) -> None:
        """From now on signals do not simply kill.

        Args:
            say: Shows a line where there is no run to show it yet.
            is_compatible: For disBatch.
            grace_s: Between the first signal that tasks get and SIGKILL, for the words.
            is_in_slurm: SIGTERM is Slurm's warning of the allocation's end.
        """
        self._say = say
        self._is_compatible = is_compatible
        self._grace_s = grace_s
        self._is_in_slurm = is_in_slurm
        self._count = 0
        self._pending: list[int] = []
        self._driver: Driver | None = None
        self._act: Callable[[int], None] = self._leave_nothing
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)
        # disBatch ends with its terminal, unless nohup said otherwise; ``overnight run``
        # goes on without it.
        if not is_compatible:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        elif signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._handle)

    def hold(self) -> None:
        """Files are being made: a signal waits until there is a driver."""
        self._act = self._pending.append

    def end(self) -> None:
        """The run is over and its rows are safe: nothing is left for a signal to end."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def drive(self, driver: Driver) -> None:
        """Signals are stops of this driver from now on, and so are those that waited."""
        self._driver = driver
        self._act = self._stop
        for number in self._pending:
            self._stop(number)

    def leave(self, status: int) -> None:
        """The run is over: a signal ends the command with the status it has earned."""
        self._act = lambda number: os._exit(status)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._act(number)

    def _leave_nothing(self, number: int) -> None:
        self._say(f"{signal.Signals(number).name}: nothing was started")
        os._exit(BY_SIGNAL + number if self._is_compatible else TASKS_LEFT)

    def _stop(self, number: int) -> None:
        if self._driver is None:
            return
        is_warning = self._is_in_slurm and number == signal.SIGTERM
        stages = AT_ONCE if self._is_compatible and not is_warning else IN_STAGES
        how, words = stages[min(self._count, len(stages) - 1)]
        self._count += 1
        name = signal.Signals(number).name
        # Said by the loop when it takes the event: a signal may come while the screen is drawn.
        notice = words.format(name=name, grace=self._grace_s)
        self._driver.post(StopAsked(how, f"interrupted by {name}", number, notice))
