"""What happened in a run, read back from its records.

A run may have several status files, one for each time it was resumed. They are read in
the order given; a later row of a task replaces an earlier one, except that a success
outranks any failure, as it does when a run is resumed. So a task counts once.
"""

from __future__ import annotations

import os
from itertools import pairwise

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded
from overnight.core.policy import retry_delay_s
from overnight.core.summary import Summary
from overnight.errors import OvernightError
from overnight.formats.statusfile import HEADER, parse_row
from overnight.model.outcome import Cancelled, Exited, Lost, NotStarted, Signalled
from overnight.model.report import NO_LEAK, SNIPPET_END, Leak, Report
from overnight.model.run import RunFiles, prefix_of_status
from overnight.model.task import Barrier, PerEngine, Task
from overnight.watch.details import Details
from overnight.watch.pauses import gaps_between, long_pauses, parted, whole_of, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overnight.formats.statusfile import OldRow
    from overnight.model.outcome import Outcome
    from overnight.watch.details import Detail
    from overnight.watch.pauses import Span

_OF_TASKS = ("N", "Z")

RETRY_SLACK_S = 5.0
"""A further attempt may start so much later than its wait says."""


class History:
    """What the records of a run tell, in their order.

    Attributes:
        attempts: Attempts at tasks: those that decided a fate, and earlier ones where the
            details tell of them. A slot of -1 is not known.
        commands: Per-engine commands.
        barriers: Barriers that were met, and CHECKs that ended the run.
        fates: The attempt that counts, by task id.
        skipped: Exit codes of tasks that only rows of an earlier run tell of, by task id.
        notes: What could not be read, for a person.
    """

    def __init__(self) -> None:
        self.attempts: list[TaskEnded] = []
        self.commands: list[CommandEnded] = []
        self.barriers: list[BarrierMet] = []
        self.fates: dict[int, TaskEnded] = {}
        self.skipped: dict[int, int] = {}
        self.notes: list[str] = []
        self._nodes_with_tasks: set[str] = set()

    def add(self, row: OldRow, kind: str, detail: Detail | None) -> None:
        """Take in what a row of this kind tells."""
        if kind in _OF_TASKS:
            self.add_attempt(_task_ended(row, kind, detail))
        elif kind == "S":
            if row.id not in self.fates:
                self.skipped[row.id] = row.code
        elif kind == "P":
            self.commands.append(_command_ended(row, row.node not in self._nodes_with_tasks))
        else:
            self.barriers.append(_barrier_met(row, kind))

    def add_attempt(self, ended: TaskEnded) -> None:
        """Take in an attempt, and what it means for its task."""
        self.attempts.append(ended)
        self._nodes_with_tasks.add(ended.node)
        if not ended.settles:
            return
        task_id = ended.task.id
        known = self.fates.get(task_id)
        if known is None or known.report.outcome.code != 0 or ended.report.outcome.code == 0:
            self.fates[task_id] = ended
            self.skipped.pop(task_id, None)

    def summary(self) -> Summary:
        """The run as one summary."""
        summary = Summary()
        for ended in self.fates.values():
            summary.add(ended.task, ended.report, ended.node)
        for ended in self.attempts:
            if self.fates.get(ended.task.id) is not ended:
                summary.add_time(ended.report)
        for command in self.commands:
            summary.add_per_engine(command.command, command.report, command.node)
        for code in self.skipped.values():
            summary.skip(code)
        spans = self.spans()
        if spans:
            pauses = long_pauses(self.gaps()[0], whole_of(spans))
            summary.pause_s = within(pauses, summary.first_started_at, summary.last_finished_at)
        return summary

    def gaps(self) -> tuple[list[Span], list[Span]]:
        """When nothing ran: without a reason, and because a failed task was to wait."""
        return parted(gaps_between(self.spans()), self._retry_waits())

    def _retry_waits(self) -> list[Span]:
        """From the end of each attempt to the next of its task, where that was in the same run."""
        retried = {ended.task.id for ended in self.attempts if not ended.settles}
        if not retried:
            return []
        by_task: dict[int, list[TaskEnded]] = {}
        for ended in self.attempts:
            if ended.task.id in retried:
                by_task.setdefault(ended.task.id, []).append(ended)
        return [wait for tries in by_task.values() for wait in _waits_between(tries)]

    def spans(self) -> list[Span]:
        """When something ran, in no particular order."""
        ran: list[TaskEnded | CommandEnded] = [*self.attempts, *self.commands]
        return [
            (ended.report.started_at, ended.report.started_at + max(0.0, ended.report.elapsed_s))
            for ended in ran
        ]


def read_history(status_files: Sequence[str]) -> History:
    """Read the status files of a run, and the details beside them.

    Raises:
        OvernightError: A file cannot be read, or holds no row.
    """
    history = History()
    for path in status_files:
        _read_part(history, path)
    return history


def _read_part(history: History, path: str) -> None:
    details = _read_details(history, path)
    row_count, odd_count, bare_count = _read_rows(history, path, details)
    if odd_count and not row_count:
        raise OvernightError(
            "it holds no row of a status file", where=path,
            do="name the file that a run wrote, <prefix>_status.txt",
        )
    if details:
        for detail in details.rest():
            history.add_attempt(_attempt_without_row(detail))
        _note(history, bare_count, f"tasks of {path} have no details: no slot, memory, CPU time")
    _note(history, odd_count, f"lines of {path} are not rows (torn, or foreign): passed over")


def _read_rows(history: History, path: str, details: Details | None) -> tuple[int, int, int]:
    """Take in the rows; how many there were, lines that are none, rows without details."""
    row_count = odd_count = bare_count = 0
    for line in _read_file(path).split(b"\n"):
        row = parse_row(line)
        if row is None:
            odd_count += bool(line) and not HEADER.startswith(line)
            continue
        row_count += 1
        kind, detail = row.kind, None
        if details and kind in _OF_TASKS:
            detail = details.take(row.id, row.started_at)
            bare_count += detail is None
        history.add(row, kind, detail)
    return row_count, odd_count, bare_count


def _read_details(history: History, status_file: str) -> Details | None:
    prefix = prefix_of_status(status_file)
    if prefix is None:
        return None
    path = RunFiles(prefix).tasks
    if not os.path.exists(path):
        history.notes.append(f"{path} is not there: no slots, memory, CPU time and retries")
        return None
    try:
        with open(path, "rb") as file:
            details = Details(file)
    except OSError as error:
        history.notes.append(f"{path} cannot be read ({error.strerror}): less detail")
        return None
    _note(history, details.unread_count, f"lines of {path} cannot be read: less detail")
    return details


def _waits_between(tries: list[TaskEnded]) -> Iterator[Span]:
    """The waits between attempts at one task; a longer one lies between a run and its resume."""
    reports = sorted((ended.report for ended in tries), key=lambda report: report.started_at)
    for report, following in pairwise(reports):
        ended_at = report.started_at + max(0.0, report.elapsed_s)
        longest_s = retry_delay_s(report.attempt) + RETRY_SLACK_S
        if following.attempt == report.attempt + 1 and following.started_at - ended_at <= longest_s:
            yield ended_at, following.started_at


def _note(history: History, count: int, words: str) -> None:
    if count:
        history.notes.append(f"{count:,} {words}")


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OvernightError(
            f"it cannot be read: {error.strerror}", where=path,
            do="name status files: overnight report <prefix>_status.txt",
        ) from error


def _barrier_met(row: OldRow, kind: str) -> BarrierMet:
    barrier = Barrier(row.id, row.line, row.command_field, None, kind == "C")
    return BarrierMet(barrier, row.started_at, row.finished_at)


def _command_ended(row: OldRow, at_start: bool) -> CommandEnded:
    # The row does not say whether it was START or STOP; rows of START commands come
    # before those of their engine's tasks.
    command = PerEngine(at_start, row.id, row.line, row.command_field)
    return CommandEnded(command, _report(row, None), row.node, -1)


def _task_ended(row: OldRow, kind: str, detail: Detail | None) -> TaskEnded:
    task = Task(row.id, row.line, row.repeat, row.command_field)
    rank = detail.rank if detail else -1
    return TaskEnded(task, _report(row, detail), row.node, rank, True, kind == "Z")


def _attempt_without_row(detail: Detail) -> TaskEnded:
    report = Report(
        detail.task_id, detail.attempt, detail.outcome, detail.pid, detail.started_at,
        detail.elapsed_s, NO_LEAK, NO_LEAK, detail.cpu_s, detail.max_rss_kib, detail.slot,
    )
    task = Task(detail.task_id, detail.line, detail.repeat, b"")
    return TaskEnded(task, report, detail.node, detail.rank, False, False)


def _report(row: OldRow, detail: Detail | None) -> Report:
    outcome = detail.outcome if detail else outcome_of(row)
    out = err = NO_LEAK
    if outcome.code != 0:  # a success leaves no words that anybody would ask for
        out = read_leak(row.out_count, row.out_snippet)
        err = read_leak(row.err_count, row.err_snippet)
    if detail is None:
        return Report(row.id, 1, outcome, row.pid, row.started_at, row.elapsed_s, out, err)
    return Report(
        detail.task_id, detail.attempt, outcome, detail.pid, detail.started_at,
        detail.elapsed_s, out, err, detail.cpu_s, detail.max_rss_kib, detail.slot, False,
        detail.left_running,
    )


_DONE = Exited(0)


def outcome_of(row: OldRow) -> Outcome:
    """How a task ended, as far as its row alone tells."""
    code = row.code
    if code == 0:
        return _DONE
    if row.pid == -1:
        return Lost("its engine was lost") if code == Lost.code else NotStarted(code, _errno(code))
    if row.kind == "Z":
        return Cancelled(code, "by the end of the run, or given up before it ended")
    return Exited(code) if code > 0 else Signalled(code)


def _errno(code: int) -> str:
    return os.strerror(code) if 0 < code < 134 else f"code {code}"


def read_leak(count: int, snippet: str) -> Leak:
    r"""The leak a snippet was made of, as far as it shows it.

    >>> read_leak(5, "'oops\\n'").head
    b'oops\n'
    """
    if not count:
        return NO_LEAK
    text = _unquoted(snippet).encode("utf-8", "surrogatepass")
    if count <= SNIPPET_END:
        return Leak(count, text)
    # The head may be longer than 40 bytes here: bytes that were no text take three.
    dots = text.find(b"...", SNIPPET_END)
    if dots < 0:
        return Leak(count, text)
    return Leak(count, text[:dots], text[dots + 3 :])


def _unquoted(snippet: str) -> str:
    """The text whose ``repr`` a snippet is; the snippet itself where it is none."""
    inner = snippet[1:-1]
    if "\\" not in inner:
        return inner
    try:
        return inner.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return snippet
