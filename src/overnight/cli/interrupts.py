"""Signals at the terminal, as stops of the run: each says on the screen what the next does."""

from __future__ import annotations

import signal

from overnight.core.events import END, KILL, SOFT, StopAsked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from overnight.driver.loop import Driver

STAGES = {
    True: (
        (END, "{name}: ending the run and its tasks ({grace:g} s, then they are killed)"),
        (KILL, "{name} again: killing what is left"),
    ),
    False: (
        (SOFT, "{name}: nothing new is started; running tasks finish. Once more ends them."),
        (END, "{name} again: ending the running tasks. Once more kills them at once."),
        (KILL, "{name} for the third time: killing what is left"),
    ),
}
"""What the first, second ... signal does: for disBatch (True) and ``overnight run``."""


class Interrupts:
    """Turns SIGINT and SIGTERM, and SIGHUP for disBatch, into stops of a driver.

    Only the command line installs one: a driver in somebody's program leaves its signals
    alone.
    """

    def __init__(
        self, driver: Driver, say: Callable[[str], None], *, is_compatible: bool, grace_s: float
    ) -> None:
        self._driver = driver
        self._say = say
        self._stages = STAGES[is_compatible]
        self._grace_s = grace_s
        self._count = 0
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)
        # disBatch ends with its terminal; ``overnight run`` goes on without it.
        signal.signal(signal.SIGHUP, self._handle if is_compatible else signal.SIG_IGN)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        how, words = self._stages[min(self._count, len(self._stages) - 1)]
        self._count += 1
        name = signal.Signals(number).name
        self._driver.post(StopAsked(how, f"interrupted by {name}", number))
        self._say(words.format(name=name, grace=self._grace_s))
