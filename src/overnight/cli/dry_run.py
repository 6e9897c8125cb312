"""``overnight run --dry-run``: what would run, and nothing runs."""

from __future__ import annotations

import sys

from overnight.core.summary.rerun import shell_word
from overnight.core.summary.words import command_text
from overnight.formats.environment import attempt_variables
from overnight.model.attempt import Attempt
from overnight.model.task import Barrier, DoneBefore, PerEngine, Task
from overnight.wiring import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.options import RunOptions
    from overnight.model.task import Item

BATCH = 1024
AGAIN_S = 0.5
"""How soon a list is asked again whose last line is being written."""


def show(options: RunOptions) -> int:
    """Print every item of the list, expanded, in the order of its start; returns 0.

    Raises:
        OvernightError: As a run would.
    """
    plan = Plan(options)
    for notice in plan.notices:
        print(notice, file=sys.stderr)
    has_ended = False
    while not has_ended:
        items, has_ended = plan.source.read(BATCH)
        if not items and not has_ended:
            _wait_for(plan.source.fileno())
        for item in items:
            sys.stdout.write(item_text(item))
    return 0


def _wait_for(fd: int | None) -> None:
    import select

    select.select([] if fd is None else [fd], [], [], AGAIN_S if fd is None else None)


def item_text(item: Item) -> str:
    """An item in words: a headline, for tasks their own variables, and the command.

    >>> print(item_text(Task(3, 7, -1, b"echo hi")), end="")
    task 3, line 7
      DISBATCH_TASKID=3 DISBATCH_TASKID_ZP=000003 DISBATCH_STREAM_INDEX=7 \
DISBATCH_STREAM_INDEX_ZP=000007 DISBATCH_REPEAT_INDEX=-1 DISBATCH_REPEAT_INDEX_ZP=-00001
      echo hi
    """
    if isinstance(item, Barrier):
        name = "barrier with check" if item.checks else "barrier"
        return f"{name} {item.id}, line {item.line}\n"
    if isinstance(item, PerEngine):
        name = "at the start of each engine" if item.at_start else "at the end of each engine"
        return f"{name}, line {item.line}\n  {command_text(item.command)}\n"
    if isinstance(item, DoneBefore):
        return "".join(
            f"task {item.id + at}, line {item.line + at}: done before, exit code {item.code}\n"
            for at in range(item.count)
        )
    variables = attempt_variables(Attempt(item, 1))[:-1]
    shown = " ".join(shell_word(variable.decode()) for variable in variables)
    return f"{_headline(item)}\n  {shown}\n  {command_text(item.command)}\n"


def _headline(task: Task) -> str:
    repeat = f", repeat index {task.repeat}" if task.repeat >= 0 else ""
    return f"task {task.id}, line {task.line}{repeat}"
