"""Which exit status stands for which ending: the table of the reference, row by row."""

from __future__ import annotations

import signal

import pytest

from overnight.cli.exit_status import compatible_status, own_status
from overnight.core import verdict as v
from overnight.core.verdict import Verdict


def verdict(ending: str, *, failed: bool = False, left: bool = False, by: int = 0) -> Verdict:
    return Verdict(ending, failed, left, signal=by)


TABLE = [
    # how it ended, disBatch, disBatch -e, overnight run
    ("all done", verdict(v.COMPLETE), 0, 0, 0),
    ("a task failed", verdict(v.COMPLETE, failed=True), 0, 1, 1),
    ("a CHECK ended it", verdict(v.CHECK_FAILED, failed=True, left=True), 0, 1, 1),
    ("a CHECK at the end", verdict(v.CHECK_FAILED, failed=True), 0, 1, 1),
    ("-f", verdict(v.FAIL_FAST, failed=True, left=True), 1, 1, 1),
    ("-f, at the last task", verdict(v.FAIL_FAST, failed=True), 1, 1, 1),
    ("--max-failures", verdict(v.MAX_FAILURES, failed=True, left=True), 1, 1, 1),
    ("the list was refused", verdict(v.REFUSED, left=True), 1, 1, 1),
    ("no slot left", verdict(v.NO_RESOURCES, left=True), 1, 1, 3),
    ("no slot left, and a failure", verdict(v.NO_RESOURCES, failed=True, left=True), 1, 1, 3),
    ("Ctrl-C", verdict(v.STOPPED, left=True, by=signal.SIGINT), 130, 130, 3),
    ("SIGTERM", verdict(v.STOPPED, left=True, by=signal.SIGTERM), 143, 143, 3),
    ("SIGHUP", verdict(v.STOPPED, left=True, by=signal.SIGHUP), 129, 129, 3),
    ("Ctrl-C, and a failure", verdict(v.STOPPED, failed=True, left=True, by=2), 130, 130, 3),
    ("Ctrl-C at the last task", verdict(v.STOPPED, by=2), 130, 130, 0),
    ("Ctrl-C after a failure, nothing left", verdict(v.STOPPED, failed=True, by=2), 130, 130, 1),
    ("stopped by its owner", verdict(v.STOPPED, left=True), 1, 1, 3),
    ("stopped by its owner, nothing left", verdict(v.STOPPED), 0, 0, 0),
    ("no record", verdict(v.NO_RECORD, left=True), 1, 1, 4),
    ("no record, ended by Ctrl-C", verdict(v.NO_RECORD, left=True, by=2), 1, 1, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ended", "plain", "with_e", "own"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_an_ending_has_its_status(ended, plain, with_e, own):
    assert compatible_status(ended, counts_failures=False) == plain
    assert compatible_status(ended, counts_failures=True) == with_e
    assert own_status(ended) == own


@pytest.mark.parametrize("ending", [
    v.COMPLETE, v.CHECK_FAILED, v.FAIL_FAST, v.MAX_FAILURES, v.STOPPED, v.REFUSED,
    v.NO_RESOURCES, v.NO_RECORD,
])  # fmt: skip
def test_nothing_is_left_over_when_a_run_says_0(ending):
    assert own_status(verdict(ending, left=True)) != 0
