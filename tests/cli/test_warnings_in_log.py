"""Warnings of a run, found in its driver's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overnight.cli.warnings_in_log import WarningsInLog
from overnight.core.summary.warned import WARNINGS_KEPT, Warned
from overnight.driver.describe import Description
from overnight.model.options import RunOptions
from overnight.model.run import RunFiles
from overnight.observers.runlog import RunLog

if TYPE_CHECKING:
    from pathlib import Path


def log_of(folder: Path, started_at: float = 0.0, **options: str) -> WarningsInLog:
    description = Description(RunOptions(**options), str(folder), 1, None, started_at)
    return WarningsInLog(RunFiles(str(folder / "P")), description)


def test_warnings_and_errors_are_found_as_they_come(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    assert log.read_on() == []  # there is no such file yet
    written = RunLog(str(tmp_path / "P_driver.log"))
    written.write("INFO", "an engine has joined")
    written.write("WARNING", "Tasks is another file now: it goes on")
    assert log.read_on() == ["Tasks is another file now: it goes on"]
    written.write("ERROR", "engine on n1 was lost")
    assert log.read_on() == ["engine on n1 was lost"]
    assert log.read_on() == []


def test_those_of_an_earlier_driver_are_not_told_again(tmp_path: Path) -> None:
    RunLog(str(tmp_path / "P_driver.log")).write("WARNING", "long ago")
    assert log_of(tmp_path, started_at=4e9).read_on() == []


def test_a_log_elsewhere_is_found_where_the_run_was_started(tmp_path: Path) -> None:
    RunLog(str(tmp_path / "mine.log")).write("WARNING", "this")
    assert log_of(tmp_path, logfile="mine.log").read_on() == ["this"]


def test_few_are_kept_each_once_and_no_word_of_an_interrupt() -> None:
    warned = Warned()
    warned.add("SIGINT: nothing new is started")
    for number in range(WARNINGS_KEPT + 3):
        warned.add(f"warning {number}")
        warned.add(f"warning {min(number, 2)}")
    assert list(warned.lines("P_driver.log")) == [
        "Warnings", *(f"  warning {number}" for number in range(WARNINGS_KEPT)),
        "  and 3 more in P_driver.log",
    ]
    assert list(Warned().lines("P_driver.log")) == []
