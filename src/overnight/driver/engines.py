"""The driver's end of each engine: frames in, events out; effects in, frames out."""

from __future__ import annotations

from overnight.core.events import (
    AttemptsEnded,
    AttemptsRecalled,
    EngineClosed,
    EngineJoined,
    EngineOpened,
    EngineResized,
    EngineReturned,
    KeptReports,
    PerEngineEnded,
)
from overnight.errors import LinkBroken
from overnight.formats import link as frames
from overnight.formats import rows
from overnight.model import messages as m
from overnight.model.task import PerEngine
from overnight.net.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from overnight.core.events import Event
    from overnight.core.recorded import Recorded
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report
    from overnight.ports import EngineHandle


class NoLink:
    """In place of the link to an engine that is away: takes nothing, gives nothing."""

    read_fd = write_fd = -1
    closed = True
    wants_write = False

    def receive(self) -> list[tuple[int, bytes]]:
        """Nothing."""
        return []

    def send(self, kind: int, payload: bytes) -> None:
        """Drop it: what matters is said again when the engine is back."""

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


class EngineEnd:
    """One engine, seen from the driver.

    Attributes:
        id: In this driver.
        handle: Its process.
        link: To it.
        has_closed: It said CLOSED: its end is in order.
        started_mono: When its process was started; it has to say hello in time.
        hello: What it said of itself, once it has.
        has_joined: The scheduler knows of it, and of all that it kept.
        calls_again: It has joined by itself: when its link has ended, it may come back.
    """

    def __init__(
        self, id: int, handle: EngineHandle, started_mono: float,
        tell: Callable[[str, str], None], recorded: Recorded, link: Link | NoLink | None = None,
    ) -> None:
        self.id = id
        self.handle = handle
        self.calls_again = link is not None
        self.link: Link | NoLink = link or Link(
            handle.read_fd, handle.write_fd, awaits_magic=True
        )
        self.started_mono = started_mono
        self.has_closed = False
        self.hello: dict[str, Any] | None = None
        self._tell = tell
        self._recorded = recorded
        self.has_joined = False
        self.released: set[int] = set()  # tasks that were allowed to leave processes
        self._taken: frozenset[int] | None = None  # what it had in hand when it was taken
        self._running: list[Attempt] = []
        self._kept: list[KeptReports] = []  # what must be known before it may be given anything
        self._commands: dict[tuple[bool, int], PerEngine] = {}  # that this driver gave
        self._told: set[tuple[bool, int]] = set()  # of those, what has been reported
        self._is_returning = False  # its link was cut, and it has not said all that it kept
        self._handlers: dict[int, Callable[[bytes], list[Event]]] = {
            m.HELLO: self._on_hello,
            m.RUNNING: self._on_running,
            m.OPENED: lambda _: [EngineOpened(self.id)],
            m.ENDED: self._on_ended,
            m.KEPT: self._on_kept,
            m.PE_ENDED: self._on_per_engine_ended,
            m.RECALLED: lambda payload: [AttemptsRecalled(self.id, rows.decode_ids(payload))],
            m.NOTICE: self._on_notice,
            m.TAKEN: self._on_taken,
            m.CLOSED: self._on_closed,
            m.ROOM: self._on_room,
            m.PONG: lambda _: [],
        }

    def receive(self) -> list[Event]:
        """What it has said since, as events.

        Raises:
            LinkBroken: It spoke no language of ours.
        """
        return self.take(self.link.receive())

    def reconnect(self, link: Link) -> None:
        """It is back, over another link, and begins with HELLO once more."""
        self.link = link
        self.hello = None
        self._taken = None
        self._running, self._kept = [], []
        self._is_returning = self.has_joined

    def take(self, said: Sequence[tuple[int, bytes]]) -> list[Event]:
        """These frames of it, as events.

        Raises:
            LinkBroken: It spoke no language of ours.
        """
        events: list[Event] = []
        for kind, payload in said:
            handler = self._handlers.get(kind)
            if handler is None:
                raise LinkBroken(f"an engine sent a frame of kind {kind}")
            events += handler(payload)
        return events

    def _on_hello(self, payload: bytes) -> list[Event]:
        self.hello = frames.decode_control(payload)
        self.link.send(m.SETUP, frames.encode_control(frames.setup_to_mapping(self.handle.setup)))
        return self._joined_when_whole()

    def _on_running(self, payload: bytes) -> list[Event]:
        self._running += rows.decode_attempts(payload)
        return []

    def _joined_when_whole(self) -> list[Event]:
        """Let it join when it is known what it runs and what it kept.

        Given a task before that, an engine that lived on could run it a second time; and
        until it says that it is taken it may leave, with what it ran in its spool.
        """
        hello = self.hello
        if hello is None:
            return []
        if self._is_returning:
            return self._returned_when_whole(hello)
        if self.has_joined:
            return []
        is_new = hello["generation"] == 0  # it has had no other driver
        if not is_new and self._taken is None:
            return []
        self.has_joined = True
        kept, self._kept = self._kept, []
        for reports, new in zip(
            kept, self._recorded.news([each.pairs for each in kept]), strict=True
        ):
            reports.pairs = new
        running = self._running
        if self._taken is not None:
            running = [attempt for attempt in running if attempt.task.id in self._taken]
        return [*kept, EngineJoined(
            self.id, self.handle.node, self.handle.setup.slots, bool(hello["started"]),
            running, bool(hello["closing"]),
        )]

    def _returned_when_whole(self, hello: dict[str, Any]) -> list[Event]:
        if self._taken is None:
            return []
        self._is_returning = False
        return [EngineReturned(
            self.id, sorted(self._taken), bool(hello["started"]), bool(hello["closing"])
        )]

    def _after_kept(self, kept: KeptReports) -> list[Event]:
        if self.has_joined:
            return [kept]
        self._kept.append(kept)
        return []

    def _on_taken(self, payload: bytes) -> list[Event]:
        self._taken = frozenset(rows.decode_ids(payload))
        return self._joined_when_whole()

    def _on_ended(self, payload: bytes) -> list[Event]:
        seq, reports = rows.decode_reports(payload)
        for report in reports:
            if report.left_running:
                self.released.add(report.task_id)
        return [AttemptsEnded(self.id, seq, reports)]

    def _noted(self, report: Report) -> Report:
        if report.left_running:
            self.released.add(report.task_id)
        return report

    def _on_kept(self, payload: bytes) -> list[Event]:
        seq, pairs = rows.decode_kept(payload)
        if self.has_joined and self.calls_again:
            # It says again what this driver may have had before the cut: only what is still
            # awaited is news, and the scheduler knows what that is.
            return [AttemptsEnded(self.id, seq, [self._noted(report) for _, report in pairs])]
        return self._after_kept(self._kept_reports(seq, pairs, ()))

    def _kept_reports(
        self, seq: int, pairs: Sequence[tuple[Attempt, Report]],
        commands: Sequence[tuple[PerEngine, Report]],
    ) -> KeptReports:
        return KeptReports(
            self.id, seq, pairs, self.handle.node, self.handle.setup.rank, commands
        )

    def _on_per_engine_ended(self, payload: bytes) -> list[Event]:
        seq, reports = rows.decode_per_engine_reports(payload)
        pairs = [(self._command(at_start, report.task_id), report)
                 for at_start, report in reports if not self._recorded.has_command(report)
                 and (at_start, report.task_id) not in self._told]
        self._told.update((at_start, report.task_id) for at_start, report in reports)
        if self.has_joined:
            return [PerEngineEnded(self.id, seq, pairs)]
        return self._after_kept(self._kept_reports(seq, (), pairs))

    def _command(self, at_start: bool, number: int) -> PerEngine:
        given = self._commands.get((at_start, number))
        return given or self._recorded.command(at_start, number)

    def _on_notice(self, payload: bytes) -> list[Event]:
        notice = frames.decode_control(payload)
        self._tell(str(notice["level"]).lower(), f"engine on {self.handle.node}: {notice['text']}")
        return []

    def _on_room(self, payload: bytes) -> list[Event]:
        slots = int(frames.decode_control(payload)["slots"])
        self.handle.setup.slots = slots  # it may not have joined yet
        return [EngineResized(self.id, slots)] if self.has_joined else []

    def _on_closed(self, payload: bytes) -> list[Event]:
        self.has_closed = True
        return [EngineClosed(self.id)]

    # -- what the driver is asked to do with it ---------------------------------------------

    def open(self, commands: Sequence[PerEngine]) -> None:
        """Hand over the per-engine commands; it runs the START ones and opens."""
        self._commands = {(c.at_start, c.number): c for c in commands}
        self.link.send(m.START, rows.encode_commands(commands))

    def assign(self, attempts: Sequence[Attempt]) -> None:
        """Give it attempts."""
        self.link.send(m.ASSIGN, rows.encode_attempts(attempts))

    def recall(self, task_ids: Sequence[int]) -> None:
        """Ask back what it has not started."""
        self.link.send(m.RECALL, rows.encode_ids(task_ids))

    def end_attempts(self, reason: str, at_once: bool) -> None:
        """Have the trees of all its attempts ended."""
        self.link.send(m.END, frames.encode_control({
            "ids": None, "reason": reason, "signal": 9 if at_once else 15,
            "kill_after_s": 0.0 if at_once else self.handle.setup.kill_after_s,
            "timed_out": False,
        }))

    def set_slots(self, slots: int) -> None:
        """Let it have that many slots."""
        setup = self.handle.setup
        setup.slots = slots
        if not any(setup.slot_variables):
            setup.slot_variables = ()  # one for each of the slots that it had says nothing
        self.link.send(m.SETUP, frames.encode_control(frames.setup_to_mapping(self.handle.setup)))

    def close(self, runs_stop: bool) -> None:
        """Let it finish and leave."""
        self.link.send(m.CLOSE, frames.encode_control({"run_stop": runs_stop}))

    def acknowledge(self, seq: int) -> None:
        """Tell it what it may forget."""
        self.link.send(m.ACK, rows.encode_number(seq))
