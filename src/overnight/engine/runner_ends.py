"""The engine's ends of its runners: forks of it, each with a socketpair to it.

The first is forked before anybody asks for one, while the driver makes its answer to
the greeting and this process is as small as it will ever be.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from _signal import (  # type: ignore[import-not-found]  # not in typeshed
    SIG_DFL,
    SIGCHLD,
    set_wakeup_fd,
    signal,
)
from _socket import socketpair
from select import select

from overnight.core import engine_events as e
from overnight.engine.polled import PolledLink
from overnight.engine.runner import Runner
from overnight.formats import link as f
from overnight.guard.adopt import adopt_orphans
from overnight.guard.sweep import Sweep, marked_orphans, orphans_below
from overnight.model import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from select import epoll
    from typing import NoReturn

    from overnight.guard.processes import Process

PATIENCE_S = 10.0
"""How long a runner that does not read is waited for at the end."""

FORK_TRIES = 20
FORK_AGAIN_S = 0.05
"""Where there are too many processes, some end soon: this often a fork is tried again."""

HIGHEST_FD = 1024
"""Descriptors of an engine are below: some for itself and one for each runner."""


class RunnerEnd:
    """One runner's process and the link to it.

    Attributes:
        pid: Of a fork of ours; 0 for a rank, which somebody else has started.
        link: To it.
    """

    __slots__ = ("link", "pid")

    def __init__(self, pid: int, link: PolledLink) -> None:
        self.pid = pid
        self.link = link


class RunnerEnds:
    """All runners of an engine."""

    def __init__(
        self, poll: epoll, inherited: list[bytes], lacks: frozenset[str],
        tell_driver: Callable[[int, bytes], None],
    ) -> None:
        self._poll = poll
        self._inherited = inherited
        self._lacks = lacks
        self._tell_driver = tell_driver
        self._ends: dict[int, RunnerEnd] = {}
        self._by_fd: dict[int, int] = {}  # ids by descriptor
        self._sweeps: dict[int, Sweep] = {}  # by the id of the dead runner
        self._spare: RunnerEnd | None = self._fork()
        self._adopts = "SUBREAPER" not in lacks and "PROC" not in lacks and adopt_orphans()

    # ---- processes

    def _fork(self) -> RunnerEnd:
        ours, theirs = (each.detach() for each in socketpair())
        try:
            pid = _fork_patiently()
            if pid == 0:
                _be_runner(theirs, self._inherited, self._lacks)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return RunnerEnd(pid, PolledLink(self._poll, ours, ours))

    def start(self, runner: int, setup_payload: bytes) -> None:
        """Make a runner of this id.

        Raises:
            OSError: There is no process for it.
        """
        end, self._spare = self._spare or self._fork(), None
        self._ends[runner] = end
        self._by_fd[end.link.read_fd] = runner
        end.link.send(m.SETUP, setup_payload)

    def admit(self, runner: int, fd: int, setup_payload: bytes) -> None:
        """Take a rank that has connected as a runner of this id."""
        end = RunnerEnd(0, PolledLink(self._poll, fd, fd))
        self._ends[runner] = end
        self._by_fd[fd] = runner
        if setup_payload:
            end.link.send(m.SETUP, setup_payload)

    def _drop(self, runner: int) -> None:
        end = self._ends.pop(runner)
        del self._by_fd[end.link.read_fd]
        _end(end)

    def close(self) -> None:
        """Let all of them leave, and wait for that; they have nothing to run any more."""
        if self._spare is not None:
            _end(self._spare)
        for end in self._ends.values():
            end.link.send(m.CLOSE, b"")
            end.link.push_all(PATIENCE_S)
        for end in self._ends.values():
            self._hear_out(end)
            if end.pid:
                os.waitpid(end.pid, 0)

    def _hear_out(self, end: RunnerEnd) -> None:
        """Pass on what a runner still has to say, until it has ended."""
        while not end.link.closed:
            select((end.link.read_fd,), (), ())
            for kind, payload in end.link.receive():
                if kind == m.NOTICE:
                    self._tell_driver(kind, payload)

    # ---- messages

    def tell(self, runner: int, kind: int, payload: bytes) -> None:
        """Send a frame with the next ``push``; to a runner that died, nothing."""
        end = self._ends.get(runner)
        if end is not None:
            end.link.send(kind, payload)

    def tell_all(self, kind: int, payload: bytes) -> None:
        """Send a frame to each with the next ``push``."""
        for end in self._ends.values():
            end.link.send(kind, payload)

    def push(self) -> None:
        """Send what waits."""
        for end in self._ends.values():
            if end.link.wants_write:
                end.link.push()

    def receive(self, fd: int) -> list[e.Event] | None:
        """What a runner says, when ``fd`` is ready; None when it is no runner's."""
        runner = self._by_fd.get(fd)
        if runner is None:
            return None
        link = self._ends[runner].link
        events: list[e.Event] = []
        for kind, payload in link.receive():
            if kind == m.NOTICE:
                self._tell_driver(kind, payload)
            else:
                events.append(_READERS[kind](runner, payload))
        link.push()
        if link.closed:
            self._drop(runner)
            events.append(e.RunnerDied(runner))
        return events

    # ---- what dead runners leave behind

    def end_orphans(
        self, runner: int, run: str, rank: int, kill_after_s: float, slot: int | None = None
    ) -> None:
        """Begin to end what a dead runner had started.

        Args:
            runner: Which.
            run: DISBATCH_JOBID of its tasks.
            rank: DISBATCH_ENGINE_RANK of them.
            kill_after_s: Between SIGTERM and SIGKILL.
            slot: Of a rank: what it leaves goes to whoever started it, not to us.
        """
        def marked() -> list[Process]:
            return marked_orphans(run, rank, slot)

        find = self._adopted if self._adopts and slot is None else marked
        self._sweeps[runner] = Sweep(find, kill_after_s, time.monotonic())

    def _adopted(self) -> list[Process]:
        ends = [*self._ends.values(), *([self._spare] if self._spare else [])]
        return orphans_below({end.pid for end in ends})

    @property
    def is_sweeping(self) -> bool:
        """Whether ``look`` is to be called every ``LOOK_S``."""
        return bool(self._sweeps)

    def look(self) -> list[e.Event]:
        """Go on ending them; which dead runners have nothing left now."""
        over = []
        for runner, sweep in self._sweeps.items():
            sweep.look(time.monotonic())
            if sweep.is_over:
                over.append(runner)
        for runner in over:
            del self._sweeps[runner]
        return [e.OrphansEnded(runner, time.time()) for runner in over]


def _end(end: RunnerEnd) -> None:
    """Close a runner's link, which makes it end what it has and leave, and wait for that."""
    end.link.close()
    if not end.pid:
        return
    try:  # noqa: SIM105  # contextlib costs a start 2 ms
        os.waitpid(end.pid, 0)
    except ChildProcessError:
        pass  # reaped with the orphans


def _fork_patiently() -> int:
    for _ in range(FORK_TRIES):
        try:
            return os.fork()
        except BlockingIOError:  # EAGAIN
            time.sleep(FORK_AGAIN_S)
    return os.fork()


def _be_runner(link_fd: int, inherited: list[bytes], lacks: frozenset[str]) -> NoReturn:
    """What the fork does, to its end."""
    status = 1
    try:
        set_wakeup_fd(-1)
        signal(SIGCHLD, SIG_DFL)
        # The engine's other links must end with the engine, not with this process.
        os.closerange(3, link_fd)
        os.closerange(link_fd + 1, HIGHEST_FD)
        gc.freeze()  # what is here stays; looking through it would only copy its pages
        Runner(link_fd, inherited, lacks).run()
        status = 0
    except BaseException:  # noqa: BLE001  # nothing may go on in a copy of the engine
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


_READERS: dict[int, Callable[[int, bytes], e.Event]] = {
    m.ENDED: lambda runner, payload: e.AttemptsEnded(runner, *f.reports_and_rows(payload)),
    m.PE_ENDED: lambda runner, payload: e.CommandEnded(
        runner, f.decode_per_engine_reports(payload)[1][0][1]
    ),
    m.RECALLED: lambda runner, payload: e.HandedBack(runner, f.decode_ids(payload)),
    m.RELEASED: lambda runner, payload: e.SlotsReleased(
        runner, f.decode_control(payload)["slots"]
    ),
}
