"""What a line of the task log promises: one JSON object with all that is known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.tasklog import attempt_line, json_text
from overnight.model.outcome import (
    Cancelled,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from overnight.model.report import Leak, Report
from overnight.model.task import Task

REPORT = {
    "pid": 4711, "started_at": 1700000000.12345, "elapsed_s": 2.0005, "out": Leak(7, b"x" * 7),
    "err": Leak(3, b"abc"), "cpu_s": 1.25, "max_rss_kib": 2048, "slot": 5, "left_running": 2,
}  # fmt: skip


def line(outcome, *, settles: bool = True, node: str = "n1", **changed) -> dict:
    report = Report(3, 2, outcome, **{**REPORT, **changed})
    data = attempt_line(Task(3, 8, -1, b"do it"), report, node, 1, settles)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return json.loads(data)


def test_a_line_has_everything_about_an_attempt():
    assert line(Exited(0)) == {
        "task": 3, "attempt": 2, "line": 8, "repeat": -1, "slot": 5, "engine": 1, "node": "n1",
        "outcome": "exited", "words": "done", "code": 0, "pid": 4711, "start": 1700000000.123,
        "elapsed": 2.001, "cpu": 1.25, "rss_kib": 2048, "out_bytes": 7, "err_bytes": 3,
        "left_running": 2, "oom": False, "late": False, "settled": True,
    }


def test_an_attempt_that_decides_nothing_is_marked():
    assert line(Exited(1), settles=False)["settled"] is False


def test_a_late_report_is_marked():
    assert line(Exited(0), late=True)["late"] is True


@pytest.mark.parametrize(
    ("outcome", "kind", "code"),
    [
        (Exited(3), "exited", 3), (Signalled(-9), "signalled", -9),
        (NotStarted(7, "Argument list too long"), "not started", 7),
        (TimedOut(-15, 60.0), "timed out", -15), (Cancelled(-15, "stopped"), "cancelled", -15),
        (Lost("its engine died"), "lost", -100),
    ],
)  # fmt: skip
def test_every_outcome_is_told_as_kind_code_and_words(outcome, kind, code):
    told = line(outcome)
    assert (told["outcome"], told["code"], told["words"]) == (kind, code, outcome.words())


def test_a_task_that_the_kernel_killed_for_memory_is_marked():
    assert line(Signalled(-9, by_oom_killer=True))["oom"] is True
    assert line(Signalled(-9))["oom"] is False


@given(st.text(st.characters(exclude_categories=[])), st.text())
def test_no_reason_and_no_name_breaks_the_line(reason, node):
    told = line(NotStarted(200, reason), node=node)
    assert told["words"] == f"could not start: {reason}"
    assert told["node"] == node


@given(st.text(st.characters(exclude_categories=[])))
def test_text_is_what_a_json_reader_reads(text):
    assert json.loads(json_text(text)) == text
    assert json_text(text).isascii()
