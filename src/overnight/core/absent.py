"""What a person is told of engines that are cut off, and when.

A cut that lasts as long as a dropped packet is worth a line of the log; one that lasts
longer holds tasks back, and then a person has to know which, where, since when, and what
to do if the machine is known to be gone.
"""

from __future__ import annotations

from overnight.core.effects import Tell, WakeAt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from overnight.core.effects import Effect
    from overnight.core.pool import EngineState

FIRST_S = 20.0
EVERY_S = 60.0
MOST_NAMED = 12

RETURNS_WITHIN_S = 10.0
"""When a run is over, an engine that is away and holds nothing is waited for so long."""


def say_absent(engines: Iterable[EngineState], at: float, how_to_forget: str) -> list[Effect]:
    """Notices that are due now, and when the next one is.

    Args:
        engines: Of the pool.
        at: Unix seconds.
        how_to_forget: A command in which ``HOST`` stands for the engine's.
    """
    effects: list[Effect] = []
    for engine in engines:
        if engine.absent_since is None or not (engine.held or engine.holds_unknown):
            continue
        if at >= engine.say_absent_at:
            engine.say_absent_at = at + EVERY_S
            effects.append(Tell("warning", absent_text(engine, at, how_to_forget)))
        effects.append(WakeAt(engine.say_absent_at))
    return effects


def absent_text(engine: EngineState, at: float, how_to_forget: str) -> str:
    """What is held back, where, since when, and what the user can do."""
    node = engine.node or engine.context
    away_s = at - (engine.absent_since or at)
    if engine.holds_unknown:
        what = f"an engine of an earlier driver on {node} has not been heard of for" \
               f" {away_s:.0f} s"
        kept = "nothing is started: it may still run any of the tasks that have no row"
        if engine.absent_reason:
            what += f" ({engine.absent_reason})"
    else:
        what = f"engine {engine.rank} on {node} has been cut off for {away_s:.0f} s:" \
               f" {engine.absent_reason}"
        kept = f"{_tasks_text(sorted(engine.held))}: they may still run there;" \
               " the run goes on with the others"
    lines = [what, f"  kept:  {kept}"]
    if how_to_forget:
        command = how_to_forget.replace("HOST", node)
        lines.append(f"  do:    wait; or, if you know that nothing runs there any more:  {command}")
    return "\n".join(lines)


def left_behind_text(engine: EngineState, reason: str) -> str:
    """What a person is told when the run ends without an engine that may run tasks."""
    held = sorted(engine.held)
    kept = "what it runs is not known" if engine.holds_unknown else (
        f"{_tasks_text(held)}: they may still run there"
    )
    return (
        f"engine on {engine.node or engine.context} is left alone: {reason}\n"
        f"  kept:  {kept}\n"
        "  do:    resume the run, which collects them"
    )


def _tasks_text(ids: list[int]) -> str:
    named = ", ".join(map(str, ids[:MOST_NAMED]))
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return f"task {named} is held back" if len(ids) == 1 else f"tasks {named}{more} are held back"
