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
from overnight.errors import LinkBroken, NoResources
from overnight.formats import link as frames
from overnight.formats import rows
from overnight.formats.spool import parse_spool
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


NOISE_SHOWN = 200


class NoLink:
    """In place of the link to an engine that is away: takes nothing, gives nothing."""

    read_fd = write_fd = -1
    closed = True
    wants_write = False
    noise = b""

    def receive(self) -> list[tuple[int, bytes]]:
        """Nothing."""
        return []

    def send(self, kind: int, payload: bytes) -> None:
        """Drop it: what matters is said again when the engine is back."""

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


class Proof:
    """What was found where an engine was looked for.

    Attributes:
        is_ended: Nothing of it runs any more.
        reason: In words.
    """

    __slots__ = ("is_ended", "reason")

    def __init__(self, is_ended: bool, reason: str) -> None:
        self.is_ended = is_ended
        self.reason = reason


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
        trouble: Why it cannot be used, in its own or our words; empty while it can.
        is_refused: It has another driver, and obeys that.
        proof: What was found instead of it, the last time it was looked for.
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
        self.trouble = ""
        self.is_refused = False
        self.proof: Proof | None = None
        self.started_mono = started_mono
        self.has_closed = False
        self.hello: dict[str, Any] | None = None
        self._tell = tell
        self._recorded = recorded
        self.has_joined = False
        self.released: set[int] = set()  # tasks that were allowed to leave processes
        self._taken: frozenset[int] | None = None  # what it had in hand when it was taken
        self._running: dict[int, Attempt] = {}  # by task
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
            m.CANNOT: self._on_cannot,
            m.PROOF: self._on_proof,
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
        self.trouble, self.proof = "", None
        self.hello = None
        self._taken = None
        self._running, self._kept = {}, []
        self._is_returning = self.has_joined

    # -- where its link is dialled from here ------------------------------------------------

    @property
    def may_live_on(self) -> bool:
        """Whether it may run tasks though its link has ended."""
        return self.has_joined or self.handle.is_survivor

    @property
    def is_in_reach(self) -> bool:
        """Whether it is ours, and has said all that it kept while it had no link."""
        return self.has_joined and not self._is_returning

    def begin(self, now: float) -> None:
        """Have it started.

        Raises:
            NoResources: That could not be done.
        """
        self.started_mono = now
        self.handle.begin()
        self._send_opening()

    def redial(self, now: float) -> None:
        """Look for it over a new link.

        Raises:
            NoResources: That could not be tried.
        """
        self.started_mono = now
        self.handle.redial(self.released)
        self.reconnect(Link(self.handle.read_fd, self.handle.write_fd, awaits_magic=True))
        self._send_opening()

    def _send_opening(self) -> None:
        assert isinstance(self.link, Link)
        for data in self.handle.opening:
            self.link.send_ahead(data)

    def why_ended(self) -> str:
        """Why its link has ended, as well as anybody knows."""
        return self.trouble or self.handle.words()

    # -- what it says -----------------------------------------------------------------------

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
            try:
                events += handler(payload)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise LinkBroken(
                    f"an engine sent a frame of kind {kind} that is not understood: {error!r}"
                ) from error
        return events

    def _on_hello(self, payload: bytes) -> list[Event]:
        hello = self.hello = frames.decode_control(payload)
        if noise := self.link.noise:
            self._tell("info", f"{self.handle.node} printed {len(noise)} bytes before its engine"
                               f" began: {noise[:NOISE_SHOWN]!r}")
        if hello["generation"] > self.handle.setup.generation:
            self.is_refused, self.link.closed = True, True
            self.trouble = "it has a later driver"
            return []
        try:
            for text in self.handle.meet(hello):
                self._tell("warning", text)
        except NoResources as error:
            self.trouble, self.link.closed = error.what, True
            return []
        self.link.send(m.SETUP, frames.encode_control(frames.setup_to_mapping(self.handle.setup)))
        return self._joined_when_whole()

    def _on_cannot(self, payload: bytes) -> list[Event]:
        self.trouble = str(frames.decode_control(payload)["reason"])
        self.link.closed = True
        return []

    def _on_proof(self, payload: bytes) -> list[Event]:
        """It was looked for, and is gone; what it wrote down comes with the proof."""
        found = frames.decode_control(payload)
        self.proof = Proof(bool(found["is_ended"]), str(found["reason"]))
        self.trouble, self.link.closed = self.proof.reason, True
        spools = [parse_spool(data) for data in found["spools"]]
        new = self._recorded.news([each.kept for each in spools])
        events: list[Event] = []
        for spooled, pairs in zip(spools, new, strict=True):
            if self.has_joined:  # only what the scheduler still awaits is news to it
                events.append(AttemptsEnded(self.id, 0, [report for _, report in spooled.kept]))
                pairs = []
            events.append(self._kept_reports(0, pairs, self._untold(spooled.commands)))
        return events

    def _on_running(self, payload: bytes) -> list[Event]:
        self._running |= {each.task.id: each for each in rows.decode_attempts(payload)}
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
        running = list(self._running.values())
        if self._taken is not None:
            running = [attempt for attempt in running if attempt.task.id in self._taken]
        return [*kept, EngineJoined(
            self.id, self.handle.node, self.handle.setup.slots, bool(hello["started"]),
            running, bool(hello["closing"]), self.handle.setup.rank,
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
        if self.has_joined:
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
        pairs = self._untold(reports)
        if self.has_joined:
            return [PerEngineEnded(self.id, seq, pairs)]
        return self._after_kept(self._kept_reports(seq, (), pairs))

    def _untold(
        self, reports: Sequence[tuple[bool, Report]]
    ) -> list[tuple[PerEngine, Report]]:
        """Those of per-engine commands that have no row and were not told by this engine."""
        pairs = [(self._command(at_start, report.task_id), report)
                 for at_start, report in reports if not self._recorded.has_command(report)
                 and (at_start, report.task_id) not in self._told]
        self._told.update((at_start, report.task_id) for at_start, report in reports)
        return pairs

    def _command(self, at_start: bool, number: int) -> PerEngine:
        given = self._commands.get((at_start, number))
        return given or self._recorded.command(at_start, number)

    def _on_notice(self, payload: bytes) -> list[Event]:
        notice = frames.decode_control(payload)
        if notice.get("is_refused"):
            self.is_refused, self.link.closed = True, True
            self.trouble = "it has a later driver"
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
        if self.released:
            # What an earlier attempt left there cannot be told from what a further one starts.
            self.released.difference_update([attempt.task.id for attempt in attempts])
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
