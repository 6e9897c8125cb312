"""The join file: all that an engine needs to call its run, and the one place of the secret.

It is JSON, so that a person can see where a run is reached. Whoever reads it has full
control of the run; it is written for one user's eyes (``driver/joining``), and an engine
believes it only where nobody else can have written it (``net/joinfile``).
"""

from __future__ import annotations

import json

from overnight.errors import LinkBroken
from overnight.formats.knock import SECRET_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 65536
"""Of a join file; anything longer is none."""


class JoinFile:
    """How a run is joined.

    Attributes:
        run: Its id.
        generation: Of the driver that listens.
        addresses: Host and port, in the order to try; may be empty.
        loopback_port: Port on loopback, for this one machine.
        boot: Boot id of the driver's machine.
        cwd: Folder the tasks run in.
        certificate: Of the run, PEM.
        secret: For full control.
        watching: The second secret, for those who only watch.
    """

    __slots__ = (
        "addresses", "boot", "certificate", "cwd", "generation", "loopback_port", "run", "secret",
        "watching",
    )

    def __init__(
        self, run: str, generation: int, addresses: Sequence[tuple[str, int]],
        loopback_port: int, boot: str, cwd: str, certificate: str, secret: bytes, watching: bytes,
    ) -> None:
        self.run = run
        self.generation = generation
        self.addresses = addresses
        self.loopback_port = loopback_port
        self.boot = boot
        self.cwd = cwd
        self.certificate = certificate
        self.secret = secret
        self.watching = watching

    def places(self, boot: str) -> list[tuple[str, int]]:
        """Where a client on the machine with this boot id tries, in this order.

        Loopback only on the driver's own machine: elsewhere it would be somebody else.
        """
        is_same = bool(boot) and boot == self.boot
        own = [("127.0.0.1", self.loopback_port)] if is_same and self.loopback_port else []
        return [*own, *self.addresses]


def join_file_text(file: JoinFile) -> str:
    """The text of a join file."""
    return json.dumps({
        "overnight join file": 1, "run": file.run, "generation": file.generation,
        "addresses": [list(each) for each in file.addresses],
        "loopback_port": file.loopback_port, "boot": file.boot, "cwd": file.cwd,
        "certificate": file.certificate, "secret": file.secret.hex(),
        "watching": file.watching.hex(),
    }, indent=1) + "\n"


def parse_join_file(text: str) -> JoinFile:
    """What a join file says.

    Raises:
        LinkBroken: It is none, or of another version.
    """
    try:
        found = json.loads(text)
        if found["overnight join file"] != 1:
            raise LinkBroken(f"a join file of version {found['overnight join file']}")
        file = JoinFile(
            str(found["run"]), int(found["generation"]),
            [(str(host), _port(port)) for host, port in found["addresses"]],
            _port(found["loopback_port"]), str(found["boot"]), str(found["cwd"]),
            str(found["certificate"]),
            bytes.fromhex(found["secret"]), bytes.fromhex(found["watching"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LinkBroken(f"no join file: {error!r}") from error
    if len(file.secret) != SECRET_SIZE or len(file.watching) != SECRET_SIZE:
        raise LinkBroken("no join file: a secret of another length")
    return file


def _port(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 65536:
        raise ValueError(f"no port: {value!r}")
    return value
