"""What holds after every step of a scheduler: for tests."""

from __future__ import annotations

from overnight.core import pool as p
from overnight.errors import InvariantBroken
from overnight.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.core.scheduler import Scheduler


def check(scheduler: Scheduler) -> None:
    """Compare the parts of a scheduler's state with each other.

    Raises:
        InvariantBroken: With the story of the first thing that does not fit.
    """
    _check_places(scheduler)
    _check_engines(scheduler)


def _check_places(scheduler: Scheduler) -> None:
    """A live attempt is ready, waiting, or held by one engine; never in two places."""
    place_by_id: dict[int, str] = {}
    places = [("ready", attempt) for attempt in scheduler.ready]
    places += [("waiting", attempt) for _, _, attempt in scheduler.waiting]
    for engine in scheduler.pool:
        places += [(f"held by engine {engine.id}", attempt) for attempt in engine.held.values()]
    for place, attempt in places:
        earlier = place_by_id.setdefault(attempt.task.id, place)
        if earlier != place:
            raise InvariantBroken(f"task {attempt.task.id} is {earlier} and {place}")
    for item in scheduler.backlog:
        if type(item) is Task and item.id in place_by_id and not scheduler.is_known(item):
            raise InvariantBroken(f"task {item.id} is in the list and {place_by_id[item.id]}")


def _check_engines(scheduler: Scheduler) -> None:
    for engine in scheduler.pool:
        most = engine.slots + p.MOST_PREFETCHED
        if len(engine.held) > most:
            raise InvariantBroken(f"engine {engine.id} holds {len(engine.held)} of {most}")
        if engine.state in (p.STARTING, p.JOINED, p.OPENING) and engine.free_slots:
            raise InvariantBroken(f"engine {engine.id} has room before it is open")
