"""A zip file of uncompressed entries, the same bytes for the same entries.

Python's zipfile module would do; importing it costs a run 15 ms before its first task.
"""

from __future__ import annotations

from binascii import crc32
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LOCAL = Struct("<4s5H3I2H")
_CENTRAL = Struct("<4s6H3I5H2I")
_END = Struct("<4s4H2IH")
_VERSION = 20
_MIDNIGHT, _FIRST_OF_1980 = 0, 0x21  # the earliest date that zip knows
_UNIX_FILE = 0o100644 << 16
_MADE_ON_UNIX = 3 << 8


def stored_zip(entries: Iterable[tuple[str, bytes]], prefix: bytes = b"") -> bytes:
    """The zip file with these entries (name and contents), in this order.

    Args:
        entries: Names are ASCII.
        prefix: Bytes that stand in front of the zip and are no part of it.
    """
    bodies: list[bytes] = [prefix]
    directory: list[bytes] = []
    offset = len(prefix)
    for name, data in entries:
        name_bytes = name.encode("ascii")
        about = (0, 0, _MIDNIGHT, _FIRST_OF_1980, crc32(data), len(data), len(data))
        local = _LOCAL.pack(b"PK\3\4", _VERSION, *about, len(name_bytes), 0) + name_bytes + data
        directory.append(_CENTRAL.pack(
            b"PK\1\2", _VERSION | _MADE_ON_UNIX, _VERSION, *about, len(name_bytes),
            0, 0, 0, 0, _UNIX_FILE, offset,
        ) + name_bytes)
        bodies.append(local)
        offset += len(local)
    central = b"".join(directory)
    count = len(directory)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(central), offset, 0)
    return b"".join(bodies) + central + end
