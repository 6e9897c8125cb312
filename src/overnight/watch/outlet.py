"""A terminal, file or pipe that is written to and cannot hold its writer up.

A terminal stopped with Ctrl-S, or a pager at the other end of a pipe that nobody scrolls,
blocks who writes to it, and with it a run that nobody is watching. And a terminal may go
away under a run that goes on. So a text is written when there is room, kept or dropped
when there is not, and nothing is written any more after the first error.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

KEPT_LIMIT = 200
"""Texts kept for a reader that is held up; the oldest goes first."""


class Outlet:
    """One stream, which stays its owner's: neither its flags nor its mode are touched.

    Attributes:
        is_gone: A write failed: there is no reader any more.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._fd = _fd(stream)
        self._encoding = stream.encoding or "utf-8"
        self._kept: list[str] = []
        self.is_gone = False

    @property
    def speaks_unicode(self) -> bool:
        """Whether line drawing characters can be shown."""
        return self._encoding.lower().replace("-", "") == "utf8"

    def size(self) -> tuple[int, int]:
        """Columns and lines; 80 and 24 where there is no telling."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    def has_room(self) -> bool:
        """Whether a short text can be written at once, now that nothing older waits."""
        if self._kept and self._is_ready():
            self.put("")
        return not self._kept and self._is_ready()

    def keep(self, text: str) -> None:
        """Write this as soon as there is room."""
        self._kept.append(text)
        del self._kept[:-KEPT_LIMIT]
        self.has_room()

    def put(self, text: str) -> None:
        """Write this, after all that is kept; the caller knows of room, or is ready to wait."""
        whole = "".join((*self._kept, text))
        self._kept.clear()
        if self.is_gone or not whole:
            return
        try:
            self._write(whole.encode(self._encoding, "replace"))
        except (OSError, ValueError):  # the reader hung up; or the stream was closed
            self.is_gone = True

    def _is_ready(self) -> bool:
        if self._fd < 0 or self.is_gone:
            return not self.is_gone
        poll = select.poll()  # select() cannot watch descriptors from 1024 on
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(0))

    def _write(self, data: bytes) -> None:
        if self._fd < 0:
            self._stream.write(data.decode(self._encoding))
            return
        # Past the stream's buffer: what a broken stream cannot flush when the program ends
        # would turn its exit status into 120.
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # somebody else has made it non-blocking
                self._kept.insert(0, data.decode(self._encoding, "replace"))
                return


def _fd(stream: TextIO) -> int:
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, AttributeError, ValueError):  # a stream in memory, as in a notebook
        return -1
