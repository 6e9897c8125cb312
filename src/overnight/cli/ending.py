"""What is said when a run has ended."""

from __future__ import annotations

import time

from overnight.cli.go_on import GoOn, advice
from overnight.core import verdict as v
from overnight.core.summary import ends_with_counts, summary_facts, summary_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from overnight.core.summary import Summary
    from overnight.core.verdict import Verdict

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
    summary: Summary | None, verdict: Verdict, go_on: GoOn, *, colour: bool,
    warnings: Sequence[str] = (),
) -> str:
    """The summary, how the run ended, and the one command that goes on.

    Args:
        summary: Of what was run; None where nobody asked for one.
        verdict: How the run ended.
        go_on: The commands that go on with it.
        colour: Whether the terminal may be asked for bold and red.
        warnings: Lines that say what the run has warned of.
    """
    parts = []
    if summary is not None:
        text = summary_text(summary, "", _clock, colour=colour, report=go_on.report)
        parts.append(text.rstrip("\n"))
        if warnings:
            parts += ["", *warnings]
    if verdict.ending != v.COMPLETE:
        # What was found in a list has been said already, at its length.
        reason = f": {verdict.reason}" if verdict.reason and verdict.error is None else ""
        parts.append(f"{WORDS[verdict.ending]}{reason}.")
    if text := advice(verdict.ending, _has_failed_tasks(summary, verdict),
                      verdict.has_tasks_left, go_on):
        if summary is not None and verdict.ending == v.COMPLETE:
            parts.append("")
        parts.append(text)
    said = "\n".join(parts)
    return said if summary is None else ends_with_counts(said, summary)


def tasks_without_row(total: int | None, summary: Summary, verdict: Verdict) -> int | None:
    """Tasks of the list that were not run, now or before; None where its length is not known."""
    if not verdict.has_tasks_left:
        return 0
    return None if total is None else max(0, total - summary.settled)


def _has_failed_tasks(summary: Summary | None, verdict: Verdict) -> bool:
    """Whether ``-R`` would find a task; a per-engine command that failed is none."""
    if summary is None:
        return verdict.has_failures
    return bool(summary.failed or summary.skipped_failed)


def all_done_text(count: int, failed: int, go_on: GoOn) -> str:
    """What a resume says that found nothing to do.

    Args:
        count: Tasks that had been run before.
        failed: Of these, those that had failed.
        go_on: The commands that go on with the run.
    """
    if not failed:
        return f"Nothing is left to run: all {_tasks(count)} had been done before."
    return (
        f"Nothing is left to run: of {_tasks(count)}, {count - failed:,} done before,"
        f" {failed:,} failed before. Run the failed ones again:\n  {go_on.retry}"
    )


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"


def facts(summary: Summary, verdict: Verdict, go_on: GoOn) -> dict[str, Any]:
    """The same for a program: the last object of ``--json``."""
    goes_on = verdict.has_tasks_left and verdict.ending != v.CHECK_FAILED  # see ``advice``
    return {
        **summary_facts(summary), "ending": verdict.ending, "reason": verdict.reason,
        "tasks_left": verdict.has_tasks_left, "status_file": go_on.files.status,
        "resume": go_on.rest if goes_on else None,
        "rerun": go_on.retry if verdict.has_failures else None,
    }


def _clock(at: float) -> str:
    return time.strftime("%a %H:%M:%S", time.localtime(at))
