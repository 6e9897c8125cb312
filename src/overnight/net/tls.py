"""A link inside TLS: the face of ``net.link.Link``, so that loops see no difference.

TLS works on bytes in memory here (``ssl.MemoryBIO``); the descriptor is read and written
as any link's is. So what TLS itself has to say - an answer to a key update while we only
read - waits in the same queue as our frames, and ``wants_write`` tells of both: a poller
needs no notion of TLS that wants to read while it writes, or the reverse.
"""

from __future__ import annotations

import os
import ssl

from overnight.net.link import READ_SIZE, Link

MOST_AT_ONCE = 256 * 1024
"""Bytes of frames that are encrypted before the descriptor takes them."""


class TlsStream:
    """TLS over a descriptor that never waits: the handshake, and bytes in and out.

    Attributes:
        fd: Of the connection.
        received: Bytes that have arrived, still encrypted.
        has_ended: Nothing more arrives: the other side is gone, or TLS was broken off.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "_unsent", "fd", "has_ended", "received")

    def __init__(self, fd: int, context: ssl.SSLContext, is_server: bool) -> None:
        """Take over a connected descriptor; it is made non-blocking."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.received = 0
        self.has_ended = False
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._unsent = b""

    @property
    def wants_write(self) -> bool:
        """Whether encrypted bytes wait to leave."""
        return bool(self._unsent) or self._outgoing.pending > 0

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as what has arrived allows; whether it is over.

        Raises:
            ssl.SSLError: The other side speaks no TLS, or is not who it should be.
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def take_in(self, most: int = READ_SIZE) -> int:
        """Read what has arrived, still encrypted; how many bytes that was."""
        try:
            data = os.read(self.fd, most)
        except BlockingIOError:
            return 0
        except OSError:  # reset by the other side: the same as its end
            data = b""
        if data:
            self.received += len(data)
            self._incoming.write(data)
        else:
            self.has_ended = True
            self._incoming.write_eof()
        return len(data)

    def read(self, most: int) -> bytes:
        """Up to so many decrypted bytes; empty when there are none at present."""
        try:
            data = self._tls.read(most)
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError:  # its end, in order or not; or bytes that nobody of ours sends
            data = b""
        if not data:
            self.has_ended = True
        return data

    def write(self, data: bytes) -> None:
        """Encrypt; what comes of it leaves with ``push``."""
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view):]

    def push(self) -> bool:
        """Write what the descriptor takes now; False when the other side takes no more.

        ``wants_write`` tells whether something is left.
        """
        while self.wants_write:
            if not self._unsent:
                self._unsent = self._outgoing.read()
            try:
                written = os.write(self.fd, self._unsent)
            except BlockingIOError:
                return True
            except OSError:
                return False
            self._unsent = self._unsent[written:]
        return True


class TlsLink(Link):
    """One end of a link inside TLS, after the handshake."""

    __slots__ = ("_stream",)

    def __init__(self, stream: TlsStream, awaits_magic: bool = False) -> None:
        """Take over a stream whose handshake is over; what it has read already counts."""
        super().__init__(stream.fd, stream.fd, awaits_magic)
        self._stream = stream

    @property
    def wants_write(self) -> bool:
        """Whether something waits to leave: frames, or what TLS has to say itself."""
        return bool(self._waiting) or (self._stream.wants_write and not self._is_deaf)

    def _read(self) -> bytes:
        stream = self._stream
        stream.take_in()
        parts = []
        while data := stream.read(READ_SIZE):
            parts.append(data)
        if stream.has_ended:
            self.closed = True
        return b"".join(parts)

    def receive(self) -> list[tuple[int, bytes]]:
        """Frames that have arrived; see ``Link.receive``."""
        # One reading a call: what is left on the descriptor makes it readable again.
        return [] if self.closed else self._frames(self._read())

    def flush(self) -> None:
        """Write what the descriptor takes now; see ``Link.flush``."""
        stream = self._stream
        while not self.closed and not self._is_deaf:
            if not stream.wants_write:
                if not self._waiting:
                    return
                stream.write(self._next_batch())
            if not stream.push():
                self._waiting.clear()
                self._is_deaf = True
            elif stream.wants_write:
                return

    def _next_batch(self) -> bytes:
        batch, size = [], 0
        for data in self._waiting:
            batch.append(data)
            size += len(data)
            if size >= MOST_AT_ONCE:
                break
        del self._waiting[:len(batch)]
        return b"".join(batch)
