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


def check_names(
    files: RunFiles, task_file: str, resume_from: Sequence[str], logfile: str | None
) -> None:
    """See that the run writes into none of the files that it reads.

    Args:
        files: Of the run.
        task_file: Its list.
        resume_from: The status files it resumes from; one of them may be its own.
        logfile: As the user named it, to be appended to; None where it has its usual name.

    Raises:
        UsageError: A file would be both; nothing was written.
    """
    own = [files.tasks, files.utility_script, files.lock, files.engine_file, files.engines,
           files.description]
    if logfile is None:
        own.append(files.driver_log)
    elif other := _same(logfile, [*own, files.status, task_file, *resume_from]):
        raise UsageError(
            f"--logfile {logfile} would be written into {other}, which the run needs",
            kept="nothing was started, the file is untouched", do="name another file",
        )
    for read in (task_file, *resume_from):
        if other := _same(read, own if read in resume_from else [*own, files.status]):
            raise UsageError(
                f"the run would write its own {other.rpartition('_')[2]} into {read}, which it"
                " reads", kept="nothing was started, the file is untouched",
                do="choose another prefix with -p",
            )


def _same(path: str, others: Sequence[str]) -> str:
    """Which of these names is that file, or will be; empty if none."""
    real = os.path.realpath(path)
    for other in others:
        if real == os.path.realpath(other) or _is_same_file(real, other):
            return other
    return ""


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
