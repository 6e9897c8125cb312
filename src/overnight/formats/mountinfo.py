"""Which file system a path lies on, from /proc/self/mountinfo."""

from __future__ import annotations

import re

_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount:
    """A mounted file system.

    Attributes:
        point: Where.
        kind: Such as ``ext4``, ``nfs4``, ``fuse.sshfs``.
        options: Of the mount and of the file system.
    """

    __slots__ = ("kind", "options", "point")

    def __init__(self, point: str, kind: str, options: frozenset[str]) -> None:
        self.point = point
        self.kind = kind
        self.options = options


def mount_of(text: str, path: str) -> Mount | None:
    """The mount that an absolute path without links lies on; None where nobody can say.

    Args:
        text: Contents of mountinfo.
        path: Of a file that is there.
    """
    best: Mount | None = None
    for line in text.splitlines():
        mount = _parse(line)
        # Of two at the same point the later one covers the earlier.
        if mount is not None and _holds(mount.point, path) and (
            best is None or len(mount.point) >= len(best.point)
        ):
            best = mount
    return best


def _parse(line: str) -> Mount | None:
    before, dash, after = line.partition(" - ")
    fields, rest = before.split(" "), after.split(" ")
    if not dash or len(fields) < 6 or len(rest) < 3:
        return None
    point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4])
    options = frozenset(fields[5].split(",") + rest[2].split(","))
    return Mount(point, rest[0], options)


def _holds(point: str, path: str) -> bool:
    return point == "/" or path == point or path.startswith(f"{point}/")
