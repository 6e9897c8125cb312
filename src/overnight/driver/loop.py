"""The driver's loop: take events, step the scheduler, perform what it asks for.

It decides nothing. A turn is: what arrived, one step, records in one write, then the
rest in order, then what waits to leave. Everything comes in through descriptors or
through ``post``, the one door that other threads and signal handlers may use.
"""

from __future__ import annotations

import os
import time
from collections import deque

from overnight.core import effects as fx
from overnight.core.events import (
    END,
    KILL,
    EngineLost,
    EnginesStarted,
    EngineStarting,
    HostMeasured,
    ItemsRead,
    RecordFailed,
    RecordMended,
    SourceFailed,
    StopAsked,
)
from overnight.driver.engines import EngineEnd
from overnight.driver.reach import Reach
from overnight.driver.record import Flushed
from overnight.errors import (
    LinkBroken,
    ListRefused,
    NoResources,
    OvernightError,
    ResumeRefused,
)
from overnight.net.poller import READ, WRITE, Poller
from overnight.ports import Survivors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overnight.core.events import Event
    from overnight.core.scheduler import Scheduler
    from overnight.core.verdict import Verdict
    from overnight.driver.control import Control
    from overnight.driver.engines import NoLink
    from overnight.driver.guests import Guests
    from overnight.driver.record import Record
    from overnight.net.link import Link
    from overnight.ports import (
        Allocation,
        Context,
        EngineHandle,
        JoinedHandle,
        Joins,
        Observer,
        Source,
    )

HELLO_WITHIN_S = 60.0
FAR_HELLO_WITHIN_S = 120.0
"""Login files may wait for a lock, or for a dead file server, and get by in the end."""

LEAVE_WITHIN_S = 10.0
LOOK_EVERY_S = 0.001
MEASURE_EVERY_S = 1.0
READ_AGAIN_S = 0.5
SAY_FAULT_EVERY_S = 60.0
HEED_STOP_EVERY_S = 0.2


class Notice:
    """Something to tell a person, from a thread that must not tell it itself."""

    __slots__ = ("level", "text")

    def __init__(self, level: str, text: str) -> None:
        self.level = level
        self.text = text


class Errand:
    """Something to be done in the loop's own thread, for another."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run


class Driver:
    """Runs one list to its verdict."""

    def __init__(
        self, scheduler: Scheduler, source: Source, record: Record,
        contexts: Sequence[Context], observers: Sequence[Observer],
        measures_host: bool = False, survivors: Survivors | None = None,
        joins: Joins | None = None, awaited: Sequence[JoinedHandle] = (),
        opens_door: Callable[[], None] | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> None:
        """Start nothing yet.

        Args:
            scheduler: What decides.
            source: Where items come from.
            record: Where results go; its faults reach the scheduler from here.
            contexts: What gives engines, when the first task wants one.
            observers: Who is told.
            measures_host: Starts depend on load or memory: measure them.
            survivors: What outlived an earlier driver of this run, if it had one.
            joins: Takes in engines that call; None where none can.
            awaited: Engines that an earlier driver had taken in so, and that may call.
            opens_door: Called once, after the first assignment: others may join from then on.
            allocations: Those of the contexts whose nodes end and can be given back.
        """
        self.scheduler = scheduler
        self._source = source
        self._record = record
        self._contexts = contexts
        self._observers = observers
        self._measures_host = measures_host
        self._survivors = survivors or Survivors()
        self._joins = joins
        self._awaited = awaited
        self._opens_door = opens_door
        self.guests: Guests | None = None  # made when there is any
        self.control: Control | None = None  # who answers what users ask; given from outside
        self._allocations = allocations
        self._engines: dict[int, EngineEnd] = {}
        self._fds: dict[int, EngineEnd] = {}  # by descriptor awaited
        self._leaving: list[EngineEnd] = []  # their link has ended in order
        self._reach = Reach(self)
        self._unproved: set[EngineEnd] = set()  # their link has ended, and a thread looks
        self._left_out: set[str] = set()  # nodes on which contexts start no other engine
        self._engine_count = 0
        # Engines that are taken over keep their ranks; new ones get others.
        known = (*self._survivors.engines, *awaited)
        self._rank = max((each.setup.rank for each in known), default=-1)
        self._poller = Poller()
        self._events: deque[Event | Flushed | Notice | Errand] = deque()
        self._bell_out, self._bell_in = os.pipe()
        os.set_blocking(self._bell_in, False)
        os.set_blocking(self._bell_out, False)
        self._poller.watch(self._bell_out, READ)
        self._wanted_items = 0
        self._read_again_at: float | None = None  # the source had nothing yet
        self._wake_at: float | None = None
        self._measure_at = 0.0
        self._force_at: float | None = None
        self._gives_up = False  # asked to stop at once: proof is not waited for
        self._said_fault_at = 0.0
        self._verdict: Verdict | None = None
        self._clock = _Clock()

    def post(self, event: Event | Flushed | Notice | Errand) -> None:
        """Hand in an event, from any thread or from a signal handler."""
        self._events.append(event)
        try:
            os.write(self._bell_in, b"e")
        except (BlockingIOError, ValueError):
            pass  # the bell is full: it rings anyway
        except OSError:
            pass  # the run is over and nobody waits for events

    def tell(self, level: str, text: str) -> None:
        """Tell all observers something a person should know."""
        for observer in self._observers:
            observer.told(level, text)

    def _tell_from_thread(self, level: str, text: str) -> None:
        self.post(Notice(level, text))

    def run(self) -> Verdict:
        """Run the list; returns when nothing of it is left running."""
        try:
            self._take_over()
            for allocation in self._allocations:
                allocation.watch(self.post, self._tell_from_thread)
            while self._verdict is None:
                self._turn()
            self._say_goodbye()
        finally:
            self._shut()
        return self._verdict

    def _take_over(self) -> None:
        """Begin with what outlived an earlier driver: engines, and spools of engines."""
        for handle in self._survivors.engines:
            self._add_engine(handle, "attached")  # also a far one: it was dialled to be found
        self._events.extend(self._survivors.reports)
        if self._awaited:
            self._guests_of(self._awaited)

    # -- one turn -------------------------------------------------------------------

    def _turn(self) -> None:
        now = self._clock.now()
        self._wake_at = None
        self._perform(self.scheduler.step(now, self._take_events(now)), now)
        for event in self._record.turn(now):
            self._note_record(event, now)
        self._reach.look_after(now)
        for engine in list(self._engines.values()):
            if engine.link.wants_write:
                engine.link.flush()
            self._watch(engine)
        if self._verdict is None:
            self._wait(now)

    def _take_events(self, now: float) -> list[Event]:
        events: list[Event] = []
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Notice):
                self.tell(event.level, event.text)
            elif isinstance(event, Errand):
                event.run()
            elif isinstance(event, Flushed):
                for consequence in self._record.flushed(event, now):
                    self._note_record(consequence, now)
                self._read_items()
            else:
                if type(event) is StopAsked and event.how >= END:
                    self._force_at = now + self._grace_s()
                    self._gives_up = event.how >= KILL
                events.append(event)
        if self._measures_host and now >= self._measure_at:
            self._measure_at = now + MEASURE_EVERY_S
            events.append(measure_host())
        return events

    def _note_record(self, event: Event, now: float) -> None:
        self._events.append(event)
        if type(event) is RecordFailed:
            self._said_fault_at = now
            self.tell("error", record_fault_text(event.reason))
        elif type(event) is RecordMended:
            self.tell("warning", "the record can be written again: the run goes on")
            if self._record.loss:
                self.tell("error", rows_lost_text(self._record.loss))

    def _wait(self, now: float) -> None:
        timeout = 0.0 if self._events else self._timeout(now)
        for fd, mask in self._poller.wait(timeout):
            if fd == self._bell_out:
                _drain(fd)
            elif fd in self._fds:
                self._hear(self._fds[fd], mask)
            elif self.guests is not None and self.guests.knows(fd):
                self.guests.hear(fd)
            elif self.control is not None and self.control.knows(fd):
                self.control.hear(fd)
            else:
                self._poller.forget(fd)
                self._read_items()
        if self._read_again_at is not None and self._clock.now() >= self._read_again_at:
            self._read_items()
        self._look_after_engines()

    def _timeout(self, now: float) -> float | None:
        moments = [
            self._wake_at, self._record.next_turn_at(), self._force_at, self._read_again_at,
            self._reach.wake_at(),
        ]
        moments += [observer.turn(now) for observer in self._observers]
        if self._measures_host:
            moments.append(self._measure_at)
        if any(e.hello is None for e in self._engines.values()):
            moments.append(now + 1.0)
        if self.guests is not None:
            moments.append(self.guests.wake_at(now))
        if self._record.fault:
            self._say_fault_again(now)
        due = [moment for moment in moments if moment is not None]
        return max(0.0, min(due) - now) if due else None

    def _say_fault_again(self, now: float) -> None:
        if now - self._said_fault_at >= SAY_FAULT_EVERY_S:
            self._said_fault_at = now
            self.tell("error", record_fault_text(self._record.fault))

    # -- effects --------------------------------------------------------------------

    def _perform(self, effects: Sequence[fx.Effect], now: float) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is fx.Record:
                self._perform_record(effect)  # type: ignore[arg-type]  # kind says so
            elif kind is fx.Assign:
                self._perform_assign(effect)  # type: ignore[arg-type]
            else:
                self._perform_rare(effect)

    def _perform_record(self, effect: fx.Record) -> None:
        self._record.write(effect.entries, effect.number)
        for event in self._record.turn(self._clock.now()):
            self._note_record(event, self._clock.now())
        for observer in self._observers:
            observer.recorded(effect.entries)

    def _perform_assign(self, effect: fx.Assign) -> None:
        engine = self._engines.get(effect.engine)
        if engine is not None:
            engine.assign(effect.attempts)
        for observer in self._observers:
            observer.assigned(effect.engine, effect.attempts)
        if self._opens_door is not None:
            opens_door, self._opens_door = self._opens_door, None
            opens_door()

    def _perform_rare(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Read):
            self._wanted_items = effect.count
            self._read_items()
        elif isinstance(effect, fx.WakeAt):
            self._wake_at = min(self._wake_at or effect.at, effect.at)
        elif isinstance(effect, fx.MakeDurable):
            self._record.hasten()
        elif isinstance(effect, fx.StartEngines):
            self._start_engines()
        elif isinstance(effect, fx.Tell):
            self.tell(effect.level, effect.text)
        elif isinstance(effect, fx.LeaveAlone):
            self._leave_out_of_it(effect)
        elif isinstance(effect, fx.GiveBack):
            self._give_back(effect.engine)
        elif isinstance(effect, fx.Finish):
            self._verdict = effect.verdict
        else:
            self._perform_on_engine(effect)

    def _give_back(self, id: int) -> None:
        for engine in (*self._engines.values(), *self._leaving):
            if engine.id == id:
                for allocation in self._allocations:
                    allocation.give_back(engine.handle)
                    if engine.handle.node == allocation.driver_node:
                        self._left_out.discard(engine.handle.node)  # it stays, and may be needed

    def _perform_on_engine(self, effect: fx.Effect) -> None:
        engine = self._engines.get(effect.engine)  # type: ignore[union-attr]  # the rest have one
        if engine is None or engine.hello is None:
            return  # it is looked for: an ACK is due again when it has said what it kept
        if isinstance(effect, fx.Acknowledge):
            engine.acknowledge(effect.seq)
        elif isinstance(effect, fx.OpenEngine):
            engine.open(effect.commands)
        elif isinstance(effect, fx.Recall):
            engine.recall(effect.task_ids)
        elif isinstance(effect, fx.EndAttempts):
            engine.end_attempts(effect.reason, effect.at_once)
        elif isinstance(effect, fx.SetSlots):
            engine.set_slots(effect.slots)
        elif isinstance(effect, fx.CloseEngine):
            self.leave_out(engine.handle.node)  # it was told to leave: for good
            engine.close(effect.runs_stop)

    # -- the source -----------------------------------------------------------------

    def _read_items(self) -> None:
        if not self._wanted_items or self._record.is_behind:
            return
        try:
            items, has_ended = self._source.read(self._wanted_items)
        except OvernightError as error:
            self._wanted_items = 0
            self._events.append(SourceFailed(error))
            return
        except OSError as error:
            self._wanted_items = 0
            self._events.append(SourceFailed(ListRefused(
                f"the list cannot be read any further: {error.strerror}",
                kept="what was started goes on to its end; nothing further is started",
            )))
            return
        self._read_again_at = None
        if not items and not has_ended:
            fd = self._source.fileno()
            if fd is not None:
                self._poller.watch(fd, READ)
            else:
                self._read_again_at = self._clock.now() + READ_AGAIN_S
            return
        self._wanted_items = 0
        self._events.append(ItemsRead(items, has_ended))

    # -- engines --------------------------------------------------------------------

    def device_slots(self, engine: int) -> int | None:
        """Slots that an engine's devices were divided among; None where it has none."""
        found = self._engines.get(engine)
        variables = found.handle.setup.slot_variables if found is not None else ()
        return len(variables) if any(variables) else None

    def add_context(self, context: Context, task_limit: int) -> int:
        """Start the engines of a context that has been added to the run.

        Args:
            context: Which; its label is its own.
            task_limit: It leaves after so many tasks, 0 for no limit.

        Returns:
            How many were started.

        Raises:
            NoResources: None could be.
        """
        handles = context.start(self.next_rank, set())
        for handle in handles:
            self._add_engine(handle, context.label, task_limit)
        return len(handles)

    def _start_engines(self) -> None:
        for context in self._contexts:
            try:
                handles = context.start(self.next_rank, self._busy_nodes())
            except NoResources as error:
                self.tell("error", str(error))
                self._events.append(EngineStarting(self._engine_count, context.label))
                self._events.append(EngineLost(self._engine_count, error.what))
                self._engine_count += 1
                continue
            for handle in handles:
                if handle.read_fd < 0:  # it calls by itself
                    self._guests_of(()).expect(handle)  # type: ignore[arg-type]  # launched
                else:
                    self._add_engine(handle, context.label)
        self._events.append(EnginesStarted())

    def next_rank(self) -> int:
        """A number that no engine of the run has: DISBATCH_ENGINE_RANK."""
        self._rank += 1
        return self._rank

    def _busy_nodes(self) -> set[str]:
        known = (*self._engines.values(), *self._unproved)
        busy = {engine.handle.node for engine in known if not engine.has_closed}
        if self.guests is not None:
            busy |= self.guests.busy_nodes()
        return busy | self._reach.busy_nodes() | self._left_out

    def leave_out(self, node: str) -> None:
        """Have the contexts of the run start no other engine there."""
        self._left_out.add(node)

    def _add_engine(
        self, handle: EngineHandle, label: str, task_limit: int | None = None
    ) -> None:
        engine = self.make_engine(handle, None)
        is_dialled_later = handle.is_far and not handle.is_survivor
        if is_dialled_later:
            self._reach.add(engine)
        else:
            self.attach(engine)
        self._events.append(EngineStarting(
            engine.id, label, task_limit, node=handle.node if handle.is_far else "",
            is_dispensable=is_dialled_later, is_survivor=handle.is_survivor,
        ))

    @property
    def dialling_count(self) -> int:
        """Engines elsewhere that are being dialled."""
        return sum(each.hello is None and each.handle.is_far for each in self._engines.values())

    def make_engine(self, handle: EngineHandle, link: Link | NoLink | None) -> EngineEnd:
        """The driver's end of an engine, with the next number."""
        engine = EngineEnd(
            self._engine_count, handle, self._clock.now(), self.tell, self._survivors.recorded,
            link,
        )
        self._engine_count += 1
        return engine

    def attach(self, engine: EngineEnd) -> None:
        """Hear this engine from now on."""
        self._engines[engine.id] = engine
        self._fds[engine.link.read_fd] = engine
        self._watch(engine)

    def detach(self, engine: EngineEnd) -> None:
        """Hear it no more over the link that it has."""
        if self._engines.pop(engine.id, None) is not None:
            self._fds.pop(engine.link.read_fd, None)
            self._poller.forget(engine.link.read_fd)
            engine.link.close()

    # -- engines that call --------------------------------------------------------------

    def arrived(self, link: Link, peer: str) -> None:
        """Somebody who knows the run's secret calls, to be an engine."""
        self._guests_of(()).arrived(link, peer)

    @property
    def left_behind(self) -> list[EngineHandle]:
        """Engines that may live on with tasks that have no row."""
        guests = self.guests.left_behind if self.guests is not None else ()
        return [*self._reach.left_behind, *guests]

    def believe_gone(self, node: str) -> int:
        """The user says that nothing runs on this host any more; how many engines that were."""
        count = self._reach.forget(node)
        return count + (self.guests.forget(node) if self.guests is not None else 0)

    def absent_nodes(self) -> list[str]:
        """Hosts of engines that are cut off."""
        guests = self.guests.absent_nodes() if self.guests is not None else ()
        return [*self._reach.absent_nodes(), *guests]

    def _leave_out_of_it(self, effect: fx.LeaveAlone) -> None:
        """The run ends without this engine, which is not here."""
        engine = self._engines.get(effect.engine)
        if engine is not None:
            self.detach(engine)
            engine.handle.end()
        self._reach.leave_alone(effect.engine, effect.may_run_tasks)
        if self.guests is not None:
            self.guests.leave_alone(effect.engine, effect.may_run_tasks)

    @property
    def spools_read(self) -> Sequence[str]:
        """Spools whose reports have been taken in."""
        return self.guests.spools_read if self.guests is not None else ()

    def _guests_of(self, awaited: Sequence[JoinedHandle]) -> Guests:
        if self.guests is None:
            if self._joins is None:
                raise OvernightError("nobody can join this run")
            from overnight.driver.guests import Guests  # most runs have none

            self.guests = Guests(self, self._joins, awaited)
        return self.guests

    def watch(self, fd: int, mask: int) -> None:
        """Await this on a descriptor."""
        self._poller.watch(fd, mask)

    def forget(self, fd: int) -> None:
        """Await nothing on it any more."""
        self._poller.forget(fd)

    def happened(self, *events: Event) -> None:
        """These are for the scheduler's next step; from any thread."""
        for event in events:
            self.post(event)

    @property
    def is_finishing(self) -> bool:
        """Whether the run is over but for engines that have yet to leave."""
        return self.scheduler.is_finishing

    def lose(self, engine: EngineEnd, reason: str) -> None:
        """Its link is of no use any more, if it still has one."""
        if engine.id in self._engines:
            self._lose(engine, reason)

    def in_thread(self, function: Callable[[], None]) -> None:
        """Do what may take its time."""
        import _thread

        _thread.start_new_thread(function, ())

    def _watch(self, engine: EngineEnd) -> None:
        if engine.link.closed:
            return
        mask = READ | WRITE if engine.link.wants_write else READ
        self._poller.watch(engine.link.read_fd, mask)

    def _hear(self, engine: EngineEnd, mask: int) -> None:
        if mask & WRITE:
            engine.link.flush()
        if mask & ~WRITE:
            try:
                self._events.extend(engine.receive())
            except LinkBroken as error:
                self.tell("error", str(error))
                engine.trouble = error.what
                engine.link.closed = True
        if engine.link.closed:
            self._lose(engine, engine.why_ended())
        elif engine.is_in_reach and engine.handle.is_far:
            self._reach.found(engine)

    def _look_after_engines(self) -> None:
        """End engines that do not say hello, or do not leave though they were told to."""
        now = self._clock.now()
        if self._force_at is not None and now >= self._force_at:
            self._force_at = None
            for engine in list(self._engines.values()):
                if not engine.has_closed:
                    self.tell("warning", f"the engine on {engine.handle.node} does not leave:"
                                         f" it is {'left' if engine.handle.is_far else 'ended'}")
                    self._lose(engine, "it did not leave in time")
            self._reach.abandon("it did not leave in time")
            if self.guests is not None:
                self.guests.abandon("it did not leave in time")
        for engine in list(self._engines.values()):
            within_s = FAR_HELLO_WITHIN_S if engine.handle.is_far else HELLO_WITHIN_S
            if engine.handle.is_far and engine.may_live_on:  # what it left may be ended first
                within_s += 2 * engine.handle.setup.kill_after_s
            if engine.hello is None and now - engine.started_mono > within_s:
                self._lose(engine, f"it said nothing for {within_s:.0f} s")
        if self.guests is not None:
            self.guests.look_after()

    def _lose(self, engine: EngineEnd, reason: str) -> None:
        """An engine is gone or given up. Its attempts count as ended once that is proved."""
        if self._engines.pop(engine.id, None) is None:
            return
        self._fds.pop(engine.link.read_fd, None)
        self._poller.forget(engine.link.read_fd)
        engine.link.close()
        if engine.has_closed:
            self._leaving.append(engine)
            return
        if engine.calls_again and self.guests is not None:
            self.guests.cut_off(engine, reason)
            return
        if engine.handle.is_far:
            self._reach.cut_off(engine, reason, self._clock.now())
            return
        self._unproved.add(engine)
        import _thread  # what must be ended may take its grace time: not in the loop

        _thread.start_new_thread(self._prove, (engine, reason))

    def _prove(self, engine: EngineEnd, reason: str) -> None:
        """In a thread: report an engine lost once nothing of it runs any more.

        Until then its tasks are held back, and that is said every minute. Only a stop at
        once gives up on proof.
        """
        try:
            if engine.has_joined:
                engine.handle.end()
            elif not self._collect_unjoined(engine):
                self._unproved.discard(engine)
                self.post(EngineLost(engine.id, "it lives on with another driver"))
                return
        except Exception as error:  # noqa: BLE001  # as in prove
            self._fail_to_prove(engine, error)
        self.prove(engine, reason)

    def prove(self, engine: EngineEnd, reason: str) -> None:
        """In a thread: the same for an engine whose process has ended."""
        try:
            while left := engine.handle.prove_ended(engine.released):
                numbers = ", ".join(map(str, left))
                if self._gives_up:
                    reason += f"; processes {numbers} could not be ended and may still run"
                    break
                self.post(Notice("error", held_back_text(engine.handle.node, numbers)))
                self._wait_before_saying_again()
        except Exception as error:  # noqa: BLE001  # the run must not wait for ever, whatever it was
            self._fail_to_prove(engine, error)
        self._unproved.discard(engine)
        self.post(EngineLost(engine.id, reason))

    def _fail_to_prove(self, engine: EngineEnd, error: Exception) -> None:
        self.post(SourceFailed(OvernightError(
            f"what an engine has left cannot be looked for: {error!r}",
            where=engine.handle.node, kept="nothing further is started",
        )))

    def _wait_before_saying_again(self) -> None:
        """In a thread: a minute, or less where a stop at once does not wait for proof."""
        until = time.monotonic() + SAY_FAULT_EVERY_S
        while time.monotonic() < until and not self._gives_up:
            time.sleep(HEED_STOP_EVERY_S)

    def _collect_unjoined(self, engine: EngineEnd) -> bool:
        """What an engine that never joined has kept.

        Returns:
            Whether it is gone. One that lives and refuses this driver stops the run: it was
            given nothing, so nothing of it is this driver's to prove ended.
        """
        try:
            for event in engine.handle.reports_left():
                self.post(event)
        except ResumeRefused as error:
            self.post(SourceFailed(error))
            return False
        return True

    def _grace_s(self) -> float:
        longest = max((e.handle.setup.kill_after_s for e in self._engines.values()), default=0.0)
        return longest + LEAVE_WITHIN_S

    # -- the end --------------------------------------------------------------------

    def _say_goodbye(self) -> None:
        """Send the last acknowledgements and see the engines off.

        Where the record is broken they keep reports: they are left alone, to write those
        down for the next driver, and nobody ends them.
        """
        until = self._clock.now() + LEAVE_WITHIN_S
        if self._record.fault:
            self._leave_alone(until)
            return
        while self._clock.now() < until:
            for engine in list(self._engines.values()):
                engine.link.flush()
                if engine.handle.is_gone():
                    self._lose(engine, "")
            if not self._engines:
                break
            for fd, _ in self._poller.wait(0.2):
                if fd in self._fds:
                    self._hear(self._fds[fd], READ)
        for engine in [*self._engines.values(), *self._leaving]:
            while not engine.handle.is_gone() and self._clock.now() < until:
                time.sleep(LOOK_EVERY_S)  # its link has ended: its process is about to
            engine.handle.end()

    def _leave_alone(self, until: float) -> None:
        engines, self._engines = self._engines, {}
        for engine in engines.values():
            engine.link.flush()
            self._poller.forget(engine.link.read_fd)
            engine.link.close()
        for engine in engines.values():
            while not engine.handle.is_gone() and self._clock.now() < until:
                time.sleep(LOOK_EVERY_S)

    def _shut(self) -> None:
        if self.guests is not None:
            self.guests.close()
        if self.control is not None:
            self.control.close()
        self._reach.close()
        for engine in self._engines.values():
            engine.link.close()
        self._poller.close()
        for allocation in self._allocations:
            allocation.close()
        self._source.close()
        self._record.close()
        for observer in self._observers:
            observer.close()
        bell, self._bell_in = self._bell_in, -1  # whoever still rings must not write elsewhere
        os.close(bell)
        os.close(self._bell_out)


class _Clock:
    """Unix seconds that are never set back: rows of one run are in order."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset


def measure_host() -> HostMeasured:
    """Load and free memory of this machine now."""
    return HostMeasured(os.getloadavg()[0], free_memory())


def free_memory() -> int:
    """Bytes that could be had without swapping; a very large number where nobody can say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 1 << 62


def held_back_text(node: str, numbers: str) -> str:
    """What a person is told while processes of a lost engine cannot be ended."""
    return (
        f"processes {numbers} of a lost engine on {node} cannot be ended\n"
        "  kept:  its tasks are held back, lest they run twice at once\n"
        "  do:    see what they hang on (a dead file system?); when they end, the run goes on"
    )


def record_fault_text(reason: str) -> str:
    """What a person is told while the record cannot be written."""
    return (
        f"cannot write the record: {reason}\n"
        "  kept:  reports of tasks stay with their engine; nothing new is started\n"
        "  do:    free space or bring the file system back, the run goes on by itself;"
        " nothing is lost if you end it now"
    )


def rows_lost_text(size: int) -> str:
    """What a person is told when rows were taken out of the status file under the run."""
    return (
        f"the status file was cut or replaced by somebody: {size} bytes of its rows are gone\n"
        "  kept:  the run goes on behind what is there; _tasks.jsonl has every attempt\n"
        "  do:    a resume runs the tasks again whose rows are gone; put them back before it"
    )


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass
