"""The door through which a new driver finds an engine that is alone.

A Unix socket that only this user can reach: it lies in a directory of mode 0700 which
must be ours, it has mode 0600, and who connects is asked for the user by the kernel.
"""

from __future__ import annotations

import os
import stat
from struct import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket


class Door:
    """A listening socket, until it is closed.

    Attributes:
        fd: Readable when somebody knocks.
    """

    def __init__(self, path: str) -> None:
        """Listen; what an engine that died has left there is replaced.

        Raises:
            OSError: The directory is not ours alone, or the socket cannot be made.
        """
        import socket  # 15 ms; only an engine without a driver pays

        check_folder(os.path.dirname(path))
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._open(f"{path}.{os.getpid()}")
        except OSError:
            self._socket.close()
            raise
        self.fd = self._socket.fileno()

    def _open(self, fresh: str) -> None:
        """Listen under a fresh name first: who finds the path finds somebody listening."""
        before = os.umask(0o177)
        try:
            self._socket.bind(fresh)
        finally:
            os.umask(before)
        self._socket.listen(4)
        self._socket.setblocking(False)
        os.rename(fresh, self._path)

    def admit(self) -> int | None:
        """Descriptor of a connection by this user, or None."""
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return None
        if _peer_uid(connection) != os.getuid():
            connection.close()
            return None
        return connection.detach()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        try:  # noqa: SIM105  # contextlib costs a start 2 ms
            os.unlink(self._path)
        except OSError:
            pass  # removed by somebody who tidied up: it is gone, as it should be


def check_folder(folder: str, makes: bool = True) -> None:
    """Make sure that nobody but this user can put anything into a folder.

    Raises:
        OSError: It is not so, or there is no such folder.
    """
    if makes:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if (
        not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid()
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise PermissionError(1, f"{folder} is not a directory of this user alone")


def _peer_uid(connection: socket.socket) -> int:
    import socket

    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(unpack("3i", credentials)[1])
