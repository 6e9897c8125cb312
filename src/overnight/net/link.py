"""A link over two descriptors: frames out of what arrives, frames into what leaves.

Works alike on a socketpair, on pipes and on a connected socket, and needs no socket
module: an engine reads and writes its descriptors. Nothing here waits; the caller's
loop does, and calls ``receive`` when the descriptor is readable and ``flush`` when it
is writable.
"""

from __future__ import annotations

import os

from overnight.formats.link import FrameReader, MagicFinder, frame_header
from overnight.model.messages import MAGIC

READ_SIZE = 65536
BUFFERS_A_WRITE = 512  # below IOV_MAX everywhere
SMALL = 4096  # payloads up to this are copied behind their header: fewer buffers a write


class Link:
    """One end of a link.

    Attributes:
        read_fd: Where frames arrive.
        write_fd: Where frames leave; may be the same descriptor.
        closed: The other side is gone; nothing more arrives and nothing can be sent.
        noise: What came before the magic, where one is awaited.
    """

    __slots__ = (
        "_finder", "_is_deaf", "_reader", "_waiting", "closed", "noise", "read_fd", "write_fd",
    )

    def __init__(self, read_fd: int, write_fd: int, awaits_magic: bool = False) -> None:
        """Take over both descriptors.

        Args:
            read_fd: Open for reading; made non-blocking.
            write_fd: Open for writing; made non-blocking.
            awaits_magic: The other side begins with the magic, perhaps after noise.
        """
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.closed = False
        self.noise = b""
        self._finder: MagicFinder | None = MagicFinder() if awaits_magic else None
        self._reader = FrameReader()
        self._waiting: list[bytes] = []
        self._is_deaf = False  # the other side takes nothing any more

    @property
    def wants_write(self) -> bool:
        """Whether something waits to leave."""
        return bool(self._waiting)

    def receive(self) -> list[tuple[int, bytes]]:
        """Frames (kind, payload) that have arrived; empty when none is whole.

        At the end of the stream ``closed`` is set; frames before it still come back.

        Raises:
            LinkBroken: What arrived is no stream of ours; close the link.
        """
        frames: list[tuple[int, bytes]] = []
        while not self.closed:
            data = self._read()
            frames += self._frames(data)
            if len(data) < READ_SIZE:
                break
        return frames

    def _read(self) -> bytes:
        try:
            data = os.read(self.read_fd, READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError:  # reset by the other side: the same as its end
            data = b""
        if not data:
            self.closed = True
        return data

    def _frames(self, data: bytes) -> list[tuple[int, bytes]]:
        if self._finder is not None:
            rest = self._finder.feed(data)
            self.noise = self._finder.noise
            if rest is None:
                return []
            self._finder = None
            data = rest
        return self._reader.feed(data) if data else []

    def send_magic(self) -> None:
        """Queue the magic: the first thing an engine says."""
        self._waiting.append(MAGIC)

    def send_ahead(self, data: bytes) -> None:
        """Queue bytes that are no frame: what makes the other side one that reads frames."""
        self._waiting.append(data)

    def send(self, kind: int, payload: bytes) -> None:
        """Queue a frame; it leaves with ``flush``. On a closed link it is dropped."""
        if self.closed or self._is_deaf:
            return
        header = frame_header(kind, len(payload))
        if len(payload) <= SMALL:
            self._waiting.append(header + payload)
        else:
            self._waiting += (header, payload)

    def flush(self) -> None:
        """Write what the descriptor takes now.

        After an error nothing more is written. What the other side said before it went is
        still to be read: the link is ``closed`` at the end of that.
        """
        while self._waiting and not self.closed:
            batch = self._waiting[:BUFFERS_A_WRITE]
            try:
                written = os.writev(self.write_fd, batch)
            except BlockingIOError:
                return
            except OSError:
                self._waiting.clear()
                self._is_deaf = True
                return
            if not self._forget(written):
                return

    def _forget(self, written: int) -> bool:
        """Drop what has left; whether the descriptor took the whole batch."""
        waiting = self._waiting
        for index, data in enumerate(waiting[:BUFFERS_A_WRITE]):
            if written < len(data):
                waiting[:index + 1] = [data[written:]]
                return False
            written -= len(data)
        del waiting[:BUFFERS_A_WRITE]
        return True

    def close(self) -> None:
        """Close both descriptors; what was not flushed is lost."""
        self.closed = True
        self._waiting.clear()
        os.close(self.read_fd)
        if self.write_fd != self.read_fd:
            os.close(self.write_fd)
