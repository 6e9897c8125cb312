"""A bench for schedulers: engines, a source and a record that exist only as values.

Verbs arrange and act; every effect a step returned is performed at once or queued, so
that what was not expected shows up. Invariants are checked after every step.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from overnight.core import effects as fx
from overnight.core import events as ev
from overnight.core.invariants import check
from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.model.outcome import Cancelled, Exited
from overnight.model.report import Report
from overnight.model.task import Barrier, DoneBefore, PerEngine, Task


def task(id: int, command: bytes = b"true") -> Task:
    return Task(id, id + 1, -1, command)


def tasks(count: int, first: int = 0) -> list[Task]:
    return [task(first + i) for i in range(count)]


def barrier(id: int, checks: bool = False) -> Barrier:
    return Barrier(id, id + 1, b"#DISBATCH BARRIER", None, checks)


def done_before(id: int, code: int = 0) -> DoneBefore:
    return DoneBefore(id, id + 1, 1, code, b"   S\t%d\n" % id)


def start_command(number: int = 0) -> PerEngine:
    return PerEngine(True, number, 1, b"start")


def stop_command(number: int = 0) -> PerEngine:
    return PerEngine(False, number, 2, b"stop")


@dataclass
class FakeEngine:
    """An engine as its driver's scheduler sees it through messages."""

    id: int
    slots: int
    context: str = "local"
    commands: list[PerEngine] = field(default_factory=list)
    queue: deque = field(default_factory=deque)  # attempts given, in order
    seq: int = 0
    acknowledged: int = 0
    is_closing: bool = False
    runs_stop: bool = False
    was_opened: bool = False

    def running(self) -> list:
        return list(self.queue)[: self.slots]


class Bench:
    """A scheduler with everything around it as values."""

    def __init__(self, items=(), policy: Policy | None = None, is_stream: bool = False) -> None:
        self.scheduler = Scheduler(policy or Policy())
        self.at = 1000.0
        self.items = deque(items)
        self.is_stream = is_stream
        self.engines: dict[int, FakeEngine] = {}
        self.next_engine = 0
        self.wants_engines = 0
        self.rows: list = []  # entries that stand in the status file
        self.attempts: list = []  # TaskEnded entries, settling or not
        self.recorded = 0
        self.durable = 0
        self.verdict = None
        self.wake_at: float | None = None
        self.started: list[tuple[int, int]] = []  # (task id, attempt) in order of assignment
        self.told: list[str] = []
        self.wants_items = 0
        self.is_durable_at_once = True

    # -- acting -------------------------------------------------------------------------

    def step(self, *events) -> list:
        """One step; all its effects are performed."""
        effects = self.scheduler.step(self.at, events)
        check(self.scheduler)
        for effect in effects:
            self._perform(effect)
        return effects

    def run_on(self) -> None:
        """Answer what needs no choice, until nothing does."""
        while True:
            if self.wants_items and self.items_there():
                self.read()
            elif self.is_durable_at_once and self.durable < self.recorded:
                self.make_durable()
            elif self.wants_engines and self.next_engine == 0:
                return
            else:
                return

    def items_there(self) -> bool:
        return bool(self.items) or not self.is_stream

    def read(self, count: int | None = None) -> None:
        count = min(count or self.wants_items, self.wants_items)
        given = [self.items.popleft() for _ in range(min(count, len(self.items)))]
        self.wants_items = 0
        self.step(ev.ItemsRead(given, not self.items and not self.is_stream))

    def make_durable(self, number: int | None = None) -> None:
        self.durable = self.recorded if number is None else number
        self.step(ev.RowsDurable(self.durable))

    def begin(self) -> Bench:
        """First step, and everything that follows by itself."""
        self.step()
        self.run_on()
        return self

    def engine(self, slots: int = 1, context: str = "local", running=()) -> FakeEngine:
        """An engine starts and joins."""
        engine = FakeEngine(self.next_engine, slots, context)
        self.next_engine += 1
        self.wants_engines = 0
        self.engines[engine.id] = engine
        engine.queue.extend(running)
        engine.was_opened = bool(running)
        self.step(ev.EngineStarting(engine.id, context))
        self.step(ev.EngineJoined(engine.id, f"n{engine.id}", slots, bool(running), running))
        self.run_on()
        return engine

    def end(self, engine: FakeEngine, *ids_or_codes, outcome=None, elapsed_s: float = 1.0) -> None:
        """Attempts of the engine end: task ids, or (task id, exit code)."""
        reports = []
        for one in ids_or_codes:
            task_id, code = one if isinstance(one, tuple) else (one, 0)
            attempt = next(a for a in engine.queue if a.task.id == task_id)
            engine.queue.remove(attempt)
            reports.append(Report(
                task_id, attempt.number, outcome or Exited(code), 77, self.at, elapsed_s
            ))
        engine.seq += 1
        self.step(ev.AttemptsEnded(engine.id, engine.seq, reports))
        self.run_on()

    def lose(self, engine: FakeEngine, reason: str = "it was killed") -> None:
        del self.engines[engine.id]
        self.step(ev.EngineLost(engine.id, reason))
        self.run_on()

    def stop(self, how: int = ev.SOFT, signal: int = 0) -> None:
        self.step(ev.StopAsked(how, "asked", signal))
        self.run_on()

    def pass_time(self, seconds: float) -> None:
        self.at += seconds
        self.step()
        self.run_on()

    def leave(self, engine: FakeEngine) -> None:
        """A closing engine that has nothing left says so."""
        assert engine.is_closing and not engine.queue
        del self.engines[engine.id]
        self.step(ev.EngineClosed(engine.id))
        self.run_on()

    # -- looking ------------------------------------------------------------------------

    def row_ids(self) -> list[int]:
        """Task ids of the status file's rows, barriers and skipped ones included."""
        return [self._row_id(entry) for entry in self.rows]

    @staticmethod
    def _row_id(entry) -> int:
        if isinstance(entry, fx.TaskEnded):
            return entry.task.id
        if isinstance(entry, fx.BarrierMet):
            return entry.barrier.id
        if isinstance(entry, fx.TasksSkipped):
            return entry.done.id
        return -1 - entry.command.number

    # -- performing ---------------------------------------------------------------------

    def _perform(self, effect) -> None:
        getattr(self, f"_on_{type(effect).__name__}")(effect)

    def _on_Record(self, effect) -> None:
        for entry in effect.entries:
            if isinstance(entry, fx.TaskEnded):
                self.attempts.append(entry)
                if not entry.settles:
                    continue
            self.rows.append(entry)
        self.recorded += len(effect.entries)
        assert effect.number == self.recorded

    def _on_Read(self, effect) -> None:
        self.wants_items = effect.count

    def _on_StartEngines(self, effect) -> None:
        self.wants_engines += 1

    def _on_OpenEngine(self, effect) -> None:
        engine = self.engines[effect.engine]
        assert not engine.was_opened, "an engine is opened once"
        engine.was_opened = True
        engine.commands = list(effect.commands)

    def _on_Assign(self, effect) -> None:
        engine = self.engines[effect.engine]
        assert engine.was_opened and not engine.is_closing
        engine.queue.extend(effect.attempts)
        self.started += [(a.task.id, a.number) for a in effect.attempts]

    def _on_Recall(self, effect) -> None:
        engine = self.engines.get(effect.engine)
        if engine is not None:
            engine.recall_asked = list(effect.task_ids)

    def _on_EndAttempts(self, effect) -> None:
        self.engines[effect.engine].end_asked = effect

    def _on_CloseEngine(self, effect) -> None:
        engine = self.engines[effect.engine]
        engine.is_closing = True
        engine.runs_stop = effect.runs_stop

    def _on_SetSlots(self, effect) -> None:
        self.engines[effect.engine].slots = effect.slots

    def _on_Acknowledge(self, effect) -> None:
        engine = self.engines.get(effect.engine)
        if engine is not None:
            engine.acknowledged = effect.seq

    def _on_MakeDurable(self, effect) -> None:
        pass

    def _on_WakeAt(self, effect) -> None:
        self.wake_at = effect.at

    def _on_Tell(self, effect) -> None:
        self.told.append(effect.text)

    def _on_LeaveAlone(self, effect) -> None:
        self.engines.pop(effect.engine, None)

    def _on_Finish(self, effect) -> None:
        assert self.verdict is None, "a run ends once"
        self.verdict = effect.verdict


__all__ = ["Bench", "Cancelled", "FakeEngine", "barrier", "done_before", "start_command",
           "stop_command", "task", "tasks"]
