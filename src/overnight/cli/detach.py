"""``overnight run --detach``: the command returns, the run goes on without its terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.run import RunFiles

_report_fd: int | None = None


def detach(files: RunFiles) -> int | None:
    """Split the process in two, before it has threads, files or children.

    The parent waits until the run stands on its own (``let_go``) or has failed to: what
    went wrong then still reaches the terminal, through standard error.

    Returns:
        In the parent, the exit status of the command; in the run itself, None.
    """
    global _report_fd
    reading, writing = os.pipe()
    sys.stdout.flush()
    if os.fork():
        os.close(writing)
        has_started = os.read(reading, 1) == b"+"
        if not has_started:
            return 1
        print(f"The run goes on by itself. Watch it:  overnight attach {files.prefix}")
        return 0
    os.close(reading)
    os.setsid()
    _report_fd = writing
    return None


def let_go() -> None:
    """In the run itself: tell the parent that it may return, and leave the terminal."""
    global _report_fd
    if _report_fd is None:
        return
    os.write(_report_fd, b"+")
    os.close(_report_fd)
    _report_fd = None
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
