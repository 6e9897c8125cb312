"""How an engine begins on another machine, or one there is looked for.

Standard input and output are the link that ssh gives. What is wanted stands in the ENTER
frame, ahead of everything else.
"""

from __future__ import annotations

import os
import sys

from overnight import __version__
from overnight.engine.main import (
    LACKS,
    inherited_environment,
    let_go_of_descriptors,
    own_signals,
    start_session,
)
from overnight.engine.supervisor import Supervisor
from overnight.formats import link as f
from overnight.guard.private import private_directory
from overnight.guard.processes import place
from overnight.model import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BASH = "/bin/bash"


def main() -> int:
    """Be what the first frame asks for; returns the exit status of the process."""
    wanted = read_enter(0)
    if wanted["verb"] == "attach":
        from overnight.engine.relay import attach

        return attach(wanted)
    return _engine(wanted)


def read_enter(fd: int) -> dict[str, Any]:
    """The ENTER frame, and not a byte more."""
    reader = f.FrameReader()
    frames = reader.feed(_take(fd, f.HEADER_SIZE))
    size = reader.missing()
    while size and not frames:
        frames = reader.feed(_take(fd, size))
    kind, payload = frames[0]
    if kind != m.ENTER:
        sys.exit(f"overnight: a frame of kind {kind} came first")
    return f.decode_control(payload)


def _take(fd: int, size: int) -> bytes:
    parts = []
    while size:
        data = os.read(fd, size)
        if not data:
            sys.exit(1)  # whoever called has hung up: nobody is there to be told
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _engine(wanted: dict[str, Any]) -> int:
    inherited = inherited_environment()
    read_fd, write_fd = _move_the_link_away()
    reason = _what_is_missing(wanted)
    if reason:
        say(write_fd, m.CANNOT, {"reason": reason})
        return 1
    _log_to(wanted["log"])
    let_go_of_descriptors((read_fd, write_fd))
    start_session()
    signal_fd = own_signals()
    told = {
        "place": place(), "private": private_directory(),
        "values": {
            name: os.environ[name] for name in wanted["tell"] if name in os.environ
        },
    }
    lacks = frozenset(each for each in LACKS if f"OVERNIGHT_TEST_NO_{each}" in os.environ)
    Supervisor(
        read_fd, write_fd, signal_fd, inherited, __version__, lacks, told=told, is_far=True
    ).run()
    return 0


def _move_the_link_away() -> tuple[int, int]:
    """No print and no task may touch the link: numbers 0 and 1 become /dev/null."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return read_fd, write_fd


def _what_is_missing(wanted: dict[str, Any]) -> str:
    """Why no task of this run can be run here; empty where it can."""
    folder, beacon = wanted["cwd"], wanted["beacon"]
    try:
        os.chdir(folder)
    except OSError as error:
        return f"its working directory {folder} cannot be entered there: {error.strerror}"
    if not os.access(BASH, os.X_OK):
        return f"{BASH} is not there"
    try:
        with open(beacon, "rb") as file:
            is_same = file.read() == wanted["beacon_text"]
    except OSError:
        is_same = False
    if not is_same:
        return f"the run's folder {os.path.dirname(beacon)} is not shared with it"
    return ""


def _log_to(path: str) -> None:
    """Standard error is a file: the other end of ssh's may be cut off, and then it blocks."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:
        fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)


def say(fd: int, kind: int, mapping: dict[str, object]) -> None:
    """The magic and one frame, to a driver that waits for them."""
    data = m.MAGIC + f.frame(kind, f.encode_control(mapping))
    while data:
        data = data[os.write(fd, data):]
