"""What users ask of a run's pool while it goes on, and what the driver answers."""

from __future__ import annotations

from overnight.core import pool as p
from overnight.core.events import ContextEndsAt, DrainAsked, SlotsSet
from overnight.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from overnight.core.pool import EngineState
    from overnight.driver.loop import Driver

STATES = {
    p.STARTING: "starting", p.JOINED: "joined", p.OPENING: "opening", p.OPEN: "open",
    p.DRAINING: "draining", p.CLOSING: "leaving",
}
MOST_SLOTS = 16_384


class PoolVerbs:
    """The verbs of ``overnight pool`` but ``add``, which needs to know every context."""

    def __init__(self, driver: Driver, add: Callable[[Mapping[str, Any]], Mapping[str, Any]]):
        self._driver = driver
        self.verbs = {
            "list": self.show, "drain": self.drain, "stop": self.stop, "set": self.set_slots,
            "forget": self.forget, "add": add,
        }

    def show(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """All engines of the run, in order of their start."""
        scheduler = self._driver.scheduler
        return {
            "engines": [self._described(engine) for engine in scheduler.pool],
            "ready": len(scheduler.ready) + len(scheduler.waiting),
        }

    @staticmethod
    def _described(engine: EngineState) -> dict[str, Any]:
        return {
            "rank": engine.rank, "node": engine.node, "context": engine.context,
            "slots": engine.slots, "tasks": len(engine.held),
            "state": "cut off" if engine.is_absent else STATES[engine.state],
        }

    def drain(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Let these engines take nothing more, and leave when what runs has ended."""
        return self._leave(question, ends_tasks=False)

    def stop(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """End what runs there now, to be run elsewhere, and let them leave."""
        return self._leave(question, ends_tasks=True)

    def _leave(self, question: Mapping[str, Any], *, ends_tasks: bool) -> dict[str, Any]:
        engines = self._meant(question["targets"])
        self._driver.happened(DrainAsked([each.id for each in engines], ends_tasks))
        return {"engines": [self._described(each) for each in engines]}

    def set_slots(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Give these engines another number of slots, at once."""
        slots = int(question["jobs"])
        if not 0 < slots <= MOST_SLOTS:
            raise UsageError(f"jobs={slots}: from 1 to {MOST_SLOTS}; drain lets an engine leave")
        engines = self._meant(question["targets"])
        for engine in engines:
            most = self._driver.device_slots(engine.id)
            if most is not None and slots > most:
                raise UsageError(f"jobs={slots}: the devices on {engine.node} are divided among"
                                 f" {most} slots")
        self._driver.happened(*(SlotsSet(each.id, slots) for each in engines))
        return {"engines": [self._described(each) for each in engines]}

    def forget(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Believe the user that nothing of the engines on this host runs any more."""
        host = str(question["host"])
        count = self._driver.believe_gone(host)
        if not count:
            away = sorted(set(self._driver.absent_nodes()))
            known = f"those that are: {', '.join(away)}" if away else "no engine is"
            raise UsageError(f"no engine on {host} is cut off; {known}",
                             do="end one that is here with: overnight pool stop")
        return {"count": count}

    def note_loan(self, context: str, until: float) -> None:
        """This context was lent until then, Unix seconds."""
        self._driver.happened(ContextEndsAt(context, until))

    def _meant(self, targets: Sequence[str]) -> list[EngineState]:
        """The engines with these ranks, on these hosts, or of these contexts.

        Raises:
            UsageError: One of them names none.
        """
        engines: dict[int, EngineState] = {}
        for target in targets:
            found = [each for each in self._driver.scheduler.pool
                     if target in (str(each.rank), each.node, each.context)]
            if not found:
                known = ", ".join(
                    f"{each.rank} ({each.node}, {each.context})"
                    for each in self._driver.scheduler.pool
                )
                raise UsageError(f"{target!r} is no engine, host or context of this run",
                                 do=f"name one of these: {known or 'there is none'}")
            engines.update((each.id, each) for each in found)
        return list(engines.values())
