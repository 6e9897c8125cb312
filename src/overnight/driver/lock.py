"""Who owns a prefix: a file made by link(2), which is atomic on network file systems too.

The file names host, boot, process and its start time. Locks of the file system are
not used: on network file systems they lie. A lock whose owner is provably gone (same
host, and the boot or the process is another one; or Slurm says that the job it was part of
has ended) is taken over.

Taking over is done under a second lock of the same kind, ``<lock>.takeover``. While it is
held nobody else replaces the dead owner's file, and that file never vanishes in between:
one rename puts the new owner in its place. So of many that find a dead owner one wins.
"""

from __future__ import annotations

import os

from overnight.core.summary.rerun import shell_word
from overnight.errors import PrefixTaken
from overnight.formats.slurm import batch_job
from overnight.guard.processes import boot_id, place, process_identity, read_process

TAKE_TRIES = 5
_ENDING = "_lock"
_TAKEOVER = ".takeover"
UNKNOWN = "?"
"""In the place of what a lock file does not tell."""


class PrefixLock:
    """Ownership of a run's files by this process, from ``take`` to ``release``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._text = _own_line()

    def take(self) -> None:
        """Become the owner.

        Raises:
            PrefixTaken: Another driver owns the prefix, or may own it.
            OSError: The lock file cannot be made.
        """
        draft = f"{self.path}.{os.urandom(6).hex()}"
        try:
            _write_new(draft, self._text)
            for _ in range(TAKE_TRIES):
                if _is_linked(draft, self.path) or self._has_taken_over(draft):
                    return
            raise PrefixTaken(
                "other drivers take this prefix and leave it again, all the time",
                where=self.path, kept="nothing was started", do="try again", transient=True,
            )
        finally:
            _remove(draft)

    def _has_taken_over(self, draft: str) -> bool:
        """Put the draft in the place of a dead owner's lock, if there still is one."""
        if not _has_dead_owner(self.path):
            return False
        takeover = PrefixLock(self.path + _TAKEOVER)
        takeover.take()
        try:
            # Asked again: another driver may have been quicker.
            if not _has_dead_owner(self.path):
                return False
            os.rename(draft, self.path)
            return True
        finally:
            takeover.release()

    def release(self) -> None:
        """Stop being the owner, if this process still is."""
        owner = read_owner(self.path)
        if owner is not None and _line(owner) == self._text:
            _remove(self.path)


def read_owner(path: str) -> dict[str, str] | None:
    """Who owns the prefix with this lock file: host (its ``place``), boot, pid, start, job.

    None if nobody does. ``job`` is Slurm's, as ``formats.slurm.batch_job`` has it, or empty.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            fields = file.read(1000).split()
    except FileNotFoundError:
        return None
    except OSError:
        fields = []
    names = ("host", "boot", "pid", "start", "job")
    if len(fields) == len(names) - 1:
        fields.append("")
    if len(fields) != len(names) or not fields[2].isdigit():
        return {"host": UNKNOWN, "boot": UNKNOWN, "pid": "0", "start": UNKNOWN, "job": ""}
    return dict(zip(names, fields, strict=True))


def is_gone(owner: dict[str, str]) -> bool:
    """Whether it is proved that this owner does not run any more."""
    if owner["host"] != place():
        return bool(owner["job"]) and _job_is_over(owner["job"])
    if owner["boot"] != boot_id():
        return True
    process = read_process(int(owner["pid"]))
    # One that is dead and was not reaped holds nothing any more.
    return process is None or process.is_dead or str(process.start) != owner["start"]


def _job_is_over(job: str) -> bool:
    """Whether what ran in a batch job has ended with it; Slurm starts one again only then."""
    own = batch_job(os.environ)
    if own.split("/")[0] == job.split("/")[0]:
        return own != job
    from overnight.guard.slurmproof import job_has_ended  # asks Slurm: only where it counts

    return job_has_ended(job.split("/")[0])


def refuse_owned(path: str) -> None:
    """Make sure that nobody who lives holds this lock, at this moment.

    Raises:
        PrefixTaken: Somebody does, or may do.
    """
    _has_dead_owner(path)


def _has_dead_owner(path: str) -> bool:
    """Whether a lock lies there whose owner is gone; a lock with another one is respected."""
    owner = read_owner(path)
    if owner is None or is_gone(owner):
        return owner is not None
    host = owner["host"].split("/")[0]
    what = f"another driver owns this prefix: process {owner['pid']} on {host}"
    if owner["host"] == UNKNOWN:
        what = "another driver may own this prefix: its lock file does not tell which"
    do = ("wait for it, choose another prefix with -p, or, if you know that it is gone,"
          " remove the lock file")
    if owner["host"] == place():  # it lives: is_gone() would know
        do = f"watch it:  overnight attach {shell_word(_prefix(path))}" \
             "  or choose another prefix with -p"
    raise PrefixTaken(what, where=path, kept="nothing was started, its files are untouched", do=do)


def _prefix(path: str) -> str:
    return path.removesuffix(_TAKEOVER).removesuffix(_ENDING)


def _own_line() -> str:
    pid = os.getpid()
    start, boot = process_identity(pid)
    return f"{place()} {boot} {pid} {start} {batch_job(os.environ)}".rstrip() + "\n"


def _line(owner: dict[str, str]) -> str:
    return " ".join(owner.values()).rstrip() + "\n"


def _write_new(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _is_linked(draft: str, path: str) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        # A network file system may have made the link and lost its answer: the request
        # that was sent again then finds it there.
        return os.stat(draft).st_nlink > 1
    return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
