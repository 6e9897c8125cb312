"""A file that was given as the list and plainly is none is refused before anything runs."""

from __future__ import annotations

import os
import stat

from overnight.core.summary.rerun import rerun_from_list, shell_word
from overnight.errors import ListRefused
from overnight.formats.listhead import (
    BINARY,
    HEAD_SIZE,
    LIST,
    STATUS,
    TASK_LOG,
    kind_of_head,
)
from overnight.model.run import RunFiles, prefix_of_status

_WORDS = {
    STATUS: "this is the status file of a run, not a list of tasks",
    TASK_LOG: "this is the task log of a run, not a list of tasks",
    BINARY: "a NUL byte is in it: this is no text, so no list of tasks",
}
_TASK_LOG_ENDING = "_tasks.jsonl"


def refuse_what_is_no_list(name: str, fd: int | None = None) -> None:
    """Look at the first bytes of the list; where they are read next does not change.

    Args:
        name: Path of the list, or what to call it.
        fd: It, where it is open already. What is no regular file cannot be looked at.

    Raises:
        ListRefused: It is plainly something else.
        OSError: It cannot be read.
    """
    kind = kind_of_head(_head(name) if fd is None else _head_of(fd))
    if kind != LIST:
        raise ListRefused(_WORDS[kind], where=name, kept="nothing was started",
                          do=_advice(name, kind))


def _head(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _head_of(fd)
    finally:
        os.close(fd)


def _head_of(fd: int) -> bytes:
    try:
        is_regular = stat.S_ISREG(os.fstat(fd).st_mode)
        return os.pread(fd, HEAD_SIZE, os.lseek(fd, 0, os.SEEK_CUR)) if is_regular else b""
    except OSError:  # closed, or open for writing only: whoever reads it says so
        return b""


def _advice(name: str, kind: str) -> str:
    if kind == BINARY:
        return "name a list: text with one command on each line, as UTF-8 where it is not ASCII"
    prefix = name.removesuffix(_TASK_LOG_ENDING) if kind == TASK_LOG else prefix_of_status(name)
    if prefix and os.path.exists(RunFiles(os.path.abspath(prefix)).description):
        return f"did you mean  overnight resume {shell_word(prefix)}"
    return f"did you mean  {rerun_from_list([name]).replace(' -R ', ' ', 1)}"
