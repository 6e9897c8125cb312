"""Random histories: whatever engines, records and users do, the promises hold."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from overnight.core import effects as fx
from overnight.core import events as ev
from overnight.core import verdict as v
from overnight.core.policy import Policy
from overnight.model.outcome import Cancelled, Exited
from overnight.model.task import Barrier, Task
from tests.core.scheduler_kit import Bench, barrier, done_before, start_command, stop_command, task

KINDS = ["task"] * 6 + ["barrier", "check", "done"]


@st.composite
def lists(draw) -> list:
    items = []
    if draw(st.booleans()):
        items.append(start_command())
    if draw(st.booleans()):
        items.append(stop_command())
    for id, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), max_size=25))):
        if kind == "task":
            items.append(task(id))
        elif kind == "done":
            items.append(done_before(id, draw(st.sampled_from([0, 0, 1]))))
        else:
            items.append(barrier(id, checks=kind == "check"))
    return items


policies = st.builds(
    Policy,
    max_failures=st.sampled_from([None, None, None, 1, 3]),
    retries=st.sampled_from([0, 0, 2]),
    crash_limit=st.sampled_from([1, 3]),
    gives_out_lost=st.booleans(),
    task_limit=st.sampled_from([0, 0, 0, 4]),
    delay_s=st.sampled_from([0.0, 0.0, 1.5]),
)


class History:
    """One random course of a run: what may happen next is drawn; what did is checked."""

    def __init__(self, draw, items, policy) -> None:
        self.draw = draw
        self.items = list(items)
        self.bench = Bench(items, policy)
        self.bench.is_durable_at_once = False
        self.recall_counts: Counter = Counter()
        self.has_fault = False

    def play(self, steps: int) -> None:
        self.bench.step()
        for _ in range(steps):
            if self.bench.verdict is not None:
                return
            moves = self.moves()
            self.draw(st.sampled_from(moves))()
        self.bring_to_an_end()

    def moves(self) -> list:
        bench = self.bench
        moves = [lambda: bench.pass_time(1.0)]
        if bench.wants_items:
            moves.append(lambda: bench.read(self.draw(st.integers(1, 8))))
        if bench.durable < bench.recorded and not self.has_fault:
            moves.append(lambda: bench.make_durable(
                self.draw(st.integers(bench.durable + 1, bench.recorded))))
        if bench.wants_engines or (bench.engines and len(bench.engines) < 3):
            moves.append(lambda: bench.engine(self.draw(st.integers(1, 4))))
        moves.append(lambda: self.set_fault(not self.has_fault))
        for engine in list(bench.engines.values()):
            moves += self.moves_of(engine)
        moves.append(lambda: self.maybe_stop())
        return moves

    def moves_of(self, engine) -> list:
        bench, moves = self.bench, []
        if engine.commands and not getattr(engine, "said_open", False):
            moves.append(lambda: self.open(engine))
        if engine.queue:
            moves += [lambda: self.end_some(engine)] * 3
        if getattr(engine, "recall_asked", None):
            moves.append(lambda: self.answer_recall(engine))
        if getattr(engine, "end_asked", None) and engine.queue:
            moves.append(lambda: self.cut_all(engine))
        if engine.is_closing and not engine.queue:
            moves.append(lambda: bench.leave(engine))
        moves.append(lambda: self.maybe_lose(engine))
        return moves

    def open(self, engine) -> None:
        engine.said_open = True
        self.bench.step(ev.EngineOpened(engine.id))

    def end_some(self, engine) -> None:
        running = engine.running()
        count = self.draw(st.integers(1, len(running)))
        codes = [self.draw(st.sampled_from([0, 0, 0, 1])) for _ in range(count)]
        elapsed = self.draw(st.sampled_from([0.001, 0.5]))
        self.bench.end(engine, *[(a.task.id, c) for a, c in zip(running, codes, strict=False)],
                       elapsed_s=elapsed)

    def answer_recall(self, engine) -> None:
        not_started = [a for a in list(engine.queue)[engine.slots:]
                       if a.task.id in engine.recall_asked]
        engine.recall_asked = None
        for attempt in not_started:
            engine.queue.remove(attempt)
            self.recall_counts[(attempt.task.id, attempt.number)] += 1
        self.bench.step(ev.AttemptsRecalled(engine.id, [a.task.id for a in not_started]))

    def cut_all(self, engine) -> None:
        self.bench.end(engine, *[a.task.id for a in engine.running()],
                       outcome=Cancelled(-15, "asked"))

    def maybe_lose(self, engine) -> None:
        if self.draw(st.integers(0, 9)) == 0:
            self.bench.lose(engine)

    def maybe_stop(self) -> None:
        if self.draw(st.integers(0, 19)) == 0:
            self.bench.stop(self.draw(st.sampled_from([ev.SOFT, ev.END])))

    def set_fault(self, has_fault: bool) -> None:
        if has_fault and self.draw(st.integers(0, 4)):
            return
        self.has_fault = has_fault
        self.bench.step(ev.RecordFailed("full") if has_fault else ev.RecordMended())

    def bring_to_an_end(self) -> None:
        """Everything answers from now on; then the run must end by itself."""
        bench = self.bench
        if self.has_fault:
            self.has_fault = False
            bench.step(ev.RecordMended())
        for _ in range(300):
            if bench.verdict is not None:
                return
            self.answer_everything()
        scheduler = bench.scheduler
        raise AssertionError(
            f"the run does not end: backlog {scheduler.backlog}, ready {scheduler.ready},"
            f" waiting {scheduler.waiting}, engines {[vars(e) for e in bench.engines.values()]},"
            f" states {[(e.id, e.state) for e in scheduler.pool]}, stop {scheduler.stop}"
        )

    def answer_everything(self) -> None:
        bench = self.bench
        if bench.wants_items:
            bench.read()
        if bench.durable < bench.recorded:
            bench.make_durable()
        if bench.wants_engines and not bench.engines:
            bench.engine(2)
        for engine in list(bench.engines.values()):
            if engine.commands and not getattr(engine, "said_open", False):
                self.open(engine)
            if getattr(engine, "recall_asked", None):
                self.answer_recall(engine)
            if engine.queue:
                bench.end(engine, *[a.task.id for a in engine.running()],
                          outcome=Exited(0))
            elif engine.is_closing and engine.id in bench.engines:
                bench.leave(engine)
        bench.pass_time(60.0)

    # -- promises ---------------------------------------------------------------------

    def check(self) -> None:
        self.check_one_row_each()
        self.check_barriers()
        self.check_attempts()
        self.check_verdict()

    def check_one_row_each(self) -> None:
        counts = Counter(id for id in self.bench.row_ids() if id >= 0)
        assert all(count == 1 for count in counts.values()), "one row per task"

    def check_barriers(self) -> None:
        """Rows before a barrier in the list stand before it in the record; none behind does."""
        barrier_ids = [i.id for i in self.items if isinstance(i, Barrier)]
        position = {id: n for n, id in enumerate(self.bench.row_ids())}
        for barrier_id in barrier_ids:
            if barrier_id not in position:
                later = [id for id in position if id > barrier_id]
                assert not later, "nothing behind a barrier before it is met"
                assert not [s for s in self.bench.started if s[0] > barrier_id]
                continue
            for id, place in position.items():
                if id >= 0 and id != barrier_id:
                    assert (place < position[barrier_id]) == (id < barrier_id)

    def check_attempts(self) -> None:
        """What was started was recorded once, or handed back."""
        recorded = Counter((e.task.id, e.report.attempt) for e in self.bench.attempts)
        assert all(count == 1 for count in recorded.values()), "one line per attempt"
        given = Counter(self.bench.started)
        for attempt, count in given.items():
            assert count == recorded[attempt] + self.recall_counts[attempt]

    def check_verdict(self) -> None:
        verdict = self.bench.verdict
        settled = set(self.bench.row_ids())
        cut = {e.task.id for e in self.bench.rows
               if isinstance(e, fx.TaskEnded) and e.is_cut}
        missing = [i for i in self.items if isinstance(i, Task) and i.id not in settled]
        if verdict.ending == v.COMPLETE:
            assert not missing, "a complete run has a row for every task"
        if missing or cut:
            assert verdict.has_tasks_left, "what was not run is said to be left"


@settings(max_examples=300, deadline=None)
@given(st.data(), lists(), policies)
def test_no_history_breaks_a_promise(data, items, policy):
    history = History(data.draw, items, policy)
    history.play(steps=60)
    history.check()
