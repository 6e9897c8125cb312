"""The engine's end of its driver: a link while there is one, and ways to the next.

Whoever comes through the door, or answers when the run is called, is a visitor until a SETUP
of it shows that it may be obeyed. Only then is it the driver, and a link that was there
before is closed: the other side of that may have been cut off long ago without a sign of
it here.
"""

from __future__ import annotations

import os
import sys

from overnight.core import engine_events as e
from overnight.core.slot_events import EndAsked, RecallAsked
from overnight.engine.polled import PolledLink
from overnight.errors import LinkBroken
from overnight.formats import link as f
from overnight.guard.processes import process_identity
from overnight.model import messages as m
from overnight.net.door import Door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from select import epoll

    from overnight.core.engine import Engine
    from overnight.engine.ticket import Ticket

EPOLLIN = 1

PATIENCE_S = 10.0
"""How long a driver that does not read is waited for before it is hung up on."""


class DriverEnd:
    """Whoever is the driver at the time.

    Attributes:
        setup_payload: The latest SETUP as it came, to be passed on.
    """

    def __init__(
        self, poll: epoll, engine: Engine, version: str, read_fd: int, write_fd: int,
        ticket: Ticket | None, told: Mapping[str, object],
    ) -> None:
        """Greet the first driver.

        Args:
            poll: Where descriptors are awaited.
            engine: The machine.
            version: Of the package.
            read_fd: From the driver.
            write_fd: To it.
            ticket: Its first connection stands in for those descriptors; while the engine is
                alone the run is called.
            told: What else HELLO says.
        """
        self.setup_payload = b""
        self._poll = poll
        self._engine = engine
        self._version = version
        self._told = told
        self._door: Door | None = None
        self._visitor: PolledLink | None = None
        self._link: PolledLink | None = None
        self._ticket = ticket
        if ticket is None:
            self._link = self._greeted(PolledLink(poll, read_fd, write_fd))
        else:
            poll.register(ticket.caller.bell, EPOLLIN)
            self._link = self._greeted(ticket.link(poll, ticket.first))

    def _greeted(self, link: PolledLink) -> PolledLink:
        running = self._engine.in_hand()
        link.send_magic()
        link.send(m.HELLO, f.encode_control(self._hello(len(running))))
        if running:
            link.send(m.RUNNING, f.encode_attempts(running))
        link.push()
        return link

    def _hello(self, running_count: int) -> dict[str, object]:
        pid = os.getpid()
        start, boot = process_identity(pid)
        engine = self._engine
        about = {} if self._ticket is None else {"join": self._ticket.about}
        return {
            **about,
            "link": m.LINK_VERSION, "version": self._version, "role": "engine",
            "run": "" if engine.setup is None else engine.setup.run,
            "generation": engine.generation, "pid": pid, "start": start, "boot": boot,
            "host": os.uname().nodename, "cores": len(os.sched_getaffinity(0)),
            "python": sys.version.split()[0], "started": engine.has_started,
            "closing": engine.is_closing, "running": running_count, **self._told,
        }

    def receive(self, fd: int) -> list[e.Event] | None:
        """What the driver says, when ``fd`` is ready; None when it is no descriptor of it."""
        if self._link is not None and fd in (self._link.read_fd, self._link.write_fd):
            return self._read(self._link)
        if self._visitor is not None and fd in (self._visitor.read_fd, self._visitor.write_fd):
            return self._hear_visitor(self._visitor)
        if self._door is not None and fd == self._door.fd:
            self._on_knock(self._door)
            return []
        if self._ticket is not None and fd == self._ticket.caller.bell:
            return self._on_answer(self._ticket)
        return None

    def _read(self, link: PolledLink) -> list[e.Event]:
        events: list[e.Event] = []
        try:
            for kind, payload in link.receive():
                events += self._events(link, kind, payload)
        except LinkBroken as error:
            link.closed = True
            _log(f"the driver is not understood: {error}")
        link.push()
        if link.closed:
            events.append(self.hang_up())
        return events

    def _hear_visitor(self, visitor: PolledLink) -> list[e.Event]:
        events: list[e.Event] = []
        try:
            frames = visitor.receive()
            if frames:
                events = self._heed(visitor, *frames[0])
                for kind, payload in frames[1:] if events else ():
                    events += self._events(visitor, kind, payload)
        except LinkBroken as error:
            visitor.closed = True
            _log(f"somebody at the door is not understood: {error}")
        visitor.push()
        if visitor.closed and self._visitor is visitor:
            self._drop_visitor()
        elif visitor.closed and self._link is visitor:
            events.append(self.hang_up())
        return events

    def _drop_visitor(self) -> None:
        """Send away who is no driver; the run is called again, if it can be."""
        if self._visitor is not None:
            self._visitor.close()
            self._visitor = None
        if self._link is None and self._engine.is_alone:
            self.call()

    def _heed(self, visitor: PolledLink, kind: int, payload: bytes) -> list[e.Event]:
        """The first thing a visitor says: what makes it the driver, or nothing of worth."""
        if kind != m.SETUP:
            raise LinkBroken(f"a visitor began with a frame of kind {kind}")
        setup = f.setup_from_mapping(f.decode_control(payload))
        if not self._engine.would_obey(setup):
            text = f"a driver of generation {self._engine.generation} has this engine"
            refusal = {"level": "ERROR", "text": text, "is_refused": True}
            visitor.send(m.NOTICE, f.encode_control(refusal))
            visitor.push_all(PATIENCE_S)
            visitor.closed = True
            return []
        events: list[e.Event] = []
        if self._link is not None:
            self._link.close()
            events.append(e.DriverGone())
        self._link, self._visitor = visitor, None
        self.setup_payload = payload
        return [*events, e.SetUp(setup)]

    def _events(self, link: PolledLink, kind: int, payload: bytes) -> tuple[e.Event, ...]:
        if kind == m.PING:
            link.send(m.PONG, payload)
            return ()
        if kind == m.SETUP:
            self.setup_payload = payload
        reader = _READERS.get(kind)
        if reader is None:
            raise LinkBroken(f"a driver sent a frame of kind {kind}")
        return (reader(payload),)

    def say(self, kind: int, payload: bytes) -> None:
        """Send a frame with the next ``push``; without a driver it is dropped."""
        if self._link is not None:
            self._link.send(kind, payload)

    def notice(self, level: str, text: str) -> None:
        """Say something for the driver's log; without a driver, in our own."""
        if self._link is None:
            _log(text)
        self.say(m.NOTICE, f.encode_control({"level": level, "text": text}))

    def push(self) -> None:
        """Send what waits."""
        if self._link is not None and self._link.wants_write:
            self._link.push()

    def hang_up(self) -> e.Event:
        """Say what waits, if the driver listens, and end the link."""
        if self._link is not None:
            self._link.push_all(PATIENCE_S)
            self._link.close()
            self._link = None
        return e.DriverGone()

    def leave(self) -> None:
        """Say what waits, and call nobody any more."""
        self.stop_listening()
        self._ticket = None
        self.hang_up()

    # ---- alone

    def call(self) -> None:
        """Call the run, if it can be called."""
        if self._ticket is not None:
            self._ticket.caller.start()

    def _on_answer(self, ticket: Ticket) -> list[e.Event]:
        stream, is_over = ticket.caller.collect()
        if stream is not None and (self._link is not None or not self._engine.is_alone):
            os.close(stream.fd)  # another driver has come through the door meanwhile
        elif stream is not None:
            self._receive_visitor(ticket.link(self._poll, stream))
        return [e.RunOver()] if is_over else []

    def listen(self, path: str) -> bool:
        """Open the door; whether that went well. One that is open stays so."""
        if self._door is not None:
            return True
        try:
            self._door = Door(path)
        except OSError as error:
            self.notice("WARNING", f"no driver can attach at {path}: {error.strerror}")
            return False
        self._poll.register(self._door.fd, EPOLLIN)
        return True

    def stop_listening(self) -> None:
        """Close the door, send away who stands in it, and call no more."""
        if self._ticket is not None:
            self._ticket.caller.stop()
        if self._visitor is not None:
            self._visitor.close()
            self._visitor = None
        if self._door is not None:
            self._poll.unregister(self._door.fd)
            self._door.close()
            self._door = None

    def _on_knock(self, door: Door) -> None:
        fd = door.admit()
        if fd is None:
            return
        self._receive_visitor(PolledLink(self._poll, fd, fd))

    def _receive_visitor(self, link: PolledLink) -> None:
        if self._visitor is not None:  # it has not said who it is: perhaps it never will
            self._visitor.close()
        self._visitor = self._greeted(link)


def _log(text: str) -> None:
    """Write to the file that this process's standard error is."""
    try:  # noqa: SIM105  # contextlib costs a start 2 ms
        os.write(2, f"overnight engine: {text}\n".encode("utf-8", "replace"))
    except OSError:
        pass  # the disk is full, say: that must not end an engine


_READERS: dict[int, Callable[[bytes], e.Event]] = {
    m.SETUP: lambda payload: e.SetUp(f.setup_from_mapping(f.decode_control(payload))),
    m.START: lambda payload: e.CommandsGiven(f.decode_commands(payload)),
    m.ASSIGN: lambda payload: e.Assigned(f.decode_attempts(payload)),
    m.RECALL: lambda payload: RecallAsked(f.decode_ids(payload)),
    m.END: lambda payload: EndAsked(**f.decode_control(payload)),
    m.ACK: lambda payload: e.Acknowledged(f.decode_number(payload)),
    m.CLOSE: lambda payload: e.CloseAsked(f.decode_control(payload)["run_stop"]),
}
