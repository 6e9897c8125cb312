"""The control door of a driver: whoever may ask it for something, and gets an answer.

A Unix socket for this user on this machine, and the port of the run for those who know its
secret. A question is a mapping with a ``verb``; what the verbs do is handed in. Answers are
given in the loop's own thread, so they must be quick.
"""

from __future__ import annotations

import zlib

from overnight.errors import LinkBroken, OvernightError
from overnight.formats import link as frames
from overnight.model import messages as m
from overnight.net.door import Door
from overnight.net.link import Link
from overnight.net.poller import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    Verb = Callable[[Mapping[str, Any]], Mapping[str, Any]]

    class Host(Protocol):
        """What this needs of the driver's loop."""

        def watch(self, fd: int, mask: int) -> None: ...
        def forget(self, fd: int) -> None: ...

MOST_ASKING = 64


def control_path(folder: str, prefix: str) -> str:
    """Where the driver of the run with this prefix listens on this machine.

    Args:
        folder: Private to the user.
        prefix: Absolute, without links.
    """
    name = prefix.encode("utf-8", "surrogateescape")
    # hashlib would cost every run's start 3 ms; nobody but the user can choose names here.
    return f"{folder}/{zlib.crc32(name):08x}{zlib.crc32(name[::-1], len(name)):08x}.ctl"


class Control:
    """Everybody who asks."""

    def __init__(self, host: Host, verbs: Mapping[str, Verb]) -> None:
        """Answer nobody yet.

        Args:
            host: The driver's loop.
            verbs: What can be asked for; each takes what goes with it and gives the answer.
        """
        self._host = host
        self._verbs = verbs
        self._door: Door | None = None
        self._asking: dict[int, Link] = {}

    def open(self, path: str) -> None:
        """Listen on this machine.

        Raises:
            OSError: It cannot be listened there.
        """
        self._door = Door(path)
        self._host.watch(self._door.fd, READ)

    def arrived(self, link: Link) -> None:
        """Somebody who may ask is here."""
        if len(self._asking) >= MOST_ASKING:
            link.close()
            return
        self._asking[link.read_fd] = link
        self._go_on(link)
        if link.read_fd in self._asking:
            self._hear(link)

    def knows(self, fd: int) -> bool:
        """Whether this descriptor is the door's, or of somebody who asks."""
        return fd in self._asking or (self._door is not None and fd == self._door.fd)

    def hear(self, fd: int) -> None:
        """What somebody asks, or that somebody comes."""
        link = self._asking.get(fd)
        if link is not None:
            self._hear(link)
            return
        found = self._door.admit() if self._door is not None else None
        if found is not None:
            self.arrived(Link(found, found, awaits_magic=True))

    def _hear(self, link: Link) -> None:
        try:
            for kind, payload in link.receive():
                if kind != m.ASK:
                    raise LinkBroken(f"a frame of kind {kind} asks for nothing")
                answer = self._answer(frames.decode_control(payload))
                link.send(m.ANSWER, frames.encode_control(answer))
        except LinkBroken:
            link.closed = True
        self._go_on(link)

    def _answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        verb = self._verbs.get(str(question.get("verb")))
        if verb is None:
            return {"error": f"this driver does not know the verb {question.get('verb')!r}"}
        try:
            return {"error": None, **verb(question)}
        except OvernightError as error:
            return {"error": str(error)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return {"error": f"the question is not understood: {error!r}"}

    def _go_on(self, link: Link) -> None:
        link.flush()
        if link.closed:
            del self._asking[link.read_fd]
            self._host.forget(link.read_fd)
            link.close()
        else:
            self._host.watch(link.read_fd, READ | WRITE if link.wants_write else READ)

    def close(self) -> None:
        """Answer nobody any more."""
        if self._door is not None:
            self._host.forget(self._door.fd)
            self._door.close()
        for fd, link in self._asking.items():
            self._host.forget(fd)
            link.flush()
            link.close()
        self._asking.clear()
