"""A result that is wrong must be seen to be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.load import Load
from harness.product import STATUS_FILE, complaint, earlier_rows, rows
from harness.targets import at_least, at_most

LOAD = Load("true", 3, 2)


def record(folder: Path, text: str) -> Path:
    (folder / STATUS_FILE).write_text(text)
    return folder


def good_rows() -> list[str]:
    return list(earlier_rows(range(3), "true"))


def test_one_good_row_a_task_is_right(tmp_path: Path) -> None:
    assert complaint(record(tmp_path, "".join(good_rows())), LOAD) == ""


def test_a_missing_file_is_wrong(tmp_path: Path) -> None:
    assert complaint(tmp_path, LOAD) == "no status file"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("".join(good_rows()[:2]), "1 of 3 tasks have not exactly one row"),
        ("".join(good_rows() + good_rows()[:1]), "1 of 3 tasks have not exactly one row"),
        ("".join(good_rows())[:-1], "a torn row in the status file"),
        ("".join(good_rows()).replace("\t0\t0.010", "\t1\t0.010"), "row of task 0 has exit code 1"),
    ],
    ids=["lost", "doubled", "torn", "failed"],
)
def test_a_wrong_record_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    assert complaint(record(tmp_path, text), LOAD) == wrong


def test_a_command_may_hold_tabs(tmp_path: Path) -> None:
    status_file = tmp_path / STATUS_FILE
    status_file.write_text("".join(earlier_rows([7], "a\tb\tc")))
    (row,) = rows(status_file)
    assert row is not None
    assert row.task_id == 7


def test_a_target_without_a_figure_is_not_met() -> None:
    assert at_most("W", "x", 1.0, None).verdict == "not measured"


def test_a_figure_on_the_limit_meets_it() -> None:
    assert at_most("W", "x", 1.0, 1.0).verdict == "yes"
    assert at_least("W", "x", 1.0, 1.0).verdict == "yes"
    assert at_least("W", "x", 1.0, 0.99).verdict == "NO"
