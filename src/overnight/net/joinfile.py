"""Reading a join file: only one that nobody else can have written is believed.

Whoever has written it decides what the engines of this user run.
"""

from __future__ import annotations

import os
import stat

from overnight.errors import LinkBroken
from overnight.formats.joinfile import MOST_BYTES, parse_join_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.formats.joinfile import JoinFile


def fallback_path(run: str) -> str:
    """Where the join file of a run lies whose folder cannot keep a secret."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return f"{state}/overnight/{run}/join"


def places_of(path: str) -> tuple[str, str]:
    """Where the join file that is named ``<prefix>_join`` may lie."""
    run = os.path.basename(path)
    return path, fallback_path(run[: -len("_join")] if run.endswith("_join") else run)


def read_join_file(paths: Sequence[str]) -> JoinFile | None:
    """The first of these that is there; None when none is.

    Raises:
        LinkBroken: It is not this user's alone, or no join file.
        OSError: It cannot be read, so nobody knows whether it is there.
    """
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        try:
            _check_owner(fd, path)
            text = os.read(fd, MOST_BYTES + 1)
        finally:
            os.close(fd)
        if len(text) > MOST_BYTES:
            raise LinkBroken("no join file: it is too long", where=path)
        return parse_join_file(text.decode("utf-8", "replace"))
    return None


def _check_owner(fd: int, path: str) -> None:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() \
            or stat.S_IMODE(found.st_mode) & 0o077:
        raise LinkBroken(
            "this join file is not yours alone: somebody else may have written or read it",
            where=path, kept="nothing was started",
            do="join as the user who started the run",
        )
