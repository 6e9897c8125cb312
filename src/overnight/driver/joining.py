"""Listening for those who join: certificate, secrets, addresses, the join file.

All of it is made in a thread when it is wanted, and never in the way of the first task.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from overnight.core.admission import Secrets
from overnight.driver.secret_file import write_secret
from overnight.formats.joinfile import JoinFile, join_file_text
from overnight.formats.knock import SECRET_SIZE
from overnight.guard.processes import boot_id
from overnight.net.addresses import addresses_to_try, bind
from overnight.net.certificate import make_certificate
from overnight.net.joinfile import places_of
from overnight.net.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from overnight.formats.hostport import UseAddress
    from overnight.model.run import RunFiles
    from overnight.net.listener import Arrival


class Reception:
    """The door of a run, from ``open`` to ``close``."""

    def __init__(
        self, files: RunFiles, generation: int, cwd: str, address: UseAddress,
        arrived: Callable[[Arrival], None], told: Callable[[str, str], None],
    ) -> None:
        """Open nothing yet.

        Args:
            files: Of the run.
            generation: Of its driver.
            cwd: Folder the tasks run in.
            address: Where to listen, and how that is called.
            arrived: Takes each client that is let in, in a thread.
            told: Takes level and text for a person, in a thread.
        """
        self._files = files
        self._generation = generation
        self._cwd = cwd
        self._address = address
        self._arrived = arrived
        self._told = told
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._listener: Listener | None = None
        self._join_file: tuple[str, int] | None = None  # path and inode

    def open(self, after_s: float = 0.0, *, is_asked: bool = True) -> None:
        """Begin to listen, in a thread; nothing changes where that was begun already.

        Args:
            after_s: Wait so long first: a run that is over by then never listens.
            is_asked: Somebody wants it, and is told when it cannot be; else the log is.
        """
        with self._lock:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(
                    target=self._open, args=(after_s, "warning" if is_asked else "info"),
                    name="overnight reception", daemon=True,
                )
                self._thread.start()

    def _open(self, after_s: float, level: str) -> None:
        if self._closing.wait(after_s):
            return
        try:
            self._listen()
        except ImportError as error:
            self._told(level, unheard_text(f"{error.name} is not installed"))
        except OSError as error:
            self._told(level, unheard_text(error.strerror or str(error)))

    def _listen(self) -> None:
        certificate = make_certificate()
        full, watching = os.urandom(SECRET_SIZE), os.urandom(SECRET_SIZE)
        hosts = addresses_to_try(self._address)
        door = bind(self._address)
        listener = Listener(
            [door], certificate.server_context(), Secrets(full, watching), self._arrived,
            self._told,
        )
        port = listener.ports[0]
        is_bound_to_one = self._address.host and not self._address.is_loopback
        text = join_file_text(JoinFile(
            self._files.run_id, self._generation, [(host, port) for host in hosts],
            0 if is_bound_to_one and door.getsockname()[0] not in ("::", "0.0.0.0") else port,
            boot_id(), self._cwd, certificate.text, full, watching,
        ))
        with self._lock:
            if self._is_closed:
                door.close()
                return
            try:
                listener.start()
                path = write_secret(places_of(self._files.join), text)
            except OSError:
                listener.close()
                raise
            self._listener = listener
            self._join_file = path, os.stat(path).st_ino
        self._told("info", f"machines can join: it listens on port {port}; see {path}")

    def close(self) -> None:
        """Let nobody in any more, and remove the join file."""
        self._closing.set()
        with self._lock:
            self._is_closed = True
            thread, listener = self._thread, self._listener
            self._listener = None
        if thread is not None:
            thread.join()
        if listener is not None:
            listener.close()
        if self._join_file is not None:
            path, inode = self._join_file
            with suppress(OSError):
                if os.stat(path).st_ino == inode:  # else another driver's
                    os.unlink(path)


def unheard_text(reason: str) -> str:
    """What a person is told when nobody can join."""
    return (
        f"no machine can join this run: {reason}\n"
        "  kept:  the run goes on with the slots it has; adding contexts, and engines that"
        " call, are not possible\n"
        "  do:    mend that and resume the run; or name another place with -p, another"
        " address with --use-address"
    )
