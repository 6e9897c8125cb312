"""Whether output of tasks can be kept in a folder, asked before anything is started."""

from __future__ import annotations

import os

from overnight.errors import UsageError


def check_output_folder(folder: str | None) -> None:
    """Look whether files can be made in a folder; nothing is made here.

    The engine makes it with its first file. So of a folder that is not there yet, the one it
    would be made in is looked at.

    Args:
        folder: The folder, or None where no output is kept.

    Raises:
        UsageError: They cannot.
    """
    if folder is None:
        return
    place = os.path.abspath(folder)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        reason = "is no folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        reason = "cannot be written to"
    else:
        return
    raise UsageError(
        f"--output {folder}: {place} {reason}", kept="nothing was started",
        do="name a folder that can be made, or one that can be written to",
    )
