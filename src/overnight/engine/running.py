"""An attempt as a process."""

from __future__ import annotations

import os

from overnight.engine.capture import BUFFERS, Pipe
from overnight.formats.environment import marks
from overnight.guard.kin import Shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.engine.capture import OutputFile
    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup

    Stream = Pipe | OutputFile

READS_AT_THE_END = 256
"""Buffers read when a shell has ended; a background child may go on writing for ever."""



class Running(Shell):
    """One attempt from its start to its report.

    Most attempts write nothing. So a pipe is a bare descriptor until something comes or
    it has to be watched, and becomes a ``Pipe`` by ``streams``.

    Attributes:
        slot: Where.
        attempt: What.
        out_fd: Read end of its standard output's pipe; -1 where that is a file.
        err_fd: The same of its standard error.
        started_at: Unix seconds.
        started_mono: The same moment by the clock that is never set back.
        elapsed_s: From there to its shell's end.
        is_over: Its shell has ended.
    """

    __slots__ = (
        "_setup", "_streams", "attempt", "elapsed_s", "err_fd", "is_over", "out_fd", "slot",
        "started_at", "started_mono",
    )

    def __init__(
        self, pid: int, slot: int, attempt: Attempt, out_fd: int, err_fd: int,
        started_at: float, started_mono: float, setup: Setup,
    ) -> None:
        self.pid = pid
        self.usage = None
        self.was_signalled = False
        self.slot = slot
        self.attempt = attempt
        self.out_fd = out_fd
        self.err_fd = err_fd
        self.started_at = started_at
        self.started_mono = started_mono
        self.elapsed_s = 0.0
        self.is_over = False
        self._setup = setup
        self._streams: tuple[Stream, Stream] | None = None

    def marks(self) -> list[bytes]:
        """What the environments of its processes carry, and no others'."""
        return marks(self._setup, self.slot, self.attempt)

    def write_to(self, out: Stream, err: Stream) -> None:
        """Say where its output goes, if not to bare pipes."""
        self._streams = out, err

    def streams(self) -> tuple[Stream, Stream]:
        """Its standard output and standard error."""
        if self._streams is None:
            self._streams = Pipe(self.out_fd), Pipe(self.err_fd)
        return self._streams

    @property
    def is_bare(self) -> bool:
        """Whether its pipes are descriptors that nobody has read from or watches."""
        return self._streams is None

    def drain(self) -> bool:
        """Read what is there; whether nothing more can come."""
        if self._streams is None and self._was_silent():
            return True
        out, err = self.streams()
        out.read(READS_AT_THE_END)
        err.read(READS_AT_THE_END)
        return not (out.is_open or err.is_open)

    def _was_silent(self) -> bool:
        """Whether both pipes are at their end and nothing has come."""
        for place in (0, 1):
            try:
                size = os.readv(self.err_fd if place else self.out_fd, BUFFERS)
            except BlockingIOError:
                return False
            if size:
                stream = self.streams()[place]
                if isinstance(stream, Pipe):
                    stream.keep(size)
                return False
        return True
