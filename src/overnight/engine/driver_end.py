"""The engine's end of its driver: a link while there is one, a door while there is none."""

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
    from collections.abc import Callable
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
        ticket: Ticket | None = None,
    ) -> None:
        """Greet the first driver.

        With a ticket the descriptors are those of its first connection, and while the
        engine is alone the run is called.
        """
        self.setup_payload = b""
        self._poll = poll
        self._engine = engine
        self._version = version
        self._door: Door | None = None
        self._link: PolledLink | None = None
        self._ticket = ticket
        if ticket is None:
            self._greet(PolledLink(poll, read_fd, write_fd))
        else:
            poll.register(ticket.caller.bell, EPOLLIN)
            self._greet(ticket.link(poll, ticket.first))

    def _greet(self, link: PolledLink) -> None:
        running = self._engine.in_hand()
        link.send_magic()
        link.send(m.HELLO, f.encode_control(self._hello(len(running))))
        if running:
            link.send(m.RUNNING, f.encode_attempts(running))
        link.push()
        self._link = link

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
            "closing": engine.is_closing, "running": running_count,
        }

    def receive(self, fd: int) -> list[e.Event] | None:
        """What the driver says, when ``fd`` is ready; None when it is no descriptor of it."""
        if self._link is not None and fd in (self._link.read_fd, self._link.write_fd):
            return self._read(self._link)
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
        if self._ticket is not None and self._engine.is_alone:
            self._ticket.caller.start()  # it had not taken us in
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
            self._greet(ticket.link(self._poll, stream))
        return [e.RunOver()] if is_over else []

    def listen(self, path: str) -> bool:
        """Open the door; whether that went well."""
        try:
            self._door = Door(path)
        except OSError as error:
            self.notice("WARNING", f"no driver can attach at {path}: {error.strerror}")
            return False
        self._poll.register(self._door.fd, EPOLLIN)
        return True

    def stop_listening(self) -> None:
        """Close the door, and call no more."""
        if self._ticket is not None:
            self._ticket.caller.stop()
        if self._door is not None:
            self._poll.unregister(self._door.fd)
            self._door.close()
            self._door = None

    def _on_knock(self, door: Door) -> None:
        fd = door.admit()
        if fd is None:
            return
        if self._link is not None:  # it had not said who it is: perhaps it never will
            self._link.close()
        self._greet(PolledLink(self._poll, fd, fd))


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
