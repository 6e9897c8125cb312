"""The commands that go on with a run that has ended, and which of them a person should take."""

from __future__ import annotations

from overnight.core import verdict as v
from overnight.core.summary.rerun import feed_command, rerun_command, shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.run import RunFiles


class GoOn:
    """What goes on with a run.

    Attributes:
        files: Of the run.
        rest: The command that runs what is left.
        retry: The one that runs the failed tasks too.
        report: The one that tells more of it.
    """

    __slots__ = ("files", "report", "rest", "retry")

    def __init__(self, files: RunFiles, *, is_fed: bool) -> None:
        """Name the commands.

        Args:
            files: Of the run.
            is_fed: Its list came from standard input, which nobody can read again.
        """
        self.files = files
        self.report = f"overnight report {shell_word(files.status)}"
        if is_fed:
            self.rest = feed_command(files)
            self.retry = feed_command(files, retries=True)
        else:
            self.rest = f"overnight resume {shell_word(files.prefix)}"
            self.retry = rerun_command(files.status)


def advice(ending: str | None, has_failures: bool, has_tasks_left: bool, go_on: GoOn) -> str:
    """How to go on, in as few commands as there are different wishes; empty where all is done.

    Args:
        ending: How the run ended, a constant of ``core.verdict``; None where it was killed.
        has_failures: Tasks failed for good. Those that were cut off are left, not failed.
        has_tasks_left: Something of the list has not been run.
        go_on: The commands.
    """
    if ending == v.NO_RECORD:
        return ("Reports that could not be recorded are kept. Once there is room, collect them"
                f" and go on with:\n  {go_on.rest}")
    if ending == v.CHECK_FAILED:
        # Without the failed ones the CHECK would end the next run as it ended this one.
        return f"Run the failed ones again, and then what is left:\n  {go_on.retry}"
    if not has_tasks_left:
        return f"Run the failed ones again\n  {go_on.retry}" if has_failures else ""
    text = f"Tasks are left. Go on with:\n  {go_on.rest}"
    return f"{text}\nor, to run the failed ones again too:\n  {go_on.retry}" \
        if has_failures else text
