"""How a run was started and how it ended: what ``overnight resume`` and ``attach`` need."""

from __future__ import annotations

import os

from overnight.errors import ResumeRefused
from overnight.formats.tasklog import json_value
from overnight.model.options import RunOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from overnight.core.verdict import Verdict
    from overnight.model.run import RunFiles

ENDING = "_run.json"
_TAIL = "}\n"


class Description:
    """What is known of a run besides its rows.

    Attributes:
        options: As the user gave them, the list's path made absolute.
        cwd: Directory the tasks run in.
        generation: Of the last driver that had this prefix, from 1.
        total: Tasks in the list, or None.
        started_at: Of the last driver, Unix seconds.
        ending: How that driver's run ended, a constant of ``core.verdict``; None while it
            goes on, and where its driver was killed.
        reason: More about the ending; may be empty.
        has_tasks_left: Something of the list was neither run then nor before.
        job: Slurm's batch job that the driver was part of, or empty.
    """

    def __init__(
        self, options: RunOptions, cwd: str, generation: int, total: int | None,
        started_at: float, ending: str | None = None, reason: str = "",
        has_tasks_left: bool = False, job: str = "",
    ) -> None:
        self.options = options
        self.cwd = cwd
        self.generation = generation
        self.total = total
        self.started_at = started_at
        self.ending = ending
        self.reason = reason
        self.has_tasks_left = has_tasks_left
        self.job = job

    def write(self, files: RunFiles) -> None:
        """Put it beside the run; it appears whole, in place of an earlier driver's.

        Raises:
            OSError: It cannot be written.
        """
        text = json_value({
            "options": self.options.chosen(), "cwd": self.cwd, "generation": self.generation,
            "total": self.total, "started_at": self.started_at, "job": self.job,
        })[:-1]
        draft = f"{files.description}.{os.getpid()}"
        try:
            with open(draft, "w", encoding="ascii") as file:
                file.write(text + _TAIL)
            os.replace(draft, files.description)
        except OSError:
            _remove(draft)
            raise

    def add_ending(self, files: RunFiles, verdict: Verdict) -> None:
        """Say in the file that was written how the run ended.

        In place, by one write: to put a file in the place of another makes some file systems
        write it out at once, which costs a short run more than its task.

        Raises:
            OSError: It cannot be said.
        """
        ending = json_value({
            "ending": verdict.ending, "reason": verdict.reason,
            "has_tasks_left": verdict.has_tasks_left,
        })
        fd = os.open(files.description, os.O_WRONLY | os.O_CLOEXEC)
        try:
            tail_at = os.fstat(fd).st_size - len(_TAIL)
            os.pwrite(fd, f",\n {ending[1:-1]}{_TAIL}".encode("ascii"), tail_at)
            # The last run of a folder is the one that was started last, whichever ends last.
            os.utime(fd, (self.started_at, self.started_at))
        finally:
            os.close(fd)


def read_description(files: RunFiles) -> Description | None:
    """What was kept of this run, or None if nothing is there.

    Raises:
        ResumeRefused: What is there cannot be understood.
    """
    import json

    try:
        with open(files.description, encoding="utf-8") as file:
            kept: dict[str, Any] = json.load(file)
        options = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in kept["options"].items()
        }
        return Description(
            RunOptions(**options), str(kept["cwd"]), int(kept["generation"]), kept["total"],
            float(kept["started_at"]), kept.get("ending"), str(kept.get("reason", "")),
            bool(kept.get("has_tasks_left")), str(kept.get("job", "")),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResumeRefused(
            f"cannot be read: {error}", where=files.description, kept="nothing was started",
            do="name the list and the options yourself: overnight run -r"
               f" {files.status} -p {files.prefix} LIST",
        ) from error


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
