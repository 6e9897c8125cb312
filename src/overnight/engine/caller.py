"""Calling a run: all its addresses, until one answers; again and again where that is wanted.

Names are looked up and hands are shaken in a thread: the engine's loop goes on taking
reports meanwhile. The join file is read anew each time, since the driver that comes next
listens elsewhere and has another secret.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread
from contextlib import suppress

from overnight.errors import LinkBroken
from overnight.guard.processes import boot_id
from overnight.net.dial import DialFailed, dial
from overnight.net.joinfile import read_join_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.formats.joinfile import JoinFile
    from overnight.net.tls import TlsStream

WITHIN_S = 3.0
"""For one address."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0

IS_OVER_AFTER_S = 30.0
"""A join file that is gone for so long, from a folder that is there, says that the run has
ended; a driver that takes a run over puts another in its place and leaves no gap."""


def call(join_file: JoinFile, role: str) -> TlsStream:
    """Call at every address of the run, one after the other.

    Raises:
        LinkBroken: None answered; each is named with its reason.
    """
    failures = []
    for host, port in join_file.places(boot_id()):
        try:
            return dial(
                host, port, join_file.certificate, join_file.secret, role, WITHIN_S
            )
        except DialFailed as failure:
            failures.append(f"{host} port {port}: {failure}")
    raise LinkBroken(
        f"the driver of {join_file.run} is not reached from here",
        where=os.uname().nodename, kept="; ".join(failures) or "it listens on no address for here",
        do="see whether a firewall is between; or name an address that is reached, when the run"
           " starts: --use-address HOST:PORT",
    )


class Caller:
    """Calls a run in a thread while it is wanted to.

    Attributes:
        bell: Readable when there is something to ``collect``.
    """

    def __init__(self, paths: Sequence[str], role: str) -> None:
        """Call nobody yet.

        Args:
            paths: Where the run's join file may lie.
            role: What we are.
        """
        self._paths = paths
        self._role = role
        self.bell, self._ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._lock = allocate_lock()
        self._is_wanted = False
        self._is_calling = False
        self._answer: TlsStream | None = None
        self._is_over = False

    def start(self) -> None:
        """Call from now on; nothing changes if that is so already."""
        with self._lock:
            self._is_wanted = True
            if not self._is_calling and self._answer is None:
                self._is_calling = True
                start_new_thread(self._call_on, ())

    def stop(self) -> None:
        """Call no more; an answer that comes all the same is hung up on."""
        with self._lock:
            self._is_wanted = False
            answer, self._answer = self._answer, None
        if answer is not None:
            os.close(answer.fd)

    def collect(self) -> tuple[TlsStream | None, bool]:
        """An answer that has come, if one has; and whether the run is over."""
        with suppress(BlockingIOError):
            os.read(self.bell, 64)
        with self._lock:
            answer, self._answer = self._answer, None
            return answer, self._is_over

    # ---- in the thread

    def _call_on(self) -> None:
        pause_s = FIRST_PAUSE_S
        gone_since: float | None = None
        while True:
            stream, is_gone = self._try()
            gone_since = (gone_since or time.monotonic()) if is_gone else None
            is_over = gone_since is not None and time.monotonic() - gone_since >= IS_OVER_AFTER_S
            if self._is_done(stream, is_over):
                return
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _is_done(self, stream: TlsStream | None, is_over: bool) -> bool:
        with self._lock:
            if stream is not None and self._is_wanted:
                self._answer, stream = stream, None
            self._is_over = is_over
            is_done = self._answer is not None or is_over or not self._is_wanted
            self._is_calling = not is_done
        if stream is not None:
            os.close(stream.fd)
        if is_done:
            os.write(self._ring, b"r")
        return is_done

    def _try(self) -> tuple[TlsStream | None, bool]:
        """A connection, if one comes about; and whether the join file is gone."""
        try:
            join_file = read_join_file(self._paths)
            if join_file is None:
                return None, os.path.isdir(os.path.dirname(self._paths[0]))
            return call(join_file, self._role), False
        except (LinkBroken, OSError):
            return None, False
