"""The loop of a runner: it starts the attempts of its slots, watches them, and reports.

What happens in which slot is decided by ``core/slots``; here it is done. A turn waits
for descriptors, tells the machine what happened, does what it asks for, and sends what
should leave.

Pipes of an attempt are watched once something has come, which is seen by a peek now and
then, or once it is ``YOUNG_S`` old. Most short tasks write nothing or little, which is
read when their shell has ended; watching them from the start would wake the loop for
each closed pipe.
"""

from __future__ import annotations

import os
import time
from select import EPOLLIN, POLLIN, epoll, poll

from overnight.core.slot_events import (
    AttemptsGiven,
    CloseAsked,
    CommandGiven,
    EndAsked,
    EndTree,
    Finish,
    HandBack,
    Limits,
    LimitsSet,
    OutputClosed,
    RecallAsked,
    Release,
    ShellEnded,
    SlotsSet,
    Start,
    StartFailed,
    TreeSeen,
)
from overnight.core.slots import NEVER, SEND_AFTER_S, Slots
from overnight.engine.exits import SignalExits
from overnight.engine.oom import OomCounter, raise_oom_score
from overnight.engine.polled import PolledLink
from overnight.engine.running import READS_AT_THE_END
from overnight.engine.starter import NO_ERRNO, CannotStart, Starter
from overnight.formats.link import (
    decode_attempts,
    decode_commands,
    decode_control,
    decode_ids,
    encode_control,
    encode_ids,
    encode_per_engine_reports,
    encode_reports,
    setup_from_mapping,
)
from overnight.guard.adopt import adopt_orphans
from overnight.guard.group_kin import GroupKin
from overnight.guard.kin import Kin
from overnight.guard.processes import open_pidfd, read_process
from overnight.guard.sweep import LOOK_S, Sweep
from overnight.model.attempt import Attempt
from overnight.model.messages import (
    ASSIGN,
    CLOSE,
    END,
    ENDED,
    NOTICE,
    PE_ENDED,
    PER_ENGINE_SLOT,
    RECALL,
    RECALLED,
    RELEASED,
    SETUP,
    SLOTS,
    START,
)
from overnight.model.report import NO_LEAK, Report
from overnight.model.task import NO_REPEAT, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.core.slot_events import Effect, Event
    from overnight.engine.running import Running, Stream
    from overnight.model.outcome import Outcome
    from overnight.model.report import Leak

YOUNG_S = 0.05
"""Age at which the pipes of an attempt begin to be watched in any case."""

PEEK_S = 0.005
"""How often those of younger ones are looked at: so long a full pipe can hold a task up."""

TIDY_S = 5.0
"""How often abandoned processes that have ended are reaped."""

PATIENCE_S = 10.0
"""How long an engine that does not read is waited for at the end."""

KILL_STRAYS_AFTER_S = 2.0
"""Between SIGTERM and SIGKILL for what is left when the runner leaves."""

SIGKILL = 9


class Runner:
    """One runner, from its fork to its end."""

    def __init__(self, link_fd: int, inherited: list[bytes], lacks: frozenset[str]) -> None:
        """Take over one end of a socketpair.

        Args:
            link_fd: To the engine.
            inherited: The environment that the engine was started with.
            lacks: What to do without although the kernel may have it: ``PIDFD``,
                ``SUBREAPER``, ``PROC``.
        """
        raise_oom_score()
        self._inherited = inherited
        self._poll = epoll()
        self._link = PolledLink(self._poll, link_fd, link_fd)
        self._exits = None if _has_pidfd(lacks) else SignalExits(self._poll)
        self._kin = _kin(lacks)
        self._oom = OomCounter()
        self._slots = Slots()
        self._starter: Starter | None = None
        self._leaves_children = True
        self._running: dict[int, Running] = {}  # by slot
        self._by_pidfd: dict[int, Running] = {}
        self._watched: dict[int, tuple[Running, Stream]] = {}  # by descriptor
        self._watch_at = NEVER
        self._command_at_start = False
        self._reports: list[Report] = []
        self._oldest_report_at = NEVER
        self._tidy_at = NEVER
        self._is_leaving = False

    def run(self) -> None:
        """Run until the engine closes it, or is gone; nothing of it is left then."""
        timeout_s: float | None = None
        while not self._is_leaving:
            ready = self._poll.poll(timeout_s)
            at = time.monotonic()
            events: list[Event] = []
            for fd, _ in ready:
                running = self._by_pidfd.pop(fd, None)
                if running is None:
                    self._on_ready(fd, events, at)
                else:
                    # Unregistered first: right after vfork the child may hold a copy of the
                    # descriptor for a moment, and the kernel would go on reporting it.
                    self._poll.unregister(fd)
                    os.close(fd)
                    self._ended(running, events, at)
            timeout_s = self._turn(events, at)
        self._end_strays()
        self._link.push_all(PATIENCE_S)

    def _on_ready(self, fd: int, events: list[Event], at: float) -> None:
        if fd in self._watched:
            self._on_output(fd, events)
        elif fd == self._link.read_fd:
            self._on_link(events)
        elif self._exits is not None:
            for running in self._exits.ended(fd):
                self._ended(running, events, at)

    def _turn(self, events: list[Event], at: float) -> float | None:
        """Do what these events ask for; how long to wait for the next ones."""
        slots = self._slots
        while events or at >= slots.wake_at:
            effects = slots.step(events, at)
            events = []
            self._perform(effects, events)
        if at >= self._watch_at:
            self._watch_grown(at)
        if at >= self._tidy_at:
            self._tidy(at)
        wake_at = min(slots.wake_at, self._tidy_at, self._watch_at)
        if self._reports:
            if slots.sends_now(len(self._reports), self._oldest_report_at, at):
                self._send()
            else:
                wake_at = min(wake_at, self._oldest_report_at + SEND_AFTER_S)
        if self._link.wants_write:
            self._link.push()
        return None if wake_at == NEVER else max(0.0, wake_at - at)

    # ---- what the engine says

    def _on_link(self, events: list[Event]) -> None:
        link = self._link
        for kind, payload in link.receive():
            events.append(_READERS[kind](self, payload))
        link.push()
        if link.closed:
            link.close()
            events += (EndAsked(None, "its engine is gone"), CloseAsked())

    def _read_setup(self, payload: bytes) -> Event:
        setup = setup_from_mapping(decode_control(payload))
        self._starter = Starter(setup, self._inherited, self._notice)
        self._leaves_children = setup.leaves_children
        return LimitsSet(Limits(
            setup.timeout_s, setup.kill_after_s, setup.late_output_s, setup.leaves_children
        ))

    def _read_slots(self, payload: bytes) -> Event:
        slots = decode_control(payload)["slots"]
        self._kin.is_alone = len(slots) == 1
        return SlotsSet(slots)

    def _read_command(self, payload: bytes) -> Event:
        (command,) = decode_commands(payload)
        self._command_at_start = command.at_start
        task = Task(command.number, command.line, NO_REPEAT, command.command)
        return CommandGiven(Attempt(task, 1))

    def _read_end(self, payload: bytes) -> Event:
        return EndAsked(**decode_control(payload))

    def _notice(self, level: str, text: str) -> None:
        self._link.send(NOTICE, encode_control({"level": level, "text": text}))

    # ---- what happens to the processes

    def _ended(self, running: Running, events: list[Event], at: float) -> None:
        """A shell has ended: plainly, as nearly all do, or with something left to look at."""
        running.elapsed_s = max(0.0, at - running.started_mono)
        code, left = self._kin.ended(running)
        is_drained = running.drain()
        turn = None
        if is_drained and left == 0 <= code:
            turn = self._slots.turn_over(running.slot, code, at)
        if turn is None:
            events.append(self._shell_ended(running, code, left, is_drained))
            return
        outcome, attempt = turn
        if running.is_bare:
            os.close(running.out_fd)
            os.close(running.err_fd)
            out = err = NO_LEAK
        else:
            out, err = self._end_streams(running, 0)
        self._reports.append(self._report_on(running, outcome, out, err, 0))
        if self._oldest_report_at == NEVER:
            self._oldest_report_at = at
        if attempt is None:
            del self._running[running.slot]
        else:
            self._start(running.slot, attempt, events)

    def _shell_ended(self, running: Running, code: int, left: int, is_drained: bool) -> Event:
        running.is_over = True
        if not is_drained:
            self._watch(running)
        by_oom_killer = code == -SIGKILL and self._oom.has_grown()
        return ShellEnded(running.slot, code, left, not is_drained, by_oom_killer)

    def _on_output(self, fd: int, events: list[Event]) -> None:
        running, stream = self._watched[fd]
        stream.read(1)  # one buffer a turn: a task that floods must not starve the others
        if stream.is_open:
            return
        self._unwatch(fd)
        if running.is_over and not any(each.is_open for each in running.streams()):
            events.append(OutputClosed(running.slot))

    def _watch(self, running: Running) -> None:
        for stream in running.streams():
            if stream.is_open and stream.fd not in self._watched:
                self._watched[stream.fd] = running, stream
                self._poll.register(stream.fd, EPOLLIN)

    def _unwatch(self, fd: int) -> None:
        # Before it is closed: a child between vfork and exec may hold a copy of it, and
        # the kernel would go on reporting a number that is somebody else's by then.
        if self._watched.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def _watch_grown(self, at: float) -> None:
        """Watch the pipes of attempts that have written something, or are not young any more."""
        self._oom.refresh(at)
        self._watch_at = NEVER
        peek = poll()
        young: dict[int, Running] = {}
        for running in self._running.values():
            if not running.is_bare:
                continue
            if at - running.started_mono >= YOUNG_S:
                self._watch(running)
                continue
            for fd in (running.out_fd, running.err_fd):
                peek.register(fd, POLLIN)
                young[fd] = running
        if young:
            self._watch_at = at + PEEK_S
            for fd, mask in peek.poll(0):
                if mask & POLLIN:
                    self._watch(young[fd])

    def _tidy(self, at: float) -> None:
        self._kin.reap_strays()
        self._tidy_at = at + TIDY_S if self._running else NEVER

    # ---- what the machine asks for

    def _perform(self, effects: Sequence[Effect], events: list[Event]) -> None:
        to_end: dict[int, EndTree] = {}  # by slot; all of them take one look at /proc
        for effect in effects:
            if type(effect) is Start:
                self._start(effect.slot, effect.attempt, events)
            elif type(effect) is Finish:
                to_end.pop(effect.slot, None)  # it has ended by itself; the slot may be another's
                self._finish(effect)
            elif type(effect) is EndTree:
                to_end[effect.slot] = effect
            elif type(effect) is HandBack:
                self._link.send(RECALLED, encode_ids(effect.ids))
            elif type(effect) is Release:
                self._link.send(RELEASED, encode_control({"slots": effect.slots}))
            else:
                self._is_leaving = True
        if to_end:
            self._end_trees(list(to_end.values()), events)

    def _start(self, slot: int, attempt: Attempt, events: list[Event]) -> None:
        try:
            if self._starter is None:
                raise CannotStart(NO_ERRNO, "the engine was not set up")
            running = self._starter.start(slot, attempt)
        except CannotStart as error:
            self._running.pop(slot, None)
            events.append(StartFailed(slot, error.code, error.reason))
            return
        self._running[slot] = running
        self._kin.add(running)
        if self._exits is None:
            fd = os.pidfd_open(running.pid)
            self._by_pidfd[fd] = running
            self._poll.register(fd, EPOLLIN)
        else:
            self._exits.watch(running)
        if self._watch_at == NEVER:
            self._watch_at = running.started_mono + PEEK_S
            if self._tidy_at == NEVER:
                self._tidy_at = running.started_mono + TIDY_S

    def _end_trees(self, effects: Sequence[EndTree], events: list[Event]) -> None:
        wanted = [(self._running[effect.slot], effect.signal) for effect in effects]
        for effect, left in zip(effects, self._kin.end_trees(wanted)):
            events.append(TreeSeen(effect.slot, left))

    def _finish(self, effect: Finish) -> None:
        slot, attempt = effect.slot, effect.attempt
        running = self._running.pop(slot, None)
        if running is None:
            report = Report(
                attempt.task.id, attempt.number, effect.outcome, -1, time.time(), 0.0, slot=slot
            )
        else:
            report = self._report(running, effect)
        if slot == PER_ENGINE_SLOT:
            row = (self._command_at_start, report)
            self._link.send(PE_ENDED, encode_per_engine_reports(0, (row,)))
        else:
            self._reports.append(report)
            self._oldest_report_at = min(self._oldest_report_at, time.monotonic())

    def _report(self, running: Running, effect: Finish) -> Report:
        left_running = self._kin.let_go(running)
        out, err = self._end_streams(running, left_running)
        return self._report_on(running, effect.outcome, out, err, left_running)

    @staticmethod
    def _report_on(
        running: Running, outcome: Outcome, out: Leak, err: Leak, left_running: int
    ) -> Report:
        usage = running.usage
        cpu_s, rss_kib = (usage.ru_utime + usage.ru_stime, usage.ru_maxrss) if usage else (0.0, 0)
        attempt = running.attempt
        return Report(
            attempt.task.id, attempt.number, outcome, running.pid, running.started_at,
            running.elapsed_s, out, err, cpu_s, rss_kib, running.slot, False, left_running,
        )

    def _end_streams(self, running: Running, left_running: int) -> tuple[Leak, Leak]:
        out, err = running.streams()
        return self._end_stream(out, left_running), self._end_stream(err, left_running)

    def _end_stream(self, stream: Stream, left_running: int) -> Leak:
        if stream.is_open:
            stream.read(READS_AT_THE_END)
        if stream.fd in self._watched:
            self._unwatch(stream.fd)
        leak = stream.leak() if stream.count else NO_LEAK
        stream.close(left_running > 0)
        return leak

    def _send(self) -> None:
        self._link.send(ENDED, encode_reports(0, self._reports))
        self._reports = []
        self._oldest_report_at = NEVER

    def _end_strays(self) -> None:
        """At the end: what nobody could be named for, and what per-engine commands started."""
        if self._leaves_children:
            return
        if self._kin.unattributed:
            pids = sorted(self._kin.unattributed)
            self._notice("WARNING", f"processes of no task in particular are ended: {pids}")
        sweep = Sweep(self._kin.strays, KILL_STRAYS_AFTER_S, time.monotonic())
        sweep.look(time.monotonic())
        while not sweep.is_over:
            time.sleep(LOOK_S)
            sweep.look(time.monotonic())


def _has_pidfd(lacks: frozenset[str]) -> bool:
    pidfd = None if "PIDFD" in lacks else open_pidfd(os.getpid())
    if pidfd is None:
        return False
    os.close(pidfd)
    return True


def _kin(lacks: frozenset[str]) -> Kin | GroupKin:
    sees_proc = "PROC" not in lacks and read_process(os.getpid()) is not None
    if "SUBREAPER" not in lacks and adopt_orphans() and sees_proc:
        try:
            return Kin()
        except OSError:
            pass  # this kernel does not list children
    return GroupKin(sees_proc)


_READERS: dict[int, Callable[[Runner, bytes], Event]] = {
    SETUP: Runner._read_setup,
    SLOTS: Runner._read_slots,
    ASSIGN: lambda _, payload: AttemptsGiven(decode_attempts(payload)),
    START: Runner._read_command,
    RECALL: lambda _, payload: RecallAsked(decode_ids(payload)),
    END: Runner._read_end,
    CLOSE: lambda _, payload: CloseAsked(),
}
