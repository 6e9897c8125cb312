"""``HOST:PORT`` as it is typed."""

from __future__ import annotations

from overnight.errors import UsageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class UseAddress:
    """``--use-address HOST:PORT``: where a run listens, and how that is called.

    Attributes:
        host: As it was given; empty for all addresses.
        port: 0 for any.
    """

    __slots__ = ("host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    @property
    def is_loopback(self) -> bool:
        """Whether nobody outside this machine is to reach the run."""
        return self.host in LOOPBACK


def parse_use_address(text: str) -> UseAddress:
    """Host and port; an address of IPv6 may stand in brackets.

    Raises:
        UsageError: It is none.

    >>> address = parse_use_address("[::1]:0")
    >>> address.host, address.port, address.is_loopback
    ('::1', 0, True)
    """
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) <= 65535
    if not colon or not is_port or any(character.isspace() for character in host):
        raise UsageError(
            f"--use-address {text}: HOST:PORT is needed, with a port from 0 (any) to 65535",
            kept="nothing was started", do="--use-address localhost:0 is for this machine alone",
        )
    return UseAddress(host.removeprefix("[").removesuffix("]"), int(port))
