"""The lines of a file, many at a time; the last one only once it is whole.

A program that adds to a list while it is run writes when its buffer is full, often in the
middle of a line. The first half of a line must not be run as if it were all.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overnight.sources.changes import Changes

BLOCK = 1 << 16
"""Bytes of lines that are taken together."""

WRITING_S = 2.0
"""Within so long of the last change, a last line without its LF may be half a line."""


class LineBlocks:
    """Lines that are taken one by one, or some thousands at once.

    Attributes:
        lines: Those that were read last, without their LF.
        at: The next of them.
    """

    def __init__(self, fd: int, changes: Changes) -> None:
        """Begin at the head of a file.

        Args:
            fd: Of the file.
            changes: Knows whether somebody writes to it; looked at by the caller.
        """
        self.lines: Sequence[bytes] = ()
        self.at = 0
        self._fd = fd
        self._changes = changes
        self._offset = 0

    def fill(self) -> bool:
        """Read on if all lines were taken; whether there is one to be taken now."""
        if self.at < len(self.lines):
            return True
        lines, end = read_block(self._fd, self._offset)
        if not lines or (lines[-1:] == lines and not self._is_whole(end)):
            return False
        self.lines, self.at, self._offset = lines, 0, end
        return True

    def _is_whole(self, end: int) -> bool:
        """Whether the one line before ``end`` is all that will come of it."""
        if os.pread(self._fd, 1, end - 1) == b"\n" or not self._changes.was_changed:
            return True
        age_s = time.time() - os.fstat(self._fd).st_mtime
        return not 0 <= age_s < WRITING_S

    def next_line(self) -> bytes | None:
        """Take a line; None where there is none now."""
        if not self.fill():
            return None
        line = self.lines[self.at]
        self.at += 1
        return line

    @property
    def is_over(self) -> bool:
        """Whether the end of the file has been reached, and no half line stands there."""
        return self.at == len(self.lines) and not os.pread(self._fd, 1, self._offset)


def read_block(fd: int, offset: int) -> tuple[list[bytes], int]:
    """Whole lines of a file from an offset on, and where they end.

    Returns:
        Lines without their LF; at the end of the file the last one, which lacks its LF, comes
        alone. None at the end.
    """
    parts: list[bytes] = []
    at = offset
    while block := os.pread(fd, BLOCK, at):
        parts.append(block)
        at += len(block)
        if b"\n" in block:
            break
    data = b"".join(parts)
    end = data.rfind(b"\n") + 1
    if end:
        return data[: end - 1].split(b"\n"), offset + end
    return ([data], offset + len(data)) if data else ([], offset)


def blocks_of(fd: int) -> Iterator[list[bytes]]:
    """All lines of a file as it is now, a block's at a time."""
    lines, offset = read_block(fd, 0)
    while lines:
        yield lines
        lines, offset = read_block(fd, offset)
