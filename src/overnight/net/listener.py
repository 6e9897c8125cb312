"""The door of a run: accepts, shakes hands and compares secrets, in a thread of its own.

The driver's loop sees a client when it has said the secret, never before: whatever knocks
costs it nothing. Bounds are in ``core/admission``.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time

from overnight.core.admission import MOST_BYTES, Admission, Secrets
from overnight.formats.knock import KNOCK_SIZE, WELCOME, parse_knock
from overnight.net.dial import keep_alive
from overnight.net.poller import READ, WRITE, Poller
from overnight.net.tls import TlsLink, TlsStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BACKLOG = 512
REST_S = 1.0
"""When the kernel gives no further descriptor, so long nobody is let in."""

SAY_REFUSED_EVERY_S = 60.0


class Arrival:
    """A client that is let in.

    Attributes:
        link: To it; it has said nothing yet but its knock.
        role: One of ``model.roles.ROLES``.
        peer: Where it is, for people.
    """

    __slots__ = ("link", "peer", "role")

    def __init__(self, link: TlsLink, role: str, peer: str) -> None:
        self.link = link
        self.role = role
        self.peer = peer


class _Knocking:
    """A connection whose secret is not known yet."""

    __slots__ = ("has_shaken_hands", "peer", "said", "stream")

    def __init__(self, stream: TlsStream, peer: str) -> None:
        self.stream = stream
        self.peer = peer
        self.has_shaken_hands = False
        self.said = b""


class Listener:
    """Listens from ``start`` to ``close``.

    Attributes:
        ports: Of the sockets, in their order.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], context: ssl.SSLContext, secrets: Secrets,
        arrived: Callable[[Arrival], None], told: Callable[[str, str], None],
    ) -> None:
        """Take over bound sockets.

        Args:
            sockets: Bound; not yet listening.
            context: Of the run's certificate.
            secrets: That let in.
            arrived: Takes each client that is let in, in the listener's thread.
            told: Takes level and text of what a person should know, in that thread.
        """
        self.ports = [each.getsockname()[1] for each in sockets]
        self._sockets = {each.fileno(): each for each in sockets}
        self._context = context
        self._secrets = secrets
        self._arrived = arrived
        self._told = told
        self._admission = Admission()
        self._knocking: dict[int, _Knocking] = {}
        self._poller = Poller()
        self._rests_until = 0.0
        self._refused = 0
        self._last_refused = ""
        self._say_at: float | None = None
        self._bell_out, self._bell_in = os.pipe()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="overnight door", daemon=True)

    def start(self) -> None:
        """Let clients in from now on.

        Raises:
            OSError: A socket cannot listen.
        """
        for each in self._sockets.values():
            each.setblocking(False)
            each.listen(BACKLOG)
        self._poller.watch(self._bell_out, READ)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more; who has been let in is not touched."""
        self._is_closing = True
        os.write(self._bell_in, b"e")
        if self._thread.is_alive():
            self._thread.join()
        for knocking in list(self._knocking.values()):
            self._drop(knocking)
        for each in self._sockets.values():
            each.close()
        self._poller.close()
        os.close(self._bell_in)
        os.close(self._bell_out)

    # ---- in the thread

    def _run(self) -> None:
        while not self._is_closing:
            now = time.monotonic()
            self._watch_doors(now)
            for fd, _ in self._poller.wait(self._timeout_s(now)):
                if fd in self._sockets:
                    self._accept(self._sockets[fd])
                elif fd in self._knocking:
                    self._go_on(self._knocking[fd])
            self._drop_overdue()
            self._say_refused()

    def _watch_doors(self, now: float) -> None:
        is_open = self._admission.room > 0 and now >= self._rests_until
        for fd in self._sockets:
            if is_open:
                self._poller.watch(fd, READ)
            else:
                self._poller.forget(fd)

    def _timeout_s(self, now: float) -> float | None:
        moments = [self._admission.wake_at(), self._say_at]
        if now < self._rests_until:
            moments.append(self._rests_until)
        due = [moment for moment in moments if moment is not None]
        return max(0.0, min(due) - now) if due else None

    def _accept(self, door: socket.socket) -> None:
        """Let in all who wait, as far as there is room."""
        while self._admission.room > 0:
            try:
                connection, address = door.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor is left, say
                self._rests_until = time.monotonic() + REST_S
                self._told("warning", f"nobody can join for a moment: {error.strerror}")
                return
            self._begin(connection, f"{address[0]} port {address[1]}")

    def _begin(self, connection: socket.socket, peer: str) -> None:
        try:
            keep_alive(connection)
        except OSError:  # it has gone again
            connection.close()
            return
        stream = TlsStream(connection.detach(), self._context, is_server=True)
        self._knocking[stream.fd] = _Knocking(stream, peer)
        self._admission.begin(stream.fd, time.monotonic())
        self._poller.watch(stream.fd, READ)

    def _go_on(self, knocking: _Knocking) -> None:
        stream = knocking.stream
        # One byte above the bound shows who exceeds it; nothing is read beyond that.
        stream.take_in(MOST_BYTES + 1 - stream.received)
        if stream.received > MOST_BYTES:
            self._refuse(knocking)
            return
        try:
            knows = self._knows_secret(knocking)
        except ssl.SSLError:
            knows = False
        if knows:
            self._welcome(knocking)
        elif knows is False or stream.has_ended or not stream.push():
            self._refuse(knocking)
        else:
            self._poller.watch(stream.fd, READ | WRITE if stream.wants_write else READ)

    def _knows_secret(self, knocking: _Knocking) -> bool | None:
        """Whether it has said the secret; None while it has not said enough."""
        stream = knocking.stream
        if not knocking.has_shaken_hands:
            knocking.has_shaken_hands = stream.shake_hands()
            if not knocking.has_shaken_hands:
                return None
        knocking.said += stream.read(KNOCK_SIZE - len(knocking.said))
        if len(knocking.said) < KNOCK_SIZE:
            return None
        parsed = parse_knock(knocking.said)
        return parsed is not None and self._secrets.admit(*parsed)

    def _welcome(self, knocking: _Knocking) -> None:
        stream = knocking.stream
        self._forget(stream.fd)
        stream.write(WELCOME)
        parsed = parse_knock(knocking.said)
        role = parsed[1] if parsed else ""
        link = TlsLink(stream, awaits_magic=True)
        link.flush()
        self._arrived(Arrival(link, role, knocking.peer))

    def _refuse(self, knocking: _Knocking) -> None:
        self._refused += 1
        self._last_refused = knocking.peer
        if self._say_at is None:
            self._say_at = time.monotonic()
        self._drop(knocking)

    def _drop(self, knocking: _Knocking) -> None:
        self._forget(knocking.stream.fd)
        os.close(knocking.stream.fd)

    def _forget(self, fd: int) -> None:
        del self._knocking[fd]
        self._admission.end(fd)
        self._poller.forget(fd)

    def _drop_overdue(self) -> None:
        for key in self._admission.overdue(time.monotonic()):
            self._refuse(self._knocking[key])  # type: ignore[index]  # keyed by descriptor

    def _say_refused(self) -> None:
        """Tell of strangers once a minute, however many there are."""
        now = time.monotonic()
        if self._say_at is None or now < self._say_at:
            return
        if self._refused:
            self._told("info", refused_text(self._refused, self._last_refused))
            self._refused = 0
            self._say_at = now + SAY_REFUSED_EVERY_S
        else:
            self._say_at = None


def refused_text(count: int, last: str) -> str:
    """What a person is told of clients that did not know the secret."""
    who = "a client was" if count == 1 else f"{count:,} clients were"
    return f"{who} not let in, without this run's secret; the last from {last}"
