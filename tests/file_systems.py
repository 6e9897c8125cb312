"""Real file systems on their bad days: full, read-only, slow or failing. They need root.

The fixtures ``full_folder``, ``frozen_folder`` and ``slow_folder`` (tests/conftest.py) give one
of these to a test that says ``needs("mounts")``, or ``needs("fuse")`` for the slow one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.harness_processes import wait_until

ROOT = Path(__file__).parents[1]
SIZE_KIB = 2048
BALLAST = ".ballast"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)


@contextmanager
def _mounted_tmpfs(folder: Path) -> Iterator[None]:
    folder.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "tmpfs", str(folder))
    try:
        yield
    finally:
        # Lazily: a process that a failing test left behind may still stand in it.
        _run("umount", "--lazy", str(folder))


@dataclass(frozen=True, slots=True)
class FullFolder:
    """A small file system that can be filled to its last block, and relieved again."""

    path: Path

    def fill(self, leave_kib: int = 0) -> None:
        """Leave so much room and no more; writes beyond it are short, then fail (ENOSPC)."""
        free = os.statvfs(self.path).f_bavail * os.statvfs(self.path).f_frsize
        ballast = b"\0" * max(0, free - leave_kib * 1024)
        # Others may have taken room since: then it is as full as it can be.
        with suppress(OSError), (self.path / BALLAST).open("ab") as file:
            file.write(ballast)

    def relieve(self) -> None:
        """Make room."""
        (self.path / BALLAST).unlink()


@contextmanager
def full_folder(folder: Path) -> Iterator[FullFolder]:
    with _mounted_tmpfs(folder):
        yield FullFolder(folder)


@dataclass(frozen=True, slots=True)
class FrozenFolder:
    """A file system that can become read-only under its users (EROFS), and writable again."""

    path: Path

    def _remount(self, option: str) -> None:
        _run("mount", "-o", f"remount,{option}", str(self.path))

    def freeze(self) -> None:
        """Refuse writes from now on. Refused itself (EBUSY) while a file is open for writing."""
        self._remount("ro")

    def thaw(self) -> None:
        self._remount("rw")


@contextmanager
def frozen_folder(folder: Path) -> Iterator[FrozenFolder]:
    with _mounted_tmpfs(folder):
        yield FrozenFolder(folder)


@dataclass(frozen=True, slots=True)
class SlowFolder:
    """A folder seen through FUSE: its operations can be made slow, or to fail, at any moment."""

    path: Path
    trouble: Path

    def _set(self, **trouble: Any) -> None:
        fresh = self.trouble.with_suffix(".new")
        fresh.write_text(json.dumps(trouble))
        fresh.rename(self.trouble)

    def slow_down(self, delay_s: float, *ops: str) -> None:
        """Let these operations take so long, all of them without a name (see slow_file_system)."""
        self._set(delay_s=delay_s, **({"ops": ops} if ops else {}))

    def fail(self, error: str, *ops: str) -> None:
        """Let these operations fail with an error such as ``"ESTALE"`` or ``"EROFS"``."""
        self._set(error=error, **({"ops": ops} if ops else {}))

    def recover(self) -> None:
        """No trouble from now on."""
        self.trouble.unlink(missing_ok=True)


@contextmanager
def slow_folder(folder: Path) -> Iterator[SlowFolder]:
    """Mount the view at ``folder``; what is written lies in ``<folder>.below``."""
    below = folder.with_name(f"{folder.name}.below")
    trouble = folder.with_name(f"{folder.name}.trouble")
    folder.mkdir()
    below.mkdir()
    command = [sys.executable, "-m", "tests.slow_file_system", *map(str, (below, folder, trouble))]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            assert wait_until(lambda: os.path.ismount(folder), 20), "the FUSE view does not come up"
            yield SlowFolder(folder, trouble)
        finally:
            trouble.unlink(missing_ok=True)
            if os.path.ismount(folder):
                _run("umount", "--lazy", str(folder))
            server.terminate()
