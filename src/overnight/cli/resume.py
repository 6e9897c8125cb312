"""``overnight resume``: run what is left of an earlier run; it needs no further options."""

from __future__ import annotations

import glob
import os

from overnight.cli.arguments import positive
from overnight.cli.parser import Parser
from overnight.cli.run import run
from overnight.core.summary.rerun import feed_command, shell_word
from overnight.driver.describe import ENDING, read_description
from overnight.errors import ResumeRefused
from overnight.model.run import RunFiles, prefix_of_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Find the run, and go on with it in its own files; returns the exit status."""
    parser = Parser(
        prog="overnight resume", description="Run what is left of an earlier run.",
    )
    parser.add_argument("run", nargs="?", metavar="RUN",
                        help="prefix of the run, its status file, or a folder"
                             " (default: the last run in this folder)")
    parser.add_argument("-R", "--retry", action="store_true", help="the failed ones too")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--force-resume", action="store_true", help="go by the task id alone")
    way.add_argument("--by-text", action="store_true", help="go by the text alone")
    parser.add_argument("-j", "--jobs", type=positive, metavar="N", help="slots on this machine")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    parsed = parser.parse_args(arguments)
    files = find_run(parsed.run)
    description = read_description(files)
    if description is None:
        raise ResumeRefused(
            "how this run was started is not known", where=files.description,
            kept="nothing was started",
            do=f"name the list: overnight run {_again(files)} LIST",
        )
    options = description.options
    if options.task_file == "-":
        raise ResumeRefused(
            "its tasks came from standard input or a pipe, which cannot be read again",
            where=files.prefix, kept="nothing was started",
            do=f"feed them again: {feed_command(files, retries=parsed.retry)}",
        )
    options.prefix = files.prefix
    # Files of earlier runs count on: their tasks need not all have rows here yet.
    others = (path for path in options.resume_from if path != files.status)
    options.resume_from = (files.status, *others)
    options.retry = parsed.retry
    if parsed.force_resume or parsed.by_text:
        options.force_resume, options.by_text = parsed.force_resume, parsed.by_text
    if parsed.jobs is not None:
        options.jobs, options.ssh_node, options.startup_only = parsed.jobs, (), False
    options.quiet = options.quiet or parsed.quiet
    options.is_compatible = False
    _enter(description.cwd, files)
    return run(options)


def _again(files: RunFiles) -> str:
    return f"-r {shell_word(files.status)} -p {shell_word(files.prefix)}"


def _enter(folder: str, files: RunFiles) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise ResumeRefused(
            f"its tasks ran in {folder}, which cannot be entered: {error.strerror}",
            where=files.prefix, kept="nothing was started",
            do="make that folder again, or name the list where you are: overnight run"
               f" {_again(files)} LIST",
        ) from error


def find_run(name: str | None) -> RunFiles:
    """The run that is meant.

    Args:
        name: Its prefix, its status file, a folder, or None for the present folder.

    Raises:
        ResumeRefused: There is none.
    """
    path = os.path.abspath(name or ".")
    if os.path.isdir(path):
        found = glob.glob(os.path.join(glob.escape(path), f"*{ENDING}"))
        if not found:
            raise ResumeRefused("no run was started in this folder", where=path)
        latest = max(found, key=lambda one: os.stat(one).st_mtime_ns)
        return RunFiles(latest.removesuffix(ENDING))
    files = RunFiles(prefix_of_status(path) or path)
    if not os.path.exists(files.status):
        raise ResumeRefused("there is no run of this name", where=files.status,
                            do="name a prefix, a status file or a folder")
    return files
