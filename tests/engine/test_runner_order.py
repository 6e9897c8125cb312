"""The order in which a runner does what its machine asks for in one step."""

from __future__ import annotations

from overnight.core.slot_events import EndTree, Finish, Start
from overnight.engine.runner import Runner
from overnight.model.outcome import Signalled
from tests.core.slots_kit import attempt


class Watched(Runner):
    """A runner without processes, which tells what it would do to them."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []

    def _start(self, slot, attempt, events) -> None:
        self.done.append(("start", slot))

    def _finish(self, effect) -> None:
        self.done.append(("finish", effect.slot))

    def _end_trees(self, effects, events) -> None:
        self.done.append(("end", *(effect.slot for effect in effects)))


def test_a_tree_that_has_ended_by_itself_is_not_ended_in_the_name_of_the_next_attempt() -> None:
    runner = Watched()
    killed = Finish(1, attempt(1), Signalled(-15, False), 0)
    runner._perform([EndTree(0, 15), EndTree(1, 15), killed, Start(1, attempt(2))], [])
    assert runner.done == [("finish", 1), ("start", 1), ("end", 0)]


def test_a_step_that_ends_nothing_looks_for_nothing() -> None:
    runner = Watched()
    runner._perform([EndTree(1, 15), Finish(1, attempt(1), Signalled(-15, False), 0)], [])
    assert runner.done == [("finish", 1)]
