"""Where the files of a new run go."""

from __future__ import annotations

import os
import time

from overnight.errors import OvernightError
from overnight.model.run import RunFiles

NAME_TRIES = 1000


def name_tasks(task_file: str) -> str:
    """DISBATCH_NAMETASKS: base name of the list, ``stdin`` for standard input.

    >>> name_tasks("sub/My.Tasks")
    'My.Tasks'
    """
    return "stdin" if task_file == "-" else os.path.basename(task_file)


def new_files(prefix: str, task_file: str) -> RunFiles:
    """The files of a run with this ``-p``: a directory for default names, or a whole prefix.

    A default name is ``<list>_disBatch_<yymmddHHMMSS>_<NNN>``; of the thousand that one
    second has, one that no other run has taken.

    Raises:
        OvernightError: The directory does not exist.
    """
    path = os.path.realpath(prefix)
    if os.path.isdir(path):
        return _free_name(path, name_tasks(task_file))
    if prefix.endswith("/"):
        raise _no_directory(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise _no_directory(os.path.dirname(path))
    return RunFiles(path)


def _free_name(directory: str, name: str) -> RunFiles:
    stamp = time.strftime("%y%m%d%H%M%S")
    first = int.from_bytes(os.urandom(2), "big") % NAME_TRIES
    for step in range(NAME_TRIES):
        number = (first + step) % NAME_TRIES
        files = RunFiles(os.path.join(directory, f"{name}_disBatch_{stamp}_{number:03d}"))
        if not os.path.lexists(files.status) and not os.path.lexists(files.lock):
            return files
    raise OvernightError(
        f"a thousand runs of {name} were started in this second", where=directory, transient=True,
        kept="nothing was started", do="choose a prefix with -p",
    )


def _no_directory(path: str) -> OvernightError:
    return OvernightError(f"Directory {path} does not exist.")
