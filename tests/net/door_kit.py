"""A listening door, and clients of it that behave in any way one can."""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from overnight.core.admission import Secrets
from overnight.net.certificate import Certificate, make_certificate
from overnight.net.dial import dial
from overnight.net.link import Link
from overnight.net.listener import Arrival, Listener
from overnight.net.tls import TlsLink

LIMIT_S = 20.0
SECRET, WATCHING = os.urandom(32), os.urandom(32)


def until(condition: Callable[[], object], what: str) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    nap = select.poll()
    while not condition():
        assert time.monotonic() < give_up_at, f"waited {LIMIT_S:g} s for this: {what}"
        nap.poll(5)


class Door:
    """A listener on loopback; what it let in and what it said."""

    def __init__(self) -> None:
        self.certificate: Certificate = make_certificate()
        self.arrivals: list[Arrival] = []
        self.told: list[tuple[str, str]] = []
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        self.listener = Listener(
            [server], self.certificate.server_context(), Secrets(SECRET, WATCHING),
            self.arrivals.append, lambda level, text: self.told.append((level, text)),
        )
        self.port = self.listener.ports[0]
        self.listener.start()

    def dial(
        self, secret: bytes = SECRET, role: str = "engine", certificate: str = "",
        within_s: float = LIMIT_S,
    ) -> TlsLink:
        return TlsLink(dial(
            "127.0.0.1", self.port, certificate or self.certificate.text, secret, role, within_s
        ))

    def raw(self) -> socket.socket:
        """A bare connection that has said nothing."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)

    def shaken(self) -> ssl.SSLSocket:
        """A connection whose TLS stands, and that has not said the secret."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=self.certificate.text)
        return context.wrap_socket(self.raw())

    def arrival(self, index: int = 0) -> Arrival:
        until(lambda: len(self.arrivals) > index, "a client is let in")
        return self.arrivals[index]

    def close(self) -> None:
        self.listener.close()
        for arrival in self.arrivals:
            if not arrival.link.closed:
                arrival.link.close()


@contextmanager
def open_door() -> Iterator[Door]:
    door = Door()
    try:
        yield door
    finally:
        door.close()


def is_hung_up(connection: socket.socket) -> bool:
    """Whether the other side hangs up, in the end."""
    connection.settimeout(LIMIT_S)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def receive(link: Link, count: int) -> list[tuple[int, bytes]]:
    """So many frames, waited for."""
    frames: list[tuple[int, bytes]] = []

    def has_all() -> bool:
        frames.extend(link.receive())
        link.flush()
        return len(frames) >= count

    until(has_all, f"{count} frames")
    return frames
