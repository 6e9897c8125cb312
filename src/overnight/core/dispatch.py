"""Who gets what: attempts that are ready, and engines with room for them.

Free slots are filled first, the emptiest engine first; only what is plentiful is
handed out ahead of the slots. Which slot of its engine an attempt gets is the
engine's choice, made when the slot is free: with prefetched attempts nobody else
can know which one that will be.
"""

from __future__ import annotations

import heapq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.pool import EngineState


def shares(
    ready_count: int, engines: Sequence[EngineState], allows_prefetch: bool
) -> list[tuple[EngineState, int]]:
    """How many of the ready attempts each engine gets now.

    Args:
        ready_count: Attempts that may start, more than none.
        engines: Those that take tasks; any may be full.
        allows_prefetch: Whether what is left over may be handed out ahead of slots.

    Returns:
        Engines with a share of at least one; the shares add up to at most ``ready_count``.
    """
    roomy = [e for e in engines if e.free_slots > 0]
    free = sum(e.free_slots for e in roomy)
    if ready_count >= free:
        counts = {e.id: e.free_slots for e in roomy}
        if allows_prefetch:
            _add_prefetch(counts, ready_count - free, engines)
    else:
        counts = _spread(ready_count, roomy)
    return [(e, counts[e.id]) for e in engines if counts.get(e.id)]


def _add_prefetch(counts: dict[int, int], left: int, engines: Sequence[EngineState]) -> None:
    for engine in engines:
        extra = min(left, engine.room - max(engine.free_slots, 0))
        if extra > 0:
            counts[engine.id] = counts.get(engine.id, 0) + extra
            left -= extra


def _spread(ready_count: int, roomy: Sequence[EngineState]) -> dict[int, int]:
    """One at a time to the engine with the largest share of free slots."""
    counts: dict[int, int] = {}
    heap = [(len(e.held) / e.slots, e.rank, e) for e in roomy]
    heapq.heapify(heap)
    for _ in range(ready_count):
        _, rank, engine = heap[0]
        counts[engine.id] = counts.get(engine.id, 0) + 1
        taken = len(engine.held) + counts[engine.id]
        if taken < engine.slots:
            heapq.heapreplace(heap, (taken / engine.slots, rank, engine))
        else:
            heapq.heappop(heap)
    return counts
