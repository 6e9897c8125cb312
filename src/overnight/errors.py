"""What can go wrong, in the words a user gets.

An error answers four questions: what happened, where, what was kept, what to do.
The command line prints the four; tests check the fields. A failing task is data
(an ``Outcome``), never one of these.
"""

from __future__ import annotations


class OvernightError(Exception):
    """A fault of the run or of what it was given, told in four answers.

    Attributes:
        what: One sentence: what happened, naming the value found.
        where: File and line, node, task or attempt; empty when ``what`` says it.
        kept: What is on disk, still running, or was not started.
        do: What the user can do now; may hold a command.
        exit_status: The status the command line ends with (docs/reference/exit-statuses.md).
        transient: Whether trying again may help.
    """

    exit_status = 1

    def __init__(
        self, what: str, *, where: str = "", kept: str = "", do: str = "", transient: bool = False
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.kept = kept
        self.do = do
        self.transient = transient

    def __str__(self) -> str:
        """The message as it stands on the screen, one answer a line."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        lines = [head]
        if self.kept:
            lines.append(f"  kept:  {self.kept}")
        if self.do:
            lines.append(f"  do:    {self.do}")
        return "\n".join(lines)


class UsageError(OvernightError):
    """Options that do not parse, or do not go together. Nothing was started."""

    exit_status = 2


class ListRefused(OvernightError):
    """The list of tasks holds lines that would not be read as they look."""


class ResumeRefused(OvernightError):
    """An earlier record cannot be read, or does not fit this list."""


class PrefixTaken(OvernightError):
    """The files this run would write belong to another run."""


class NoResources(OvernightError):
    """No host, slot or engine is left that could run a task."""


class LinkBroken(OvernightError):
    """Bytes arrived that no driver or engine of ours would send."""


class InvariantBroken(OvernightError):
    """Something that cannot happen did: a fault of this program, with its story."""
