"""The tables of the reference say what the program does: names, columns, fields, statuses."""

from __future__ import annotations

import json
import re
from itertools import chain

import pytest

from overnight.cli import ending
from overnight.cli.exit_status import compatible_status, own_status
from overnight.cli.go_on import GoOn
from overnight.core import verdict as v
from overnight.core.summary import Summary
from overnight.core.verdict import Verdict
from overnight.formats import environment, statusfile, tasklog
from overnight.model import outcome
from overnight.model.attempt import Attempt
from overnight.model.messages import Setup
from overnight.model.report import Report
from overnight.model.run import RunFiles
from overnight.model.task import NO_REPEAT, Task
from tests.docs.pages import page
from tests.docs.source_text import texts

TASK = Task(12, 13, NO_REPEAT, b"true")
GO_ON = GoOn(RunFiles("/run"), is_fed=False)
SIGTERM = 15


def names_in(cell: str) -> list[str]:
    """What stands in a cell in code type."""
    return re.findall(r"`([^`]+)`", cell)


def first_cells(name: str, heading: str) -> list[str]:
    rows = page(name).rows_under(heading)
    assert rows, f"{name} has no table under {heading!r}"
    return [row[0] for row in rows]


def test_the_columns_are_those_of_the_status_file() -> None:
    told = [names_in(cell)[0] for cell in first_cells("docs/reference/status-file.md", "Rows")]
    assert told == list(statusfile.COLUMNS)


def test_every_flag_is_told() -> None:
    told = {names_in(cell)[0] for cell in first_cells("docs/reference/status-file.md", "Flags")}
    of_tasks = [flags.decode() for flags in statusfile.KINDS if len(flags) == 4]
    assert told == set("".join(of_tasks)) - {" "}


def test_the_fields_are_those_of_the_task_log() -> None:
    report = Report(12, 1, outcome.Exited(0), 4711, 1.0, 2.0)
    line = json.loads(tasklog.attempt_line(TASK, report, "node", 0, True))
    told = [names_in(cell)[0] for cell in first_cells("docs/reference/task-log.md", "The task log")]
    assert told == list(line)


def test_the_outcomes_are_told() -> None:
    rows = page("docs/reference/task-log.md").rows_under("The task log")
    told = next(names_in(row[1]) for row in rows if names_in(row[0]) == ["outcome"])
    kinds = {each.kind for each in vars(outcome).values() if hasattr(each, "kind")}
    assert set(told) == kinds - {"skipped"}, "skipped tasks have no line there"


def test_the_variables_are_those_a_task_gets() -> None:
    setup = Setup(
        "run", "Tasks", 1, 0, 1, 1, "/", [], False, 5.0, True, None, 2.0, None, [], "", 1.0
    )
    given = environment.slot_environment([], setup, 0) + environment.attempt_variables(
        Attempt(TASK, 1)
    )
    cells = first_cells("docs/reference/variables.md", "What a task finds")
    told = list(chain.from_iterable(names_in(cell) for cell in cells))
    assert sorted(told) == sorted(environment.name_of(entry).decode() for entry in given)


def test_the_files_are_those_of_a_run() -> None:
    files = RunFiles("<prefix>")
    named = {
        getattr(files, name) for name, what in vars(RunFiles).items()
        if isinstance(what, property) and name not in ("run_id", "prefix")
    }
    named |= {files.engine_log("<label>", "<node>", 0), files.spool("<random>")}
    cells = first_cells("docs/reference/files.md", "Files of a run")
    told = {names_in(cell)[0].replace("<rank>", "0") for cell in cells}
    assert named <= told, f"not told: {named - told}"


def test_the_fields_of_the_summary_are_those_of_the_last_event() -> None:
    facts = ending.facts(Summary(), Verdict(v.COMPLETE, False, False), GO_ON)
    cells = first_cells("docs/reference/json-events.md", "The summary")
    assert list(chain.from_iterable(names_in(cell) for cell in cells)) == list(facts)


ENDINGS = {
    "all tasks were done": Verdict(v.COMPLETE, False, False),
    "a task failed": Verdict(v.COMPLETE, True, False),
    "a `BARRIER CHECK` ended it": Verdict(v.CHECK_FAILED, True, True),
    "`-f` or `--max-failures` ended it": Verdict(v.FAIL_FAST, True, True),
    "the list or the resume was refused": Verdict(v.REFUSED, False, True),
    "no slot was left, with tasks left": Verdict(v.NO_RESOURCES, False, True),
    "it was stopped by a signal, with tasks left": Verdict(v.STOPPED, False, True, signal=SIGTERM),
    "the record could not be written": Verdict(v.NO_RECORD, False, True),
}


@pytest.mark.parametrize(("how", "verdict"), ENDINGS.items(), ids=list(ENDINGS))
def test_an_exit_status_is_the_one_told(how: str, verdict: Verdict) -> None:
    rows = page("docs/reference/exit-statuses.md").rows_under("A run")
    told = next(row for row in rows if row[0] == how)
    plain = compatible_status(verdict, counts_failures=False)
    with_e = compatible_status(verdict, counts_failures=True)
    shown = str(plain) if plain == with_e else f"{plain}, with `-e` {with_e}"
    if plain == 128 + SIGTERM:
        shown = "128 and the signal's number"
    assert told[1:] == [shown, str(own_status(verdict))]


def test_every_ending_of_a_run_has_its_exit_status_told() -> None:
    endings = {getattr(v, name) for name in vars(v) if name.isupper() and name != "TYPE_CHECKING"}
    assert endings - {v.MAX_FAILURES} == {verdict.ending for verdict in ENDINGS.values()}


def test_every_message_is_one_that_the_program_says() -> None:
    read = page("docs/reference/messages.md")
    headings = [line.lstrip("# ") for line in read.prose if line.startswith("## ")]
    told = [names_in(row[0])[0] for heading in headings for row in read.rows_under(heading)]
    known = [" ".join(text.split()) for text in texts()]
    strange = [text for text in told if not any(_is_in(text, each) for each in known)]
    assert not strange, f"no text of the program: {strange}"


def _is_in(told: str, text: str) -> bool:
    """Whether a text of the program holds what is told, whatever is filled in."""
    pattern = re.escape(told).replace("…", ".*")
    return re.search(pattern, text) is not None
