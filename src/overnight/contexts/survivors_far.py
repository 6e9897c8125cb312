"""Engines of earlier drivers on other machines: all are looked for at once, through ssh.

What comes first over each link says how it is: HELLO of an engine that lives, which stays
in the link for whoever takes it over, or PROOF that nothing of it runs. Where neither
comes the resume is refused: nobody knows which tasks that engine still runs.
"""

from __future__ import annotations

import select
import socket
import time

from overnight.contexts.ssh import row_ends
from overnight.errors import LinkBroken, NoResources, ResumeRefused
from overnight.formats import link as frames
from overnight.formats.spool import parse_spool
from overnight.model import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.contexts.noted import NotedEngine
    from overnight.contexts.ssh import SshEngine
    from overnight.core.recorded import Recorded
    from overnight.formats.spool import Spooled

ANSWER_WITHIN_S = 150.0
LOOK_EVERY_S = 0.05
MOST_PEEKED = 1 << 18


class FarSurvivors:
    """What was found.

    Attributes:
        living: Engines, connected; nothing has been read from their links.
        kept: What those that are gone had written down, and who they were.
    """

    def __init__(self) -> None:
        self.living: list[SshEngine] = []
        self.kept: list[tuple[Sequence[Spooled], NotedEngine]] = []


def look_for_far(handles: Sequence[SshEngine], recorded: Recorded) -> FarSurvivors:
    """Look for these engines.

    Raises:
        ResumeRefused: It is not known of one what runs there.
    """
    found = FarSurvivors()
    try:
        for handle in handles:
            handle.recorded = row_ends(recorded.ends())
            _begin(handle)
        until = time.monotonic() + ANSWER_WITHIN_S
        for handle in handles:
            try:
                _sort(handle, _answer(handle, until), found)
            except LinkBroken as error:
                raise _unknown(handle, error.what) from error
    except BaseException:
        for handle in handles:
            handle.end()
        raise
    return found


def _begin(handle: SshEngine) -> None:
    try:
        handle.begin()
    except NoResources as error:
        raise _unknown(handle, error.what) from error


def _answer(handle: SshEngine, until: float) -> tuple[int, bytes]:
    """Kind and payload of the first frame; HELLO is left in the link, with its payload."""
    with socket.socket(fileno=handle.read_fd) as link:
        try:
            return _first_frame(link, handle, until)
        finally:
            link.detach()


def _first_frame(link: socket.socket, handle: SshEngine, until: float) -> tuple[int, bytes]:
    waiting = memoryview(b"".join(handle.opening))
    handle.opening = ()
    link.setblocking(False)
    poll = select.poll()
    seen = 0
    while time.monotonic() < until:
        poll.register(link, select.POLLIN | (select.POLLOUT if waiting else 0))
        for _, mask in poll.poll(1000):
            if mask & select.POLLOUT and waiting:
                try:
                    waiting = waiting[link.send(waiting):]
                except OSError:
                    waiting = waiting[:0]  # why, is known when its streams end
        try:
            data = link.recv(MOST_PEEKED, socket.MSG_PEEK)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        at = data.find(m.MAGIC)
        if at >= 0 and len(data) >= at + len(m.MAGIC) + frames.HEADER_SIZE:
            return _read_frame(link, data, at + len(m.MAGIC), until)
        if len(data) == seen:
            if not data or _has_ended(link, len(data)):
                raise _unknown(handle, handle.words())
            time.sleep(LOOK_EVERY_S)
        seen = len(data)
    raise _unknown(handle, f"nothing was said for {ANSWER_WITHIN_S:.0f} s")


def _has_ended(link: socket.socket, size: int) -> bool:
    """Whether nothing follows what is there to be read."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return any(mask & select.POLLHUP for _, mask in poll.poll(0))


def _read_frame(
    link: socket.socket, data: bytes, begin: int, until: float
) -> tuple[int, bytes]:
    kind = data[begin + 4]
    if kind == m.HELLO:
        return kind, b""
    link.settimeout(max(1.0, until - time.monotonic()))
    _take(link, begin)
    head = _take(link, frames.HEADER_SIZE)
    return kind, _take(link, int.from_bytes(head[:4], "big"))


def _take(link: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        data = link.recv(size)
        if not data:
            raise LinkBroken("a proof ended in the middle")
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _sort(handle: SshEngine, answer: tuple[int, bytes], found: FarSurvivors) -> None:
    kind, payload = answer
    if kind == m.HELLO:
        found.living.append(handle)
        return
    handle.end()
    handle.close()
    proof = frames.decode_control(payload)
    if kind != m.PROOF or not proof["is_ended"]:
        raise _unknown(handle, str(proof.get("reason", "")))
    spools = [parse_spool(data) for data in proof["spools"]]
    if spools and handle.noted is not None:
        found.kept.append((spools, handle.noted))


def _unknown(handle: SshEngine, reason: str) -> ResumeRefused:
    return ResumeRefused(
        f"an engine of this run was on {handle.node}, and nobody can tell whether its tasks"
        f" still run: {reason}",
        kept="nothing was started",
        do="resume when that host answers; or, if you know that nothing of the run is left"
           " there, remove its line from the file of engines beside the run",
    )
