"""What the driver's log promises."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from overnight.observers.runlog import LEVELS, RunLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "driver.log"


def test_a_line_has_its_moment_its_level_and_its_text(path):
    log = RunLog(str(path))
    log.write("WARNING", "the disk is nearly full")
    log.close()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING  the disk is nearly full\n",
        path.read_text(),
    )


def test_a_log_that_lies_there_is_added_to(path):
    path.write_text("an earlier driver's\n")
    log = RunLog(str(path))
    log.write("INFO", "here I am")
    log.close()
    assert path.read_text().startswith("an earlier driver's\n")
    assert path.read_text().endswith(" here I am\n")


@pytest.mark.parametrize("kept", LEVELS)
def test_what_is_below_its_level_is_left_out(path, kept):
    log = RunLog(str(path), kept)
    for level in LEVELS:
        log.write(level, "something")
    log.close()
    written = [line.split()[2] for line in path.read_text().splitlines()]
    assert written == list(LEVELS[LEVELS.index(kept):])


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31mred", "caf\udce9", "tab\there", "\0"])
def test_no_text_breaks_its_line_or_acts_on_a_terminal(path, text):
    log = RunLog(str(path))
    log.write("INFO", text)
    log.close()
    (line,) = path.read_bytes().splitlines()
    assert line.decode("ascii").isprintable()


@pytest.mark.needs("mounts")
def test_a_full_disk_stops_no_run(full_folder):
    log = RunLog(str(full_folder.path / "driver.log"))
    full_folder.fill()
    log.write("INFO", "x" * 100_000)
    full_folder.relieve()
    log.write("INFO", "there is room again")
    log.close()
    assert (full_folder.path / "driver.log").read_bytes().endswith(b"there is room again\n")


def test_a_log_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        RunLog(os.fspath(tmp_path / "no" / "driver.log"))
