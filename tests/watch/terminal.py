"""A terminal to draw on: a real one to the program, lines of text to the test."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import termios
from typing import TextIO

_TOKEN = re.compile(rb"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Terminal:
    """A pseudo terminal that understands what a live block needs, and refuses the rest.

    Attributes:
        stream: What a program writes to.
        raw: All bytes that have come out.
    """

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._master, slave = os.openpty()
        self.stream: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self.raw = b""
        self._lines = [""]
        self._row = self._column = 0
        self.resize(columns, rows)
        os.set_blocking(self._master, False)

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.stream.fileno(), termios.TIOCSWINSZ, size)

    def lines(self) -> list[str]:
        """What stands on the screen now, without blank lines at its end."""
        self._take_in()
        shown = [line.rstrip() for line in self._lines]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def stop(self) -> None:
        """Ctrl-S."""
        termios.tcflow(self.stream.fileno(), termios.TCOOFF)

    def go_on(self) -> None:
        """Ctrl-Q."""
        termios.tcflow(self.stream.fileno(), termios.TCOON)

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        if self._master >= 0:
            self.hang_up()
        self.stream.close()

    def _take_in(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                block = os.read(self._master, 65536)
                self.raw += block
                for token in _TOKEN.finditer(block):
                    self._obey(*token.groups())

    def _obey(self, number: bytes, order: bytes, control: bytes, text: bytes) -> None:
        if text:
            self._put(text.decode())
        elif control == b"\r":
            self._column = 0
        elif control == b"\n":
            self._row += 1
            self._lines += [""] * (self._row + 1 - len(self._lines))
        elif order == b"A":
            self._row = max(0, self._row - int(number or 1))
        elif order == b"J":
            self._lines[self._row] = self._lines[self._row][: self._column]
            del self._lines[self._row + 1 :]
        else:
            assert order == b"m", f"the terminal was asked for {number!r} {order!r}"

    def _put(self, text: str) -> None:
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)
