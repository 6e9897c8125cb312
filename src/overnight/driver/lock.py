"""Who owns a prefix: a file made by link(2), which is atomic on network file systems too.

The file names host, boot, process and its start time. Locks of the file system are
not used: on network file systems they lie. A lock whose owner is provably gone (same
host, and the boot or the process is another one) is taken over.
"""

from __future__ import annotations

import os

from overnight.errors import PrefixTaken
from overnight.guard.processes import boot_id, process_identity

TAKEOVER_TRIES = 5


class PrefixLock:
    """Ownership of a run's files by this process, from ``take`` to ``release``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._text = _own_line()

    def take(self) -> None:
        """Become the owner.

        Raises:
            PrefixTaken: Another driver owns the prefix, or may own it.
        """
        draft = f"{self.path}.{os.getpid()}"
        _write_new(draft, self._text)
        try:
            for _ in range(TAKEOVER_TRIES):
                try:
                    os.link(draft, self.path)
                    return
                except FileExistsError:
                    self._remove_if_dead()
            raise PrefixTaken(f"{self.path} is fought over by several drivers")
        finally:
            os.unlink(draft)

    def _remove_if_dead(self) -> None:
        owner = read_owner(self.path)
        if owner is None:
            return
        if not is_gone(owner):
            raise PrefixTaken(
                f"another driver owns this prefix: process {owner['pid']} on {owner['host']}",
                where=self.path, kept="nothing was started, its files are untouched",
                do="wait for it, choose another prefix with -p, or, if you know that it is"
                   " gone, remove the lock file",
            )
        # Another driver may take over in this moment: only the file that was read is moved.
        grave = f"{self.path}.old.{os.getpid()}"
        try:
            os.rename(self.path, grave)
        except FileNotFoundError:
            return
        moved = read_owner(grave)
        if moved is not None and moved != owner:
            os.link(grave, self.path)
        os.unlink(grave)

    def release(self) -> None:
        """Stop being the owner, if this process still is."""
        owner = read_owner(self.path)
        if owner is not None and _line(owner) == self._text:
            os.unlink(self.path)


def read_owner(path: str) -> dict[str, str] | None:
    """Who owns the prefix with this lock file: host, boot, pid, start; None if nobody does."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = file.read(1000).split()
    except OSError:
        return None
    names = ("host", "boot", "pid", "start")
    if len(fields) != len(names) or not fields[2].isdigit():
        return {"host": "?", "boot": "?", "pid": "0", "start": "?"}
    return dict(zip(names, fields, strict=False))


def is_gone(owner: dict[str, str]) -> bool:
    """Whether it is proved that this owner does not run any more."""
    if owner["host"] != os.uname().nodename:
        return False
    if owner["boot"] != boot_id():
        return True
    return str(process_identity(int(owner["pid"]))[0]) != owner["start"]


def _own_line() -> str:
    pid = os.getpid()
    start, boot = process_identity(pid)
    return f"{os.uname().nodename} {boot} {pid} {start}\n"


def _line(owner: dict[str, str]) -> str:
    return f"{owner['host']} {owner['boot']} {owner['pid']} {owner['start']}\n"


def _write_new(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
