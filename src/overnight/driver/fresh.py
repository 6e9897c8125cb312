"""Files that are new: whole or not there, whatever fails on the way."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def made_or_removed(paths: Sequence[str]) -> Iterator[None]:
    """Whatever fails inside, of these files only those are left that were there before."""
    new = [path for path in paths if not os.path.lexists(path)]
    try:
        yield
    except BaseException:
        for path in new:
            with suppress(OSError):
                os.unlink(path)
        raise


def write_script(path: str, text: str) -> None:
    """The script, whole, executable by its owner alone."""
    draft = f"{path}.{os.urandom(4).hex()}"
    with made_or_removed([draft]):
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            os.fchmod(fd, 0o700)
        os.replace(draft, path)
