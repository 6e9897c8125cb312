"""``overnight report RUN...``: how a run went, in words and as a picture."""

from __future__ import annotations

import argparse
import os
import sys
import time

from overnight.cli.go_on import GoOn, advice
from overnight.cli.parser import Parser
from overnight.core.summary import (
    ends_with_counts,
    rerun_command,
    rerun_from_list,
    summary_facts,
    summary_text,
)
from overnight.core.summary.rerun import feed_command
from overnight.core.summary.words import visible
from overnight.errors import ResumeRefused, UsageError
from overnight.model.run import RunFiles, prefix_of_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.summary import Summary
    from overnight.driver.describe import Description
    from overnight.watch.history import History
    from overnight.watch.scene import Scene

_DESCRIPTION = """\
Summarise a run from its status file, of disBatch or of overnight: how many, how long, what
was slowest and largest, what failed and why, and the command that runs that again. What
lies beside it in <prefix>_tasks.jsonl is used too. Several files are one run and its
resumes, in the order given.
"""


GOES_ON = "the run goes on: this is how far it is"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("status_files", nargs="+", metavar="RUN",
                        help="status file or prefix of a run, or a folder for the last run in"
                             " it; then those of its resumes")
    parser.add_argument("--svg", metavar="FILE", help="draw the run: an SVG picture")
    parser.add_argument("--png", metavar="FILE", help="the same as PNG (needs Pillow)")
    parser.add_argument("--html", metavar="FILE",
                        help="picture and summary in one page that loads nothing")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def main(arguments: Sequence[str]) -> int:
    """Run the verb; its exit status."""
    parser = Parser(prog="overnight report", description=_DESCRIPTION)
    add_arguments(parser)
    return report(parser.parse_args(arguments))


def report(options: argparse.Namespace) -> int:
    """Print the summary, write the pictures asked for; 0.

    Raises:
        OvernightError: A file cannot be read or written.
    """
    # Nothing here is garbage before the end, and looking for it takes a third of the time.
    import gc

    from overnight.watch.history import read_history

    gc.disable()
    options.status_files = list(map(_status_file, options.status_files))
    _check_pictures(options)
    history = read_history(options.status_files)
    summary = history.summary()
    description = _description(options.status_files)
    summary.without_row = _without_row(summary, description)
    is_live = description is not None and _is_driven(options.status_files[-1])
    rerun = "" if is_live else _rerun(options.status_files, description)
    if is_live:
        history.notes.append(GOES_ON)
    if options.svg or options.png or options.html:
        _draw(options, history, summary, rerun)
    if options.json:
        _print_facts(options.status_files, history, summary, rerun, is_live)
    elif is_live:
        _print_text(history, summary, "", "")
    else:
        _print_text(history, summary, *_how_to_go_on(options.status_files, summary, rerun,
                                                     description))
    return 0


def _status_file(name: str) -> str:
    """The status file that is meant by it, by its prefix, or by the folder of the last run.

    Raises:
        ResumeRefused: It is a folder in which no run was started.
    """
    from overnight.cli.resume import find_run

    if os.path.isdir(name):
        return find_run(name).status
    by_prefix = RunFiles(name).status
    is_prefix = prefix_of_status(name) is None and os.path.exists(by_prefix)
    return by_prefix if is_prefix else name


def _is_driven(status_file: str) -> bool:
    """Whether a driver owns this run, as far as this host can tell."""
    from overnight.driver.lock import is_gone, read_owner

    prefix = prefix_of_status(status_file)
    owner = read_owner(RunFiles(prefix).lock) if prefix else None
    return owner is not None and not is_gone(owner)


def _how_to_go_on(
    status_files: Sequence[str], summary: Summary, rerun: str, description: Description | None
) -> tuple[str, str]:
    """The command below the failures, and what stands at the end; one of them at most.

    Of a run that left nothing but rows nobody knows whether tasks are left.
    """
    prefix = prefix_of_status(status_files[-1])
    if prefix is None or description is None:
        return rerun, ""
    go_on = GoOn(RunFiles(prefix), is_fed=description.options.task_file == "-")
    has_failures = bool(summary.failed or summary.skipped_failed)
    has_tasks_left = bool(summary.left or summary.cut_off) or description.has_tasks_left
    text = advice(description.ending, has_failures, has_tasks_left, go_on)
    return "", f"\n{text}" if text else ""


def _description(status_files: Sequence[str]) -> Description | None:
    """What the last of the runs says of itself, if it is one of ours and can be read."""
    from overnight.driver.describe import read_description

    prefix = prefix_of_status(status_files[-1])
    try:
        return read_description(RunFiles(prefix)) if prefix else None
    except ResumeRefused:
        return None


def _without_row(summary: Summary, description: Description | None) -> int | None:
    """Tasks of the list that no row tells of; None where its length is not known."""
    if description is None or description.total is None:
        return None
    return max(0, description.total - summary.settled)


def _rerun(status_files: Sequence[str], description: Description | None) -> str:
    """The command that goes on: ``resume`` needs what only a run of ours leaves."""
    prefix = prefix_of_status(status_files[-1])
    if prefix and description is not None and description.options.task_file == "-":
        return feed_command(RunFiles(prefix), retries=True)
    if prefix and any(map(os.path.exists, (RunFiles(prefix).description, RunFiles(prefix).tasks))):
        return rerun_command(status_files[-1])
    return rerun_from_list(status_files)


def _draw(
    options: argparse.Namespace, history: History, summary: Summary, rerun: str
) -> None:
    from overnight.watch.picture import draw
    from overnight.watch.picture_file import HTML, SVG, write_picture

    scene = draw(history, summary, _title(options.status_files))
    if options.svg:
        from overnight.watch.svg import svg_text

        write_picture(options.svg, SVG, _encoded(svg_text(scene)))
    if options.html:
        write_picture(options.html, HTML, _encoded(_page(scene, history, summary, rerun)))
    if options.png:
        from overnight.watch.png import write_png

        write_png(scene, options.png)


def _page(scene: Scene, history: History, summary: Summary, rerun: str) -> str:
    from overnight.watch.page import page_text

    return page_text(scene, summary, rerun, history.notes, clock)


def _check_pictures(options: argparse.Namespace) -> None:
    """Make sure, before anything is read, that the pictures asked for can be written."""
    wanted = [path for path in (options.svg, options.html, options.png) if path]
    if not wanted:
        return
    from overnight.watch.picture_file import HTML, PNG, SVG, check_picture_file

    if len(set(map(os.path.realpath, wanted))) < len(wanted):
        raise UsageError("two pictures of different kinds would be one file", where=wanted[0],
                         kept="no picture was written", do="give each a name of its own")
    for path, kind in ((options.svg, SVG), (options.html, HTML), (options.png, PNG)):
        if path:
            check_picture_file(path, kind)
    if options.png:
        from overnight.watch.png import check_pillow

        check_pillow(options.png)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")


def _title(status_files: Sequence[str]) -> str:
    """The name of the run, without its folder."""
    path = status_files[0]
    name = os.path.basename(prefix_of_status(path) or path)
    return f"{name} (in {len(status_files)} parts)" if len(status_files) > 1 else name


def _print_facts(
    status_files: Sequence[str], history: History, summary: Summary, rerun: str, is_live: bool
) -> None:
    import json

    facts = {
        "status_files": list(status_files),
        **summary_facts(summary),
        "barriers": len(history.barriers),
        "goes_on": is_live,
        "rerun": rerun if rerun and (summary.failed or summary.cut_off) else None,
        "notes": history.notes,
    }
    print(json.dumps(facts, indent=2))


def _print_text(history: History, summary: Summary, rerun: str, closing: str) -> None:
    from textwrap import fill

    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    text = summary_text(summary, rerun, clock, colour=has_colour) + closing
    parts = [text.rstrip("\n")]
    if history.notes:
        parts.append("")
    parts += [
        fill(f"note: {visible(note)}", 80, subsequent_indent="      ") for note in history.notes
    ]
    encoding = sys.stdout.encoding or "utf-8"
    print(ends_with_counts("\n".join(parts), summary).encode(encoding, "replace").decode(encoding))


def clock(at: float) -> str:
    """A moment as a clock here has it, with its day; the same in every language."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
