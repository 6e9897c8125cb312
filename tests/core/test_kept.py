"""Reports that were kept: what a new driver takes of them."""

from __future__ import annotations

from overnight.core.kept import news
from overnight.model.attempt import Attempt
from overnight.model.outcome import Exited, Lost
from overnight.model.report import Report
from tests.core.scheduler_kit import task


def kept(id: int, number: int = 1, outcome=None):
    attempt = Attempt(task(id), number)
    return attempt, Report(id, number, outcome or Exited(0), 70, 100.0 * number, 1.0)


def test_what_has_a_row_is_no_news():
    first, second = kept(0), kept(1)
    assert news([[first], [second]], {0: 100.0}.get) == [[], [second]]


def test_what_came_twice_is_told_once():
    pair = kept(0)
    assert news([[pair], [pair]], {}.get) == [[pair], []]


def test_earlier_attempts_of_a_settled_task_are_no_news():
    lost, done = kept(0, 1, Lost("its runner died")), kept(0, 2)
    assert news([[lost, done]], {0: 200.0}.get) == [[]]


def test_an_attempt_before_the_one_that_has_a_row_is_no_news():
    assert news([[kept(0, 1, Lost("its runner died"))]], {0: 200.0}.get) == [[]]


def test_a_further_attempt_after_an_old_failure_is_news():
    again = kept(0, 1)
    assert news([[again]], {0: 50.0}.get) == [[again]]
