"""Ending a set of processes until nothing of it is left.

Used where no slot's machine does it: for the attempts of a runner or an engine that
died. Attempts in slots are ended by the rules of ``core/slots``.
"""

from __future__ import annotations

import os

from overnight.guard.processes import (
    ancestors,
    carries,
    signal_process,
    survey,
    with_descendants,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.guard.processes import Process

SIGKILL, SIGTERM = 9, 15
LOOK_S = 0.02
GIVE_UP_S = 30.0


class Sweep:
    """SIGTERM once to each process that ``find`` names, SIGKILL to what is left later.

    ``find`` is asked again at each look, so children forked meanwhile are met too.

    Attributes:
        is_over: Nothing was found at the last look, or SIGKILL had no effect for long.
        found: What the last look has found.
        seen: Identities of all processes that were signalled.
    """

    def __init__(
        self, find: Callable[[], list[Process]], kill_after_s: float, now: float
    ) -> None:
        self.is_over = False
        self.found: list[Process] = []
        self.seen: set[tuple[int, int]] = set()
        self._find = find
        self._kill_at = now + kill_after_s

    def look(self, now: float) -> None:
        """Look and signal; to be called every ``LOOK_S`` until it is over."""
        self.found = found = self._find()
        if not found or now >= self._kill_at + GIVE_UP_S:
            self.is_over = True
            return
        for process in found:
            if now >= self._kill_at:
                signal_process(process, SIGKILL)
            elif process.identity not in self.seen:
                signal_process(process, SIGTERM)
            self.seen.add(process.identity)


def marked_orphans(run: str, rank: int, slot: int | None = None) -> list[Process]:
    """What carries the marks of this run and engine, and slot, and has lost its runner."""
    marks = [
        b"DISBATCH_JOBID=" + run.encode("utf-8", "surrogateescape"),
        b"DISBATCH_ENGINE_RANK=%d" % rank,
    ]
    if slot is not None:
        marks.append(b"DISBATCH_CYLINDER_RANK=%d" % slot)
    table = survey()
    own_pid = os.getpid()
    adopters = ancestors(table, own_pid) | {own_pid}
    spared = adopters | _own_session(table, own_pid)
    orphans = [
        process.pid for process in table.values()
        if process.parent in adopters and process.pid not in spared and carries(process.pid, marks)
    ]
    found = (table[pid] for pid in with_descendants(table, orphans))
    return [process for process in found if not process.is_dead and process.pid not in spared]


def _own_session(table: dict[int, Process], own_pid: int) -> set[int]:
    """Processes in the caller's own session: a driver inside a task of an outer run has
    the marks of that run, and so have its neighbours.
    """
    me = table.get(own_pid)
    return {p.pid for p in table.values() if me is not None and p.session == me.session}


def orphans_below(own: set[int]) -> list[Process]:
    """Children of this process that it did not start, with their descendants; reaps them.

    The kernel gives a dead runner's children to its engine (see ``adopt_orphans``), and an
    engine starts nothing but runners.

    Args:
        own: Numbers of the children that it did start.
    """
    table = survey()
    own_pid = os.getpid()
    roots = [p.pid for p in table.values() if p.parent == own_pid and p.pid not in own]
    for pid in roots:
        if table[pid].is_dead:
            os.waitpid(pid, os.WNOHANG)
    return [table[pid] for pid in with_descendants(table, roots) if not table[pid].is_dead]
