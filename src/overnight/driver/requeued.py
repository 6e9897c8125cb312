"""A batch job that Slurm has started again goes on with the run that it began."""

from __future__ import annotations

import glob
import os

from overnight.driver.describe import ENDING, read_description
from overnight.driver.prefix import name_tasks
from overnight.errors import ResumeRefused
from overnight.formats.slurm import batch_job
from overnight.model.run import RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from overnight.model.options import RunOptions


def run_of_this_job(options: RunOptions, environment: Mapping[str, str]) -> RunFiles | None:
    """The run that an earlier start of this very job has left, of the same list; else None.

    Args:
        options: Of the run that would begin: their prefix says where to look.
        environment: Of the job.
    """
    job, _, restarts = batch_job(environment).partition("/")
    if not job or restarts in ("", "0") or options.resume_from or options.task_file == "-":
        return None
    found = []
    for path in _descriptions(options):
        files = RunFiles(path[: -len(ENDING)])
        started_at = _started_at(files, options, job)
        if started_at is not None and os.path.exists(files.status):
            found.append((started_at, files.prefix))
    return RunFiles(max(found)[1]) if found else None


def _descriptions(options: RunOptions) -> list[str]:
    path = os.path.realpath(options.prefix)
    if not os.path.isdir(path):
        return [path + ENDING]
    name = glob.escape(os.path.join(path, name_tasks(options.task_file or "")))
    return glob.glob(f"{name}_disBatch_*{ENDING}")


def _started_at(files: RunFiles, options: RunOptions, job: str) -> float | None:
    """When this job began the run, or None where it did not begin it."""
    try:
        description = read_description(files)
    except ResumeRefused:
        return None
    if description is None or description.job != job:
        return None
    is_same_list = description.options.task_file == os.path.realpath(options.task_file or "")
    return description.started_at if is_same_list else None
