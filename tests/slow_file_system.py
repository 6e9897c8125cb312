"""A view of a folder through FUSE in which operations take long, or fail, as a file says.

    python -m tests.slow_file_system FOLDER MOUNT_POINT TROUBLE

``TROUBLE`` is a JSON file, read again at each operation: ``{"delay_s": 2, "ops": ["write"]}`` or
``{"error": "ESTALE", "ops": ["fsync"]}``; without ``ops`` all of them are meant. While it is
missing there is no trouble.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuse import FUSE, FuseOSError, Operations

STAT_FIELDS = (
    "st_atime", "st_blocks", "st_ctime", "st_gid", "st_ino", "st_mode", "st_mtime", "st_nlink",
    "st_size", "st_uid",
)  # fmt: skip


class SlowFolder(Operations):  # type: ignore[misc]  # fusepy has no types
    """The operations a status file and a folder of results need, passed through."""

    def __init__(self, folder: Path, trouble: Path) -> None:
        self._folder = str(folder)
        self._trouble = trouble

    def __call__(self, op: str, path: str | None, *arguments: Any) -> Any:
        if op not in ("init", "destroy"):
            self._be_troubled(op)
        real = self._folder + path if path else path
        try:
            return getattr(self, op)(real, *arguments)
        except OSError as error:
            raise FuseOSError(error.errno) from error

    def _be_troubled(self, op: str) -> None:
        trouble = self._read_trouble()
        if op in trouble.get("ops", [op]):
            time.sleep(trouble.get("delay_s", 0))
            if name := trouble.get("error"):
                raise FuseOSError(getattr(errno, name))

    def _read_trouble(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._trouble.read_text())
        except FileNotFoundError:
            return {}
        return found

    def access(self, path: str, mode: int) -> None:
        if not os.access(path, mode):
            raise FuseOSError(errno.EACCES)

    def getattr(self, path: str, handle: int | None = None) -> dict[str, float]:
        status = os.lstat(path) if handle is None else os.fstat(handle)
        return {name: getattr(status, name) for name in STAT_FIELDS}

    def readdir(self, path: str, handle: int) -> Iterable[str]:
        return [".", "..", *os.listdir(path)]

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(path)
        return {name: getattr(found, name) for name in dir(found) if name.startswith("f_")}

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, self._folder + new)

    def link(self, new: str, old: str) -> None:
        os.link(self._folder + old, new)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.lchown(path, uid, gid)

    def utimens(self, path: str, times: tuple[float, float] | None = None) -> None:
        os.utime(path, times)

    def open(self, path: str, flags: int) -> int:
        # FUSE gives each write its offset; O_APPEND would send it to the end instead.
        return os.open(path, flags & ~os.O_APPEND)

    def create(self, path: str, mode: int, info: Any = None) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)

    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:
        return os.pread(handle, size, offset)

    def write(self, path: str, data: bytes, offset: int, handle: int) -> int:
        return os.pwrite(handle, data, offset)

    def truncate(self, path: str, length: int, handle: int | None = None) -> None:
        os.truncate(path if handle is None else handle, length)

    def fsync(self, path: str, data_only: int, handle: int) -> None:
        os.fsync(handle)

    def flush(self, path: str, handle: int) -> None:
        """Nothing is held back here."""

    def release(self, path: str, handle: int) -> None:
        os.close(handle)


if __name__ == "__main__":
    folder, mount_point, trouble = map(Path, sys.argv[1:])
    FUSE(
        SlowFolder(folder, trouble),
        str(mount_point),
        foreground=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )
