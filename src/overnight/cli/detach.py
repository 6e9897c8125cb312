"""``overnight run --detach``: the command returns, the run goes on without its terminal."""

from __future__ import annotations

import os
import sys

from overnight.core.summary.rerun import shell_word
from overnight.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.options import RunOptions
    from overnight.model.run import RunFiles

STDIN, STDOUT, STDERR = 0, 1, 2

_report_fd: int | None = None
_kept: list[int] = []  # descriptors that the run goes on to use


def detach(options: RunOptions, files: RunFiles) -> int | None:
    """Split the process in two, before it has threads, files or children.

    The parent waits until the run stands on its own (``let_go``) or has failed to: what
    went wrong then still reaches the terminal, through standard error.

    Returns:
        In the parent, the exit status of the command; in the run itself, None.

    Raises:
        UsageError: What the run is to print would have nowhere to go.
    """
    global _report_fd
    if options.json or options.print:
        _keep(STDOUT, "--json and --print would write to it", "> FILE")
    if options.task_file == "-":
        _keep(STDIN, "the list would come from it", "< FILE")
    reading, writing = os.pipe()
    sys.stdout.flush()
    if os.fork():
        os.close(writing)
        has_started = os.read(reading, 1) == b"+"
        if not has_started:
            return 1
        _say_where(files)
        return 0
    os.close(reading)
    os.setsid()
    _report_fd = writing
    return None


def _keep(fd: int, why_not: str, instead: str) -> None:
    if os.isatty(fd):
        raise UsageError(f"--detach leaves the terminal, and {why_not}",
                         kept="nothing was started", do=f"use a file or a pipe: {instead}")
    _kept.append(fd)


def _say_where(files: RunFiles) -> None:
    stream = sys.stderr if STDOUT in _kept else sys.stdout
    print(f"The run goes on by itself. Watch it:\n  overnight attach {shell_word(files.prefix)}",
          file=stream)


def let_go() -> None:
    """In the run itself: tell the parent that it may return, and leave the terminal."""
    global _report_fd
    if _report_fd is None:
        return
    os.write(_report_fd, b"+")
    os.close(_report_fd)
    _report_fd = None
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (STDIN, STDOUT, STDERR):
        if fd not in _kept:
            os.dup2(nothing, fd)
    os.close(nothing)
