"""A file for one user's eyes: made whole, checked, or not made at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from overnight.core.secret_places import keeps_secrets
from overnight.formats.mountinfo import mount_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def write_secret(paths: Sequence[str], text: str) -> str:
    """Write the text where it is safe, and say where that is.

    What lies there already is replaced, whatever it is: an earlier driver's, or a trap.

    Args:
        paths: To be tried in this order; folders of all but the first are made, with 0700.
        text: The secret; written only after the file was found to be safe.

    Raises:
        OSError: It is safe nowhere; the text says why for each.
    """
    reasons = []
    for number, path in enumerate(paths):
        try:
            if number:
                _make_private(os.path.dirname(path))
            _write(path, text)
        except OSError as error:
            reasons.append(f"{path}: {error.strerror or error}")
        else:
            return path
    raise OSError("; ".join(reasons))


def _write(path: str, text: str) -> None:
    draft = f"{path}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600)
    try:
        _check(fd, draft)
        data = text.encode()
        while data:
            data = data[os.write(fd, data):]
        os.rename(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        os.close(fd)


def _check(fd: int, path: str) -> None:
    """Whether what was made has the mode and the owner it was to have, and both mean something."""
    found = os.fstat(fd)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise OSError(0, f"a file there is not ours alone (mode {stat.S_IMODE(found.st_mode):o},"
                         f" user {found.st_uid})")
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mount = mount_of(file.read(), os.path.realpath(path))
    except OSError:
        return  # no such thing here: mode and owner are what can be known
    if mount is not None and not keeps_secrets(mount.kind, mount.options):
        raise OSError(0, f"modes of files mean nothing on {mount.point} ({mount.kind})")


def _make_private(folder: str) -> None:
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() \
            or stat.S_IMODE(found.st_mode) & 0o022:
        raise OSError(0, f"{folder} is not a folder that only you can write to")
