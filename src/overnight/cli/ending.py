"""What is said when a run has ended."""

from __future__ import annotations

import time

from overnight.core import verdict as v
from overnight.core.summary import rerun_command, summary_facts, summary_text
from overnight.core.summary.rerun import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from overnight.core.summary import Summary
    from overnight.core.verdict import Verdict
    from overnight.model.run import RunFiles

WORDS = {
    v.COMPLETE: "",
    v.CHECK_FAILED: "A BARRIER CHECK found failed tasks: what follows it was not started",
    v.FAIL_FAST: "Quitting early due to task failure with --fail-fast",
    v.MAX_FAILURES: "Quitting early: --max-failures was reached",
    v.STOPPED: "The run was stopped",
    v.REFUSED: "The rest of the list was not run",
    v.NO_RESOURCES: "Nothing is left to run tasks on",
    v.NO_RECORD: "The record could not be written",
}


def closing_text(
    summary: Summary | None, verdict: Verdict, files: RunFiles, *, colour: bool
) -> str:
    """The summary, how the run ended, and the command that goes on.

    Args:
        summary: Of what was run; None where nobody asked for one.
        verdict: How the run ended.
        files: Its files.
        colour: Whether the terminal may be asked for bold and red.
    """
    parts = []
    if summary is not None:
        rerun = rerun_command(files.status)
        parts.append(summary_text(summary, rerun, _clock, colour=colour).rstrip("\n"))
    if verdict.ending != v.COMPLETE:
        # What was found in a list has been said already, at its length.
        reason = f": {verdict.reason}" if verdict.reason and verdict.error is None else ""
        parts.append(f"{WORDS[verdict.ending]}{reason}.")
    if verdict.ending == v.NO_RECORD:
        parts.append("Reports that could not be recorded are kept. Once there is room, collect them"
                     f" and go on with:\n  {resume_command(files)}")
    elif verdict.has_tasks_left:
        parts.append(f"Tasks are left. Go on with:\n  {resume_command(files)}")
    return "\n".join(parts)


def all_done_text(count: int, verdict: Verdict, files: RunFiles) -> str:
    """What a resume says that found nothing to do."""
    if not verdict.has_failures:
        return f"Nothing is left to run: all {_tasks(count)} had been done before."
    return (
        f"Nothing is left to run: all {_tasks(count)} had been run before, and not all of them"
        f" ended well. Run the failed ones again:\n  {rerun_command(files.status)}"
    )


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"


def resume_command(files: RunFiles) -> str:
    """The command that runs what is left of a run."""
    return f"overnight resume {shell_word(files.prefix)}"


def facts(summary: Summary, verdict: Verdict, files: RunFiles) -> dict[str, Any]:
    """The same for a program: the last object of ``--json``."""
    return {
        **summary_facts(summary), "ending": verdict.ending, "reason": verdict.reason,
        "tasks_left": verdict.has_tasks_left, "status_file": files.status,
        "resume": resume_command(files) if verdict.has_tasks_left else None,
        "rerun": rerun_command(files.status) if verdict.has_failures else None,
    }


def _clock(at: float) -> str:
    return time.strftime("%a %H:%M:%S", time.localtime(at))
