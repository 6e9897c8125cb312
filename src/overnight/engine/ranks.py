"""Ranks of a step and the engine among them, on one node.

A resource manager starts the engine file once for each slot. The first rank is also the
engine; the others connect to it over a Unix socket and are its runners. The socket lies in
a directory that only this user can enter, under the name of the step; who connects is asked
for by the kernel, and its slot is read from the environment that the manager gave it.
"""

from __future__ import annotations

import os
import time
from struct import unpack

from overnight.core import engine_events as e
from overnight.net.door import Door, check_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

PLACES = ("/tmp", "/dev/shm", "/var/tmp")
"""Where a node's ranks meet: the first in which the folder is this user's alone."""

CONNECT_WITHIN_S = 120.0
LOOK_S = 0.02
MUCH = 1 << 20

LOCAL_RANK = b"SLURM_LOCALID"


def local_rank(inherited: Sequence[bytes]) -> int | None:
    """Number of this process among those of its step on this node; None outside of steps."""
    value = by_name(inherited).get(LOCAL_RANK.decode(), "")
    return int(value) if value.isdigit() else None


def by_name(entries: Sequence[bytes]) -> dict[str, str]:
    """An environment by name."""
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}


class RankDoor:
    """Where the other ranks of this node come in.

    Attributes:
        fd: Readable when one knocks.
    """

    def __init__(self, launch: str) -> None:
        """Listen.

        Raises:
            OSError: In no place can a folder of this user's alone be had.
        """
        failure: OSError | None = None
        for path in _paths(launch):
            try:
                self._door = Door(path)
                break
            except OSError as error:
                failure = failure or error
        else:
            raise failure or OSError(launch)
        self.fd = self._door.fd

    def admit(self) -> list[e.Event]:
        """Those who have come; who is not a rank of this step is hung up on."""
        fd = self._door.admit()
        if fd is None:
            return []
        environment = _environment_of_peer(fd)
        slot = environment.get(LOCAL_RANK.decode(), "")
        if not slot.isdigit():
            os.close(fd)
            return []
        return [e.RankJoined(fd, int(slot), environment)]

    def close(self) -> None:
        """Let nobody in any more."""
        self._door.close()


def _paths(launch: str) -> list[str]:
    return [f"{place}/overnight-{os.getuid()}/{launch}.ranks" for place in PLACES]


def _environment_of_peer(fd: int) -> Mapping[str, str]:
    import socket

    with socket.socket(fileno=os.dup(fd)) as connection:
        pid = _peer(connection)[0]
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            text = file.read(MUCH) or b""
    except OSError:
        return {}
    return by_name([entry for entry in text.split(b"\0") if entry])


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user of the other end."""
    import socket

    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = unpack("3i", credentials)
    return pid, uid


def connect_to_engine(launch: str) -> int:
    """Descriptor of a connection to the engine of this node, which may only just start.

    Raises:
        OSError: There was none in time.
    """
    import socket

    give_up_at = time.monotonic() + CONNECT_WITHIN_S
    while True:
        for path in _paths(launch):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                check_folder(os.path.dirname(path), makes=False)
                connection.connect(path)
                if _peer(connection)[1] == os.getuid():
                    connection.setblocking(False)
                    return connection.detach()
            except OSError as error:
                failure = error
            connection.close()
        if time.monotonic() >= give_up_at:
            raise failure
        time.sleep(LOOK_S)
