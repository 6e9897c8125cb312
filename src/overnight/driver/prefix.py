"""Where the files of a new run go."""

from __future__ import annotations

import os
import time

from overnight.errors import OvernightError, UsageError
from overnight.model.run import RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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


def check_logfile(logfile: str | None, files: RunFiles, read: Sequence[str]) -> None:
    """See that ``--logfile`` names no file of the run, and none that it reads: it is appended to.

    Args:
        logfile: As the user named it; None where the log has its usual name.
        files: Of the run.
        read: Its list and the status files it resumes from.

    Raises:
        UsageError: It does; nothing was written.
    """
    if logfile is None:
        return
    own = (files.status, files.tasks, files.utility_script, files.lock, files.engine_file,
           files.engines, files.description)
    path = os.path.realpath(logfile)
    for other in map(os.path.realpath, (*own, *read)):
        if path == other or _is_same_file(path, other):
            raise UsageError(
                f"--logfile {logfile} would be written into {other}, which the run needs",
                kept="nothing was started, the file is untouched", do="name another file",
            )


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False  # one of them is not there yet


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
