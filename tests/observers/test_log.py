"""What the driver's log says of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from overnight.model.attempt import Attempt
from overnight.observers.log import LogObserver
from overnight.observers.runlog import RunLog
from tests.observers.entries import barrier_met, command_ended, cut_off, ended, skipped, task


@pytest.fixture
def logged(tmp_path: Path):
    """What is logged, as pairs of level and text, when an observer is used this way."""

    def logged(use, level: str = "INFO") -> list[tuple[str, str]]:
        path = tmp_path / "driver.log"
        observer = LogObserver(RunLog(str(path), level))
        use(observer)
        observer.close()
        lines = [line.split(maxsplit=3) for line in path.read_text().splitlines()]
        return [(level, text) for _, _, level, text in lines]

    return logged


def test_failures_and_barriers_are_logged(logged):
    entries = [ended(0), ended(1, code=3), skipped(2), barrier_met(3), cut_off(4)]
    assert logged(lambda observer: observer.recorded(entries)) == [
        ("INFO", "task 1 (line 2), attempt 1: exit code 3"),
        ("INFO", "barrier of line 4 is met"),
        ("INFO", "task 4 (line 5), attempt 1: cut off: stopped"),
    ]


def test_a_per_engine_command_that_failed_is_logged(logged):
    entries = [command_ended(0), command_ended(7), command_ended(8, at_start=False)]
    assert logged(lambda observer: observer.recorded(entries)) == [
        ("INFO", "PERENGINE START of line 4 on n1: exit code 7"),
        ("INFO", "PERENGINE STOP of line 4 on n1: exit code 8"),
    ]


def test_with_debug_everything_is_logged(logged):
    def use(observer: LogObserver) -> None:
        observer.assigned(2, [Attempt(task(0), 1), Attempt(task(5), 1)])
        observer.recorded([ended(0), command_ended(0)])

    assert logged(use, "DEBUG") == [
        ("DEBUG", "engine 2 gets tasks 0 5"),
        ("DEBUG", "task 0 (line 1), attempt 1: done"),
        ("DEBUG", "PERENGINE START of line 4 on n1: done"),
    ]


def test_what_was_given_out_is_not_logged_without_debug(logged):
    assert logged(lambda observer: observer.assigned(2, [Attempt(task(0), 1)])) == []


@pytest.mark.parametrize(
    ("level", "logged_as"),
    [("info", "INFO"), ("warning", "WARNING"), ("error", "ERROR"), ("debug", "DEBUG")],
)
def test_a_notice_has_a_line_for_each_of_its_own(logged, level, logged_as):
    assert logged(lambda observer: observer.told(level, "what\n  kept:  this"), "DEBUG") == [
        (logged_as, "what"), (logged_as, "kept:  this"),
    ]


def test_commands_of_tasks_are_not_in_it(logged):
    said = logged(lambda observer: observer.recorded([ended(0), ended(1, code=1)]), "DEBUG")
    assert "do it" not in str(said)


def test_it_asks_for_no_turn(logged):
    logged(lambda observer: observer.turn(1000.0) is None or pytest.fail("it wants to be called"))
