"""Watches for the end of an allocation, in a thread of its own, and asks for the soft stop."""

from __future__ import annotations

import threading
import time

from overnight.core.allocationend import (
    ASK_AGAIN_S,
    asks_after,
    deadline_text,
    stops_at,
)
from overnight.core.events import SOFT, StopAsked
from overnight.formats.slurmclient import end_time, end_time_command
from overnight.guard.slurmcalls import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.ports import Post


class EndWatch:
    """From its making to ``close``, or to the soft stop."""

    def __init__(
        self, jobs: Sequence[str], label: str, grace_s: float, go_on: str, post: Post
    ) -> None:
        """Begin to watch.

        Args:
            jobs: Ids; the first one that ends ends the run.
            label: Of the context, for people.
            grace_s: What running tasks are to have to finish.
            go_on: The command that goes on in the next allocation.
            post: The door into the driver.
        """
        self._jobs = jobs
        self._label = label
        self._grace_s = grace_s
        self._go_on = go_on
        self._post = post
        self._bell = threading.Event()
        self._is_closed = False
        threading.Thread(target=self._run, name="overnight end watch", daemon=True).start()

    def ask_now(self) -> None:
        """The allocation has changed."""
        self._bell.set()

    def close(self) -> None:
        """Watch no more."""
        self._is_closed = True
        self._bell.set()

    # ---- in the thread

    def _run(self) -> None:
        while not self._is_closed:
            answered, end = self._ask()
            now = time.time()
            if end is not None and now >= stops_at(end, self._grace_s):
                self._stop(end - now)
                return
            wait_s = asks_after(now, end, self._grace_s) if answered else ASK_AGAIN_S
            self._bell.wait(wait_s)
            self._bell.clear()

    def _ask(self) -> tuple[bool, float | None]:
        """Whether every job was answered for, and when the first of them ends."""
        answers = [ask(end_time_command(job)) for job in self._jobs]
        ends = [end_time(answer.text) for answer in answers if answer.code == 0]
        known = [end for end in ends if end is not None]
        return len(ends) == len(answers), min(known, default=None)

    def _stop(self, left_s: float) -> None:
        if self._is_closed:
            return
        notice = deadline_text(self._label, max(0.0, left_s), self._go_on)
        self._post(StopAsked(SOFT, "deadline", notice=notice))
