"""What --json promises: one object a line, one line an event, the summary last."""

from __future__ import annotations

import json

import pytest

from overnight.model.attempt import Attempt
from overnight.observers.jsonlines import JsonObserver
from tests.observers.entries import (
    barrier_met,
    command_ended,
    cut_off,
    ended,
    skipped,
    task,
)


@pytest.fixture
def said():
    """The events that are written when an observer is used this way."""

    def said(use) -> list[dict]:
        written: list[str] = []
        use(JsonObserver(written.append))
        assert all(text.count("\n") == 1 and text.endswith("\n") for text in written)
        return [json.loads(text) for text in written]

    return said


def test_every_attempt_is_an_event_with_all_that_the_task_log_has(said):
    first, last = said(lambda observer: observer.recorded(
        [ended(3, code=1, settles=False), ended(3, attempt=2)]
    ))
    assert (first["event"], first["task"], first["attempt"], first["code"]) == ("attempt", 3, 1, 1)
    assert (first["settled"], last["settled"]) == (False, True)
    assert (last["node"], last["line"], last["words"], last["elapsed"]) == ("n1", 4, "done", 1.0)


def test_every_kind_of_entry_is_an_event(said):
    entries = [barrier_met(4), skipped(2, code=5), command_ended(7), cut_off(1)]
    events = said(lambda observer: observer.recorded(entries))
    assert events[:3] == [
        {"event": "barrier", "task": 4, "line": 5},
        {"event": "skipped", "task": 2, "count": 1, "code": 5},
        {"event": "per-engine", "command": "START", "number": 2, "code": 7, "words": "exit code 7"},
    ]
    assert events[3]["outcome"] == "cancelled"


def test_all_lines_have_their_blanks_alike():
    written: list[str] = []
    observer = JsonObserver(written.append)
    observer.recorded([ended(3), barrier_met(4)])
    observer.say("started", total=3)
    assert [line.partition('"event"')[2][:2] for line in written] == [':"'] * 3
    assert not any(", " in line or ": " in line for line in written)


def test_every_assignment_is_an_event(said):
    attempts = [Attempt(task(0), 1), Attempt(task(5), 2)]
    assert said(lambda observer: observer.assigned(3, attempts)) == [
        {"event": "assigned", "task": 0, "attempt": 1, "engine": 3},
        {"event": "assigned", "task": 5, "attempt": 2, "engine": 3},
    ]


def test_every_notice_is_an_event_whatever_is_in_it(said):
    text = 'two\nlines, "quotes", caf\xe9, \udcff'
    assert said(lambda observer: observer.told("warning", text)) == [
        {"event": "notice", "level": "warning", "text": text}
    ]


def test_the_summary_is_an_event(said):
    assert said(lambda observer: observer.finish({"done": 3, "causes": []})) == [
        {"event": "finished", "done": 3, "causes": []}
    ]
