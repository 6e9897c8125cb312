"""The command that a person copies to go on."""

from __future__ import annotations

from overnight.core.summary.words import visible
from overnight.model.run import RunFiles, prefix_of_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def rerun_command(status_file: str, list_name: str = "") -> str:
    """The command that runs just the failed tasks of a run of ours again.

    Args:
        status_file: Path of the run's status file; ``<prefix>_status.txt`` tells the prefix.
        list_name: The list of tasks; needed only where no prefix can be told.

    >>> rerun_command("night run_status.txt")
    "overnight resume -R 'night run'"
    """
    prefix = prefix_of_status(status_file)
    if prefix and not prefix.endswith("/"):
        return f"overnight resume -R {shell_word(prefix)}"
    return rerun_from_list([status_file], list_name)


def feed_command(files: RunFiles, *, retries: bool = False) -> str:
    """The command that goes on with a run whose list came from standard input.

    Args:
        files: Of the run.
        retries: The failed ones are to run again too.

    >>> feed_command(RunFiles("/data/live"))
    '... | overnight run -r /data/live_status.txt -p /data/live -'
    """
    retry = "-R " if retries else ""
    status, prefix = shell_word(files.status), shell_word(files.prefix)
    return f"... | overnight run {retry}-r {status} -p {prefix} -"


def rerun_from_list(status_files: Sequence[str], list_name: str = "") -> str:
    """The same for a run that left nothing but status files, as disBatch does.

    >>> rerun_from_list(["Fits_disBatch_231114221320_007_status.txt"])
    'overnight run -R -r Fits_disBatch_231114221320_007_status.txt Fits'
    """
    earlier = " ".join(f"-r {shell_word(path)}" for path in status_files)
    name = list_name or list_of_disbatch(status_files[-1]) or "TASKFILE"
    return f"overnight run -R {earlier} {shell_word(name)}"


def list_of_disbatch(status_file: str) -> str:
    """The list that a status file under disBatch's default name is of, else nothing.

    That name is the list's with a time stamp and three digits; the list itself need not lie
    in the same folder, so only its name is told.
    """
    prefix = prefix_of_status(status_file) or ""
    name, _, stamp = prefix.rpartition("/")[2].rpartition("_disBatch_")
    day, _, number = stamp.partition("_")
    is_default = day.isdecimal() and len(day) == 12 and number.isdecimal() and len(number) == 3
    return name if is_default else ""


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+@%=-")


def shell_word(path: str) -> str:
    """The path as one word of bash that is not an option."""
    if path.startswith("-"):
        path = "./" + path
    if path and _PLAIN.issuperset(path):
        return path
    if path.isprintable():
        return "'" + path.replace("'", "'\\''") + "'"
    quoted = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "$'" + visible(quoted.replace("\\", "\\\\").replace("'", "\\'")) + "'"
