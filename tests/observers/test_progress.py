"""What the progress of a run says, from the scheduler's counts and what was recorded."""

from __future__ import annotations

import pytest

from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.model.attempt import Attempt
from overnight.model.progress import Progress
from overnight.model.report import Leak
from overnight.observers.progress import ProgressObserver
from tests.observers.entries import barrier_met, command_ended, cut_off, ended, skipped, task


class FakeScreen:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[Progress] = []
        self.said: list[str] = []
        self.is_closed = False

    def show(self, progress: Progress) -> None:
        self.shown.append(progress)

    def say(self, line: str) -> None:
        self.said.append(line)

    def close(self) -> None:
        self.is_closed = True


class Watched:
    """An observer with its screen and its scheduler, and a clock of the test's."""

    def __init__(self, total: int | None = None, *, has_screen: bool = True) -> None:
        self.scheduler = Scheduler(Policy())
        self.screen = FakeScreen()
        self.total = total
        self.observer = ProgressObserver(
            self.scheduler, self.screen if has_screen else None, lambda: self.total
        )
        self.now = 1000.0

    def engine(self, slots: int, *held: int):
        pool = self.scheduler.pool
        id = len(pool)
        pool.add(id, "local")
        engine = pool.join(id, f"n{id}", slots, is_open=True)
        engine.held = {task_id: Attempt(task(task_id), 1) for task_id in held}
        return engine

    def turn(self, after_s: float = 0.0) -> float | None:
        self.now += after_s
        return self.observer.turn(self.now)

    def end(self, *entries) -> None:
        """Record these; the scheduler has counted them already."""
        for entry in entries:
            if entry.report.outcome.code == 0:
                self.scheduler.counts.done += 1
            else:
                self.scheduler.counts.failed += 1
        self.observer.recorded(entries)


@pytest.fixture
def watched():
    return Watched()


def test_the_screen_is_shown_a_few_times_a_second_at_most(watched):
    watched.turn()
    watched.turn(after_s=0.2)
    watched.turn(after_s=0.04)
    assert len(watched.screen.shown) == 1
    watched.turn(after_s=0.01)
    assert len(watched.screen.shown) == 2


def test_it_says_when_it_wants_to_be_called_again(watched):
    assert watched.turn() == pytest.approx(1000.25)


def test_a_run_in_which_nothing_ends_is_looked_at_once_a_second(watched):
    watched.turn()
    watched.turn(after_s=0.25)
    assert watched.turn() == pytest.approx(1001.25)
    watched.end(ended(0))
    watched.turn(after_s=1.0)
    assert watched.turn() == pytest.approx(1001.5)


def test_counts_are_the_schedulers(watched):
    counts = watched.scheduler.counts
    counts.done, counts.failed, counts.cut, counts.skipped = 5, 2, 1, 4
    progress = watched.observer.progress(watched.now)
    assert (progress.done, progress.failed, progress.skipped) == (5, 3, 4)


def test_a_stream_has_no_total_and_no_end_in_sight(watched):
    watched.engine(2)
    watched.end(*(ended(id) for id in range(10)))
    progress = watched.observer.progress(watched.now)
    assert (progress.total, progress.range_text) == (None, "")


def test_barriers_that_were_met_change_no_count():
    watched = Watched(total=10)
    watched.observer.recorded([barrier_met(3)])
    assert watched.observer.progress(watched.now).total == 10


def test_the_time_of_every_attempt_is_summed_up(watched):
    watched.observer.recorded([ended(0, 1, settles=False, elapsed_s=5.0)])
    watched.observer.recorded([ended(0, attempt=2, elapsed_s=2.0)])
    summary = watched.observer.summary
    assert (summary.done, summary.failed, summary.task_s) == (1, 0, 7.0)


def test_running_is_what_is_in_slots_and_not_what_waits_behind_them(watched):
    watched.engine(2, 0, 1, 2, 3)
    watched.engine(4, 4)
    assert watched.observer.progress(watched.now).running == 3


def test_tasks_of_an_engine_that_is_about_to_leave_still_run(watched):
    from overnight.core.pool import CLOSING

    watched.engine(2, 0, 1).state = CLOSING
    assert watched.observer.progress(watched.now).running == 2


def test_the_rate_is_that_of_the_last_seconds(watched):
    watched.turn()
    for id in range(100):
        watched.turn(after_s=1.0)
        watched.end(ended(2 * id), ended(2 * id + 1))
    assert watched.observer.progress(watched.now + 1.0).rate == pytest.approx(2.0, rel=0.1)
    for _ in range(15):
        watched.turn(after_s=1.0)
    assert watched.observer.progress(watched.now).rate == 0.0


def test_the_last_failure_is_named_with_its_last_words(watched):
    watched.end(ended(0, code=1), ended(4, code=2, err=Leak(8, b"no such\n")), ended(5))
    text = watched.observer.progress(watched.now).last_failure
    assert text == "task 4 (line 5): exit code 2: no such"


def test_an_attempt_that_is_tried_again_is_no_failure_yet(watched):
    watched.observer.recorded([ended(0, code=1, settles=False)])
    assert watched.observer.progress(watched.now).last_failure == ""
    assert watched.observer.summary.failed == 0


def test_what_is_left_is_said_as_a_range_once_some_tasks_have_ended():
    watched = Watched(total=100)
    watched.engine(2)
    watched.turn()
    for id in range(40):
        watched.observer.assigned(0, [Attempt(task(id), 1)])
        watched.turn(after_s=0.5)
        watched.end(ended(id, elapsed_s=1.0))
    assert watched.observer.progress(watched.now).range_text != ""


def test_a_task_that_waits_for_a_further_attempt_does_not_age():
    watched = Watched(total=9)
    watched.engine(1)
    watched.turn()
    watched.observer.assigned(0, [Attempt(task(0), 1)])
    watched.observer.recorded([ended(0, code=1, settles=False)])
    watched.end(*(ended(id) for id in range(1, 8)))
    soon = watched.observer.progress(watched.now + 1).range_text
    late = watched.observer.progress(watched.now + 100_000).range_text
    assert soon == late


def test_the_summary_counts_every_kind_of_entry(watched):
    watched.observer.recorded([
        ended(0), ended(1, code=1), cut_off(2), skipped(3, count=7), skipped(10, code=1),
        barrier_met(11), command_ended(1),
    ])
    summary = watched.observer.summary
    assert (summary.done, summary.failed, summary.cut_off) == (1, 1, 1)
    assert (summary.skipped, summary.skipped_failed, summary.per_engine_failed) == (8, 1, 1)


def test_notices_stand_on_the_screen_but_what_is_for_the_log_does_not(watched):
    watched.observer.told("info", "an engine has joined")
    watched.observer.told("warning", "the disk is full")
    watched.observer.told("error", "an engine was lost")
    assert watched.screen.said == ["the disk is full", "an engine was lost"]


def test_without_a_screen_it_sums_up_and_wants_no_turn():
    watched = Watched(has_screen=False)
    watched.observer.assigned(0, [Attempt(task(0), 1)])
    watched.observer.told("error", "nobody reads this")
    watched.end(ended(0))
    assert watched.turn() is None
    watched.observer.close()
    assert watched.observer.summary.done == 1


def test_the_screen_is_left_at_the_end(watched):
    watched.observer.close()
    assert watched.screen.is_closed
