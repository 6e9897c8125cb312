"""Engines that have joined by themselves: from their call to their end, whatever is cut.

An engine whose link has ended may live on, run its tasks and call again. Until it does, or
is proved gone, the scheduler holds its tasks back (``EngineCutOff``). When it calls, it is
the same engine with another link (``EngineReturned``). Proof that it is gone is found here
where its process was on this machine, where it wrote down that it left, and where the user
says so.
"""

from __future__ import annotations

import time

from overnight.core.absent import RETURNS_WITHIN_S
from overnight.core.events import (
    AttemptsEnded,
    EngineAbandoned,
    EngineAwaited,
    EngineCutOff,
    EngineLost,
    EngineStarting,
)
from overnight.driver.engines import NoLink
from overnight.errors import LinkBroken, NoResources, OvernightError
from overnight.formats import link as frames
from overnight.formats import rows
from overnight.model import messages as m
from overnight.net.poller import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from overnight.core.events import Event
    from overnight.driver.engines import EngineEnd
    from overnight.net.link import Link
    from overnight.ports import EngineHandle, JoinedHandle, Joins, LaunchedHandle

    class Host(Protocol):
        """What this needs of the driver's loop."""

        @property
        def is_finishing(self) -> bool: ...
        def watch(self, fd: int, mask: int) -> None: ...
        def forget(self, fd: int) -> None: ...
        def tell(self, level: str, text: str) -> None: ...
        def next_rank(self) -> int: ...
        def make_engine(self, handle: JoinedHandle, link: Link | NoLink) -> EngineEnd: ...
        def attach(self, engine: EngineEnd) -> None: ...
        def detach(self, engine: EngineEnd) -> None: ...
        def happened(self, *events: Event) -> None: ...
        def lose(self, engine: EngineEnd, reason: str) -> None: ...
        def in_thread(self, function: Callable[[], None]) -> None: ...
        def leave_out(self, node: str) -> None: ...
        def prove(self, engine: EngineEnd, reason: str) -> None: ...

HELLO_WITHIN_S = 10.0
CALLS_WITHIN_S = 300.0
"""A manager may take its time to start what a context has asked it for."""

LOOK_EVERY_S = 1.0
SAYS_SO_WITHIN_S = 3.0
"""An engine whose launcher has ended has said by then that it leaves, or never will."""


class Newcomer:
    """Somebody who knows the secret and has not said HELLO."""

    def __init__(self, link: Link, peer: str, since: float) -> None:
        self.link = link
        self.peer = peer
        self.since = since


class Expected:
    """An engine that a context has started, and that has not called."""

    def __init__(self, engine: EngineEnd, since: float) -> None:
        self.engine = engine
        self.since = since


class Farewell:
    """An engine that comes back when its tasks are no longer its own: it is sent away.

    It ends what it runs. What it reports was settled otherwise.
    """

    def __init__(self, link: Link, engine: EngineEnd) -> None:
        self.link = link
        self.engine = engine


class Guests:
    """All of them, and those who are on their way in or out."""

    def __init__(self, host: Host, joins: Joins, awaited: Sequence[JoinedHandle]) -> None:
        """Await these engines of an earlier driver.

        Args:
            host: The driver's loop.
            joins: Takes engines in.
            awaited: Of an earlier driver; they will call.
        """
        self._host = host
        self._joins = joins
        self._newcomers: dict[int, Newcomer] = {}  # by descriptor
        self._farewells: dict[int, Farewell] = {}
        self._by_key: dict[str, EngineEnd] = {}  # all that ever came
        self._expected: dict[str, Expected] = {}  # by launch: started here, have not called
        self._missed: set[str] = set()  # launches that are not waited for any more
        self._launched: dict[int, EngineEnd] = {}  # by id: started here, have called
        self._ended_at: dict[int, float] = {}  # by id: when what had started it was seen to end
        self._absent: dict[int, EngineEnd] = {}  # by id: may come back
        self._gone: set[int] = set()  # ids of those that will not be taken back
        self._is_proving: set[int] = set()
        self._look_at = 0.0
        self._gives_up = ""  # why nobody is waited for any more
        self._abandoned: list[EngineHandle] = []
        self.spools_read: list[str] = []
        for handle in awaited:
            engine = host.make_engine(handle, NoLink())
            self._by_key[handle.key] = engine
            self._absent[engine.id] = engine
            host.happened(EngineAwaited(engine.id, handle.context, handle.node))

    def expect(self, handle: LaunchedHandle) -> None:
        """A context has started this engine: it will call, under the name of its launch."""
        engine = self._host.make_engine(handle, NoLink())
        self._expected[handle.launch] = Expected(engine, time.monotonic())
        self._host.happened(EngineStarting(engine.id, handle.context))

    def busy_nodes(self) -> set[str]:
        """Hosts that have, or may have, an engine that cannot be reached now."""
        away = [each.engine for each in self._expected.values()] + list(self._absent.values())
        return {engine.handle.node for engine in away}

    # ---- calls

    def arrived(self, link: Link, peer: str) -> None:
        """Somebody who knows the secret wants to be an engine."""
        newcomer = Newcomer(link, peer, time.monotonic())
        self._newcomers[link.read_fd] = newcomer
        self._host.watch(link.read_fd, READ)
        self.hear(link.read_fd)

    def knows(self, fd: int) -> bool:
        """Whether this descriptor is of somebody on the way in or out."""
        return fd in self._newcomers or fd in self._farewells

    def hear(self, fd: int) -> None:
        """What somebody on the way in or out has said."""
        if fd in self._farewells:
            self._see_off(self._farewells[fd])
            return
        newcomer = self._newcomers[fd]
        try:
            said = newcomer.link.receive()
            if said:
                self._place(newcomer, said)
        except (LinkBroken, NoResources) as error:
            self._host.tell("warning", f"an engine at {newcomer.peer} is not taken in: {error}")
            self._drop(newcomer)
        else:
            if newcomer.link.closed and fd in self._newcomers:
                self._drop(newcomer)

    def _drop(self, newcomer: Newcomer) -> None:
        self._leave_door(newcomer)
        newcomer.link.close()

    def _leave_door(self, newcomer: Newcomer) -> None:
        fd = newcomer.link.read_fd
        if self._newcomers.pop(fd, None) is not None:
            self._host.forget(fd)

    def _place(self, newcomer: Newcomer, said: Sequence[tuple[int, bytes]]) -> None:
        """It has said who it is: a new engine, one that is back, or one that is too late."""
        if said[0][0] != m.HELLO:
            raise LinkBroken("an engine that joins does not say hello first")
        hello = frames.decode_control(said[0][1])
        about = hello.get("join")
        if not isinstance(about, dict) or not isinstance(about.get("id"), str):
            raise LinkBroken("an engine that joins does not say who it is")
        known = self._by_key.get(about["id"])
        if known is None and hello.get("generation") != 0:
            raise LinkBroken("it belongs to another driver, or was taken in by none that we know")
        if known is None and about.get("launch") in self._missed:
            raise LinkBroken("it calls too late: it is not waited for any more")
        if known is None and about.get("launch") in self._expected:
            known = self._take_expected(newcomer, about, hello)
            self._hear_out(known, said)
            return
        if known is not None and known.id in self._gone:
            self._leave_door(newcomer)
            self._send_away(known, newcomer.link)
            return
        if known is None:
            known = self._take_in(newcomer, about, hello)
        else:
            self._take_back(newcomer, known, about)
        self._hear_out(known, said)

    def _hear_out(self, engine: EngineEnd, said: Sequence[tuple[int, bytes]]) -> None:
        """What it said at the door; it is the loop's engine by now, whatever that was."""
        try:
            self._host.happened(*engine.take(said))
        except LinkBroken as error:
            self._host.tell("error", str(error))
            engine.trouble = error.what
            engine.link.closed = True
        if engine.link.closed:
            self._host.lose(engine, engine.why_ended())

    def _take_in(
        self, newcomer: Newcomer, about: dict[str, Any], hello: dict[str, Any]
    ) -> EngineEnd:
        try:
            handle = self._joins.admit(about, hello, self._host.next_rank)
        except (KeyError, TypeError, ValueError) as error:
            raise LinkBroken(f"what it says of itself is not understood: {error!r}") from error
        self._leave_door(newcomer)
        engine = self._host.make_engine(handle, newcomer.link)
        self._by_key[handle.key] = engine
        self._host.attach(engine)
        self._host.happened(EngineStarting(
            engine.id, handle.context, handle.task_limit, is_guest=True, lends=handle.lends
        ))
        return engine

    def _take_expected(
        self, newcomer: Newcomer, about: dict[str, Any], hello: dict[str, Any]
    ) -> EngineEnd:
        """One that a context of this run has started."""
        engine = self._expected[about["launch"]].engine
        handle: LaunchedHandle = engine.handle  # type: ignore[assignment]  # a launched one
        self._joins.admit_launched(handle, about, hello)
        del self._expected[handle.launch]
        self._leave_door(newcomer)
        self._by_key[handle.key] = engine
        engine.link = newcomer.link
        self._launched[engine.id] = engine
        self._host.attach(engine)
        return engine

    def _take_back(
        self, newcomer: Newcomer, engine: EngineEnd, about: dict[str, Any]
    ) -> None:
        if not engine.has_joined:
            self._joins.set_up(engine.handle, about)  # type: ignore[arg-type]  # one of ours
        self._leave_door(newcomer)
        if self._absent.pop(engine.id, None) is None:
            # It knows of a cut that this side has not noticed. The scheduler has to know too
            # before the new link is used, or what it gives in between is given twice.
            self._host.detach(engine)
            self._host.happened(EngineCutOff(engine.id, "it calls again"))
        engine.reconnect(newcomer.link)
        self._host.attach(engine)

    # ---- cuts

    def cut_off(self, engine: EngineEnd, reason: str) -> None:
        """The link of an engine has ended; the driver's loop has forgotten it."""
        engine.link = NoLink()
        self._absent[engine.id] = engine
        self._host.happened(EngineCutOff(engine.id, reason))
        if self._gives_up:
            self.abandon(self._gives_up)

    def wake_at(self, now: float) -> float | None:
        """When ``look_after`` is to be called, by the clock of ``now``; None: no need."""
        if not (self._absent or self._newcomers or self._expected or self._launched):
            return None
        return now + max(0.0, self._look_at - time.monotonic())

    def look_after(self) -> None:
        """See whether anybody who is away has ended, or stands at the door without a word."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        for newcomer in list(self._newcomers.values()):
            if now - newcomer.since > HELLO_WITHIN_S:
                self._drop(newcomer)
        for engine in list(self._absent.values()):
            self._look_at_one(engine)
        for expected in list(self._expected.values()):
            self._look_at_expected(expected, now)
        for engine in list(self._launched.values()):
            self._look_at_launched(engine, now)

    def _look_at_one(self, engine: EngineEnd) -> None:
        handle: JoinedHandle = engine.handle  # type: ignore[assignment]  # one of ours
        try:
            has_ended = handle.has_ended()
        except OvernightError:
            return  # its spool cannot be read now; asked again
        if has_ended:
            self._declare_gone(engine, "its process has ended")

    def _look_at_expected(self, expected: Expected, now: float) -> None:
        """One that has not called has been given nothing: no proof is needed."""
        engine = expected.engine
        if engine.handle.is_gone():
            self._miss(engine, "what was to start it has ended; see the log of its context")
            return
        within_s = RETURNS_WITHIN_S if self._host.is_finishing else CALLS_WITHIN_S
        if now - expected.since > within_s:
            self._host.in_thread(engine.handle.end)
            self._miss(engine, f"it has not called within {within_s:.0f} s")

    def _look_at_launched(self, engine: EngineEnd, now: float) -> None:
        """What had started it ends with it. A node that has failed may keep its link for long."""
        if not engine.handle.is_gone():
            return
        ended_at = self._ended_at.setdefault(engine.id, now)
        if now - ended_at >= SAYS_SO_WITHIN_S:
            del self._launched[engine.id]  # once: should it live all the same, it calls again
            self._host.lose(engine, "what had started it has ended")

    def _miss(self, engine: EngineEnd, reason: str) -> None:
        handle: LaunchedHandle = engine.handle  # type: ignore[assignment]  # a launched one
        del self._expected[handle.launch]
        self._missed.add(handle.launch)
        self._host.tell("error", f"no engine on {handle.node}: {reason}")
        self._host.leave_out(handle.node)
        self._host.happened(EngineLost(engine.id, reason))

    def forget(self, node: str) -> int:
        """The user says that nothing runs on this host any more; how many engines that were."""
        engines = [each for each in self._absent.values() if each.handle.node == node]
        for engine in engines:
            del self._absent[engine.id]
            self._gone.add(engine.id)
            self._host.happened(EngineLost(engine.id, "its machine is gone, as the user says"))
        return len(engines)

    @property
    def left_behind(self) -> list[EngineHandle]:
        """Engines that may live on with tasks that have no row."""
        # One that an earlier driver took in and that has not called: nobody knows what it runs.
        unheard = [each.handle for each in self._absent.values() if not each.has_joined]
        return [*self._abandoned, *unheard]

    def absent_nodes(self) -> list[str]:
        """Hosts of engines that are cut off."""
        return [engine.handle.node for engine in self._absent.values()]

    def abandon(self, reason: str) -> None:
        """Wait for nobody any more, from now on."""
        self._gives_up = reason
        for engine in self._absent.values():
            self._gone.add(engine.id)
            self._abandoned.append(engine.handle)
            self._host.happened(EngineAbandoned(engine.id, reason))
        self._absent.clear()
        for expected in list(self._expected.values()):
            self._host.in_thread(expected.engine.handle.end)
            self._miss(expected.engine, reason)

    def leave_alone(self, id: int, may_run_tasks: bool) -> None:
        """The run ends without this one; it learns that by itself."""
        engine = self._absent.pop(id, None)
        if engine is not None and may_run_tasks:
            self._abandoned.append(engine.handle)

    def _declare_gone(self, engine: EngineEnd, reason: str) -> None:
        """Its process has ended: collect what it kept, end what it left, then say so."""
        del self._absent[engine.id]
        self._gone.add(engine.id)

        def prove() -> None:
            try:
                self._collect(engine)
            except Exception as error:  # noqa: BLE001  # the run must not wait for ever
                # Its reports may say that its tasks are done: they stay its own, for a resume.
                self._abandoned.append(engine.handle)
                words = f"what it has kept cannot be read: {error}"
                self._host.happened(EngineAbandoned(engine.id, words))
                return
            self._host.prove(engine, reason)

        self._host.in_thread(prove)

    def _collect(self, engine: EngineEnd) -> None:
        handle: JoinedHandle = engine.handle  # type: ignore[assignment]  # one of ours
        for kept in handle.reports_left():
            if engine.has_joined:
                # Only what this driver still waits for is news: it filters by what is held.
                reports = [report for _, report in kept.pairs]
                self._host.happened(AttemptsEnded(engine.id, 0, reports))
            else:
                self._host.happened(kept)
        self.spools_read += handle.spool_paths

    # ---- too late

    def _send_away(self, engine: EngineEnd, link: Link) -> None:
        self._host.tell("warning", f"the engine on {engine.handle.node} is back, too late: it is"
                                   " told to end what it runs, and leave")
        farewell = self._farewells[link.read_fd] = Farewell(link, engine)
        link.send(m.SETUP, frames.encode_control(frames.setup_to_mapping(engine.handle.setup)))
        link.send(m.END, frames.encode_control({
            "ids": None, "reason": "its tasks were given out again", "signal": 9,
            "kill_after_s": 0.0, "timed_out": False,
        }))
        link.send(m.CLOSE, frames.encode_control({"run_stop": True}))
        self._go_on_with(farewell)

    def _see_off(self, farewell: Farewell) -> None:
        """Let it leave: whatever it says now is old news."""
        link = farewell.link
        try:
            for kind, payload in link.receive():
                if kind in (m.ENDED, m.KEPT, m.PE_ENDED):
                    link.send(m.ACK, rows.encode_number(_sequence(kind, payload)))
        except LinkBroken:
            link.closed = True
        self._go_on_with(farewell)

    def _go_on_with(self, farewell: Farewell) -> None:
        link = farewell.link
        link.flush()
        if link.closed:
            self._farewells.pop(link.read_fd, None)
            self._host.forget(link.read_fd)
            link.close()
        else:
            self._host.watch(link.read_fd, READ | WRITE if link.wants_write else READ)

    # ---- the end

    def close(self) -> None:
        """Hang up on everybody who is still at the door."""
        for newcomer in list(self._newcomers.values()):
            self._drop(newcomer)
        for fd, farewell in list(self._farewells.items()):
            self._host.forget(fd)
            farewell.link.close()
        self._farewells.clear()


def _sequence(kind: int, payload: bytes) -> int:
    if kind == m.ENDED:
        return rows.decode_reports(payload)[0]
    if kind == m.KEPT:
        return rows.decode_kept(payload)[0]
    return rows.decode_per_engine_reports(payload)[0]
