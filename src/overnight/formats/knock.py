"""What a client says first inside TLS: that it knows the run's secret, and what it is.

A knock has one length, so nothing about it needs parsing before the secret is compared:
sixteen bytes of magic, the secret, the role padded with blanks. The driver answers with
``WELCOME``, or hangs up. What follows is a link like any other.
"""

from __future__ import annotations

from overnight.model.roles import ROLES

KNOCK_MAGIC = b"\x93overnight-join\n"
WELCOME = b"\x93overnight-open\n"
SECRET_SIZE = 32
_ROLE_SIZE = 16
KNOCK_SIZE = len(KNOCK_MAGIC) + SECRET_SIZE + _ROLE_SIZE


def knock(secret: bytes, role: str) -> bytes:
    """The knock of a client.

    >>> len(knock(bytes(32), "engine")) == KNOCK_SIZE
    True
    """
    if len(secret) != SECRET_SIZE or role not in ROLES:
        raise ValueError(f"no knock: {len(secret)} bytes of secret, role {role!r}")
    return KNOCK_MAGIC + secret + role.encode("ascii").ljust(_ROLE_SIZE)


def parse_knock(data: bytes) -> tuple[bytes, str] | None:
    """Secret and role of a knock; None when it is none."""
    if len(data) != KNOCK_SIZE or not data.startswith(KNOCK_MAGIC):
        return None
    role = data[-_ROLE_SIZE:].rstrip(b" ").decode("ascii", "replace")
    return (data[len(KNOCK_MAGIC):-_ROLE_SIZE], role) if role in ROLES else None
