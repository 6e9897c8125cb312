"""The file of a picture: a new one, or an earlier picture of its kind, and nothing else.

The files that a report is asked about lie beside the one it is to write, with names alike:
a slip of the shell's completion must not cost anybody a record. What may be replaced is known
by its first bytes, where every picture of ours bears a mark.
"""

from __future__ import annotations

import os
import stat

from overnight.errors import OvernightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

MADE_BY = "made by overnight"
"""Stands in the first bytes of every picture."""

SVG, HTML, PNG = "SVG picture", "HTML page", "PNG picture"
BEGINNINGS = {SVG: b"<svg ", HTML: b"<!DOCTYPE html>", PNG: b"\x89PNG\r\n\x1a\n"}
_HEAD = 512


def is_picture_of_ours(head: bytes, kind: str) -> bool:
    """Whether a file with these first bytes is a picture of this kind that we have made."""
    return head.startswith(BEGINNINGS[kind]) and MADE_BY.encode() in head[:_HEAD]


def check_picture_file(path: str, kind: str) -> None:
    """Make sure that a picture of this kind may be written there; nothing is touched.

    Raises:
        OvernightError: Something else lies there.
    """
    try:
        if _can_be_lost(path):
            with open(path, "rb") as file:
                _refuse_other(file, path, kind)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _fault(error, path) from error


def write_picture(path: str, kind: str, data: bytes) -> None:
    """Write a picture.

    Raises:
        OvernightError: Something else lies there, untouched; or it cannot be written.
    """
    try:
        with _opened(path, kind) as file:
            file.write(data)
    except OSError as error:
        raise _fault(error, path) from error


def _opened(path: str, kind: str) -> BinaryIO:
    if not os.path.exists(path):
        return open(os.path.realpath(path), "xb")  # also where a link leads to nothing
    if not _can_be_lost(path):
        return open(path, "wb")
    # What was looked at is what is written to, whatever the name means by then.
    file = open(path, "r+b")  # noqa: SIM115  # closed by the caller
    try:
        _refuse_other(file, path, kind)
        file.seek(0)
        file.truncate()
    except BaseException:
        file.close()
        raise
    return file


def _can_be_lost(path: str) -> bool:
    """Whether something lies there that writing would replace; a terminal and a pipe keep nothing.

    Raises:
        OSError: There is nothing, or it cannot be looked at.
    """
    mode = os.stat(path).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))


def _refuse_other(file: BinaryIO, path: str, kind: str) -> None:
    if not is_picture_of_ours(file.read(_HEAD), kind):
        raise OvernightError(
            f"this file is no {kind} of an earlier report, and is not overwritten", where=path,
            kept="it is untouched, and no picture was written",
            do="give the picture a new name",
        )


def _fault(error: OSError, path: str) -> OvernightError:
    return OvernightError(
        f"it cannot be written: {error.strerror}", where=path, kept="no record was touched",
        do="name a file in a folder that you may write to",
    )
