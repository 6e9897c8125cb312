"""A driver and an engine as machines, over a link that loses everything when it breaks.

No process, no socket, no clock: a seed decides when messages arrive, when a task ends,
when the link breaks, when a driver dies and whether its machine dies with it. Tasks are
counted where they run, so that a second copy at one time cannot hide.

Messages go through the real codec of the link, so that what is lost is bytes.
"""

from __future__ import annotations

from collections import Counter, deque
from random import Random

from overnight.core import effects as fx
from overnight.core import engine_events as ee
from overnight.core import events as ev
from overnight.core.engine import Engine
from overnight.core.invariants import check
from overnight.core.kept import news
from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.core.slot_events import EndAsked, RecallAsked
from overnight.formats import rows
from overnight.model.messages import Setup
from overnight.model.outcome import Cancelled, Exited, Lost
from overnight.model.report import Report
from overnight.model.task import Barrier, DoneBefore, PerEngine, Task


def setup(generation: int, slots: int) -> Setup:
    return Setup(
        "sim", "sim", generation, 0, slots, 1, "/", [], False, 0.0, True, None, 2.0, None, [], "",
        1e9, driver=f"driver {generation}",
    )


class SimRunner:
    """Starts attempts in its slots and ends them when the world says so."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.slots: list[int] = []
        self.queue: deque = deque()
        self.running: dict = {}  # task id -> attempt

    def fill(self, world: World) -> None:
        while self.queue and len(self.running) < len(self.slots):
            attempt = self.queue.popleft()
            self.running[attempt.task.id] = attempt
            world.started(attempt)


class SimEngine:
    """The engine's machine, and its runners as values."""

    def __init__(self, world: World, redials: bool = False) -> None:
        self.world = world
        self.machine = Engine(core_count=4, most_slots_each=8, redials=redials)
        self.runners: dict[int, SimRunner] = {}
        self.is_connected = True
        self.is_listening = False
        self.has_left = False
        self.spool: list = []
        self.to_driver: deque = deque()
        self.owed: deque = deque()  # events this engine will have: answers of its own world

    def step(self, *events) -> None:
        for effect in self.machine.step(events, self.world.at):
            getattr(self, f"on_{type(effect).__name__}")(effect)
        for runner in self.runners.values():
            runner.fill(self.world)

    def say(self, kind: str, payload) -> None:
        if self.is_connected:
            self.to_driver.append((kind, payload))

    # -- effects towards the driver ------------------------------------------------------

    def on_SayEnded(self, effect) -> None:
        self.say("ended", rows.encode_reports(effect.sequence, [r for _, r in effect.pairs]))

    def on_SayKept(self, effect) -> None:
        self.say("kept", rows.encode_kept(effect.sequence, effect.pairs))

    def on_SayCommandsEnded(self, effect) -> None:
        self.say("commands", rows.encode_per_engine_reports(effect.sequence, effect.rows))

    def on_SayOpened(self, effect) -> None:
        self.say("opened", None)

    def on_SayRecalled(self, effect) -> None:
        self.say("recalled", rows.encode_ids(effect.ids))

    def on_SayTaken(self, effect) -> None:
        self.say("taken", rows.encode_ids(effect.ids))

    def on_SayClosed(self, effect) -> None:
        self.say("closed", None)

    def on_Refuse(self, effect) -> None:
        raise AssertionError("a newer driver was refused")

    # -- effects towards the runners -------------------------------------------------------

    def on_StartRunner(self, effect) -> None:
        self.runners[effect.runner] = SimRunner(effect.runner)

    def on_SetUpRunners(self, effect) -> None:
        pass

    def on_GiveSlots(self, effect) -> None:
        runner = self.runners[effect.runner]
        released = [slot for slot in runner.slots if slot not in effect.slots]
        runner.slots = list(effect.slots)
        if released:
            self.owed.append(ee.SlotsReleased(runner.id, released))

    def on_Give(self, effect) -> None:
        self.runners[effect.runner].queue.extend(effect.attempts)

    def on_RunCommand(self, effect) -> None:
        report = Report(effect.command.number, 1, Exited(0), 7, self.world.at, 0.1)
        self.owed.append(ee.CommandEnded(effect.runner, report))
        self.world.commands[(effect.command.at_start, effect.command.number)] += 1

    def on_TakeBack(self, effect) -> None:
        runner = self.runners[effect.runner]
        ids = [a.task.id for a in runner.queue if a.task.id in effect.ids]
        runner.queue = deque(a for a in runner.queue if a.task.id not in ids)
        self.owed.append(ee.HandedBack(runner.id, ids))

    def on_PassEnd(self, effect) -> None:
        runner = self.runners[effect.runner]
        ids = [a.task.id for a in runner.queue]
        runner.queue.clear()
        self.owed.append(ee.HandedBack(runner.id, ids))
        for task_id in list(runner.running):
            self.end_attempt(runner, task_id, Cancelled(-15, effect.request.reason))

    def on_EndOrphans(self, effect) -> None:
        runner = self.runners[effect.runner]
        for attempt in runner.running.values():
            self.world.ended(attempt)
        runner.running.clear()
        runner.queue.clear()
        self.owed.append(ee.OrphansEnded(runner.id, self.world.at))

    def end_attempt(self, runner: SimRunner, task_id: int, outcome) -> None:
        attempt = runner.running.pop(task_id)
        self.world.ended(attempt)
        report = Report(task_id, attempt.number, outcome, 100 + task_id, self.world.at, 0.01)
        self.owed.append(ee.AttemptsEnded(runner.id, [report]))

    # -- effects towards itself ------------------------------------------------------------

    def on_Keep(self, effect) -> None:
        self.spool += effect.pairs
        self.owed.append(ee.Kept(effect.sequence))

    def on_KeepCommands(self, effect) -> None:
        self.owed.append(ee.Kept(effect.sequence))

    def on_ForgetSpool(self, effect) -> None:
        self.spool.clear()

    def on_Listen(self, effect) -> None:
        self.is_listening = True

    def on_StopListening(self, effect) -> None:
        self.is_listening = False

    def on_Leave(self, effect) -> None:
        assert not any(r.running or r.queue for r in self.runners.values()), \
            "an engine leaves nothing running"
        self.has_left = True


class SimDriver:
    """The scheduler, its record as values, and its end of the link."""

    def __init__(self, world: World, generation: int) -> None:
        self.world = world
        self.generation = generation
        self.scheduler = Scheduler(Policy(gives_out_lost=True))
        self.items = deque(world.items_left())
        self.wants_items = 0
        self.to_engine: deque = deque()
        self.events: deque = deque()
        self.verdict = None
        self.engine_id = -1
        self.commands: list[PerEngine] = []
        self.recorded = 0
        self.pending_durable = 0
        self.joins = None  # the event for an engine that is being attached

    def step(self, *events) -> None:
        effects = self.scheduler.step(self.world.at, events)
        check(self.scheduler)
        for effect in effects:
            handler = getattr(self, f"on_{type(effect).__name__}", None)
            if handler is not None:
                handler(effect)

    def join(self, engine: SimEngine) -> None:
        """What the driver's end of an engine does with HELLO and RUNNING."""
        self.engine_id += 1
        machine = engine.machine
        self.joins = ev.EngineJoined(
            self.engine_id, "n", self.world.slots, machine.has_started, machine.in_hand(),
            machine.is_closing,
        )
        self.kept = []
        is_survivor = machine.generation > 0
        self.step(ev.EngineStarting(self.engine_id, "sim", is_survivor=is_survivor))
        if machine.generation == 0:
            self.join_when_whole()

    def join_when_whole(self) -> None:
        if self.joins is not None:
            joins, self.joins = self.joins, None
            reports = [e for e in self.kept if isinstance(e, ev.KeptReports)]
            for event, pairs in zip(
                reports, news([e.pairs for e in reports], self.world.row_started_at), strict=True
            ):
                event.pairs = pairs
            self.step(*self.kept, joins)

    def after_kept(self, event) -> None:
        if self.joins is None:
            self.step(event)
        else:
            self.kept.append(event)

    def hear(self, kind: str, payload) -> None:
        engine = self.engine_id
        if kind == "ended":
            self.step(ev.AttemptsEnded(engine, *rows.decode_reports(payload)))
        elif kind == "kept":
            seq, pairs = rows.decode_kept(payload)
            self.after_kept(ev.KeptReports(engine, seq, pairs, "n", 0))
        elif kind == "commands":
            seq, reports = rows.decode_per_engine_reports(payload)
            pairs = [(PerEngine(at_start, r.task_id, 1, b"c"), r) for at_start, r in reports]
            self.after_kept(ev.PerEngineEnded(engine, seq, pairs))
        elif kind == "taken":
            in_hand = rows.decode_ids(payload)
            self.joins.running = [a for a in self.joins.running if a.task.id in in_hand]
            self.join_when_whole()
        elif kind == "opened":
            self.step(ev.EngineOpened(engine))
        elif kind == "recalled":
            self.step(ev.AttemptsRecalled(engine, rows.decode_ids(payload)))
        else:
            self.step(ev.EngineClosed(engine))

    def on_Record(self, effect) -> None:
        for entry in effect.entries:
            self.world.write(entry)
        self.recorded = effect.number

    def on_Read(self, effect) -> None:
        self.wants_items = effect.count

    def on_StartEngines(self, effect) -> None:
        """On the one node, if no engine is there already."""
        self.world.wants_engine = self.scheduler.pool.get(self.engine_id) is None

    def on_OpenEngine(self, effect) -> None:
        self.to_engine.append(lambda e: e.step(ee.CommandsGiven(effect.commands)))

    def on_Assign(self, effect) -> None:
        payload = rows.encode_attempts(effect.attempts)
        self.to_engine.append(lambda e: e.step(ee.Assigned(rows.decode_attempts(payload))))

    def on_Recall(self, effect) -> None:
        self.to_engine.append(lambda e: e.step(RecallAsked(list(effect.task_ids))))

    def on_EndAttempts(self, effect) -> None:
        self.to_engine.append(lambda e: e.step(EndAsked(None, effect.reason)))

    def on_CloseEngine(self, effect) -> None:
        self.to_engine.append(lambda e: e.step(ee.CloseAsked(effect.runs_stop)))

    def on_Acknowledge(self, effect) -> None:
        if effect.engine == self.engine_id:
            self.to_engine.append(lambda e: e.step(ee.Acknowledged(effect.seq)))
        elif effect.engine in self.world.closed:
            self.world.closed[effect.engine].step(ee.Acknowledged(effect.seq))

    def on_Finish(self, effect) -> None:
        self.verdict = effect.verdict


class World:
    """One seed's course of events."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = Random(seed)
        self.at = 1000.0
        self.slots = self.random.randint(1, 5)
        self.items = self._make_items(count)
        self.rows: list = []  # of the status file, over all drivers
        self.durable_rows = 0
        self.running: Counter = Counter()  # executions of a task at this moment
        self.executions: Counter = Counter()
        self.excused: set[int] = set()  # tasks whose runner or engine died: may run again
        self.commands: Counter = Counter()
        self.wants_engine = False
        self.spools: list = []  # of engines that have left
        self.closed: dict[int, SimEngine] = {}  # that wait for their last acknowledgement, by id
        self.engine: SimEngine | None = None
        self.driver: SimDriver | None = SimDriver(self, 1)
        self.generation = 1
        self.crashes_left = self.random.randint(0, 4)
        self.runner_deaths_left = self.random.randint(0, 2)
        self.driver.step()

    def _make_items(self, count: int) -> list:
        items: list = []
        if self.random.random() < 0.5:
            items.append(PerEngine(True, 0, 1, b"start"))
            items.append(PerEngine(False, 0, 2, b"stop"))
        for id in range(count):
            if self.random.random() < 0.1:
                items.append(Barrier(id, id + 1, b"#DISBATCH BARRIER", None, False))
            else:
                items.append(Task(id, id + 1, -1, b"t%d" % id))
        return items

    # -- what is true of the disk ---------------------------------------------------------

    def write(self, entry) -> None:
        self.rows.append(entry)

    def settled(self) -> dict[int, int]:
        """Exit code by task id, of the rows that a resume would find."""
        return {
            entry.task.id: entry.report.outcome.code for entry in self.rows
            if isinstance(entry, fx.TaskEnded) and entry.settles and not entry.is_cut
        }

    def row_started_at(self, task_id: int) -> float | None:
        return max((
            e.report.started_at for e in self.rows
            if isinstance(e, fx.TaskEnded) and e.settles and e.task.id == task_id
        ), default=None)

    def items_left(self) -> list:
        """The list as a resumed driver reads it."""
        settled = self.settled()
        return [
            DoneBefore(item.id, item.line, 1, settled[item.id], b"")
            if isinstance(item, Task) and item.id in settled else item
            for item in self.items
        ]

    # -- what is true of the tasks ----------------------------------------------------------

    def started(self, attempt) -> None:
        id = attempt.task.id
        self.running[id] += 1
        self.executions[id] += 1
        assert self.running[id] == 1, f"two copies of task {id} at one time"

    def ended(self, attempt) -> None:
        self.running[attempt.task.id] -= 1

    # -- the course of events -----------------------------------------------------------------

    def play(self) -> None:
        for _ in range(20000):
            if self.driver is not None and self.driver.verdict is not None:
                return
            self.at += self.random.random() * 0.01
            self.random.choice(self.moves())()
        raise AssertionError("the run does not end")

    def moves(self) -> list:
        moves = [self.tick]
        if self.driver is not None:
            moves += self.driver_moves(self.driver)
            if self.crashes_left:
                moves += [self.maybe_crash]
        else:
            moves += [self.resume]
        if self.engine is not None and not self.engine.has_left:
            moves += self.engine_moves(self.engine)
        return moves

    def driver_moves(self, driver: SimDriver) -> list:
        moves = []
        if driver.wants_items:
            moves.append(self.read)
        if driver.recorded > driver.pending_durable:
            moves.append(self.flush)
        if self.wants_engine:
            moves.append(self.start_engine)
        engine = self.engine
        if engine is not None and engine.has_left and driver.joins is not None:
            moves += [self.collect_unjoined] * 4
        if engine is not None:
            if driver.to_engine and engine.is_connected and not engine.has_left:
                moves += [self.deliver_to_engine] * 4
            if engine.to_driver and engine.is_connected:
                moves += [self.deliver_to_driver] * 4
        return moves

    def engine_moves(self, engine: SimEngine) -> list:
        moves = []
        if engine.owed:
            moves += [lambda: engine.step(engine.owed.popleft())] * 4
        busy = [(r, id) for r in engine.runners.values() for id in r.running]
        if busy:
            runner, task_id = self.random.choice(busy)
            moves += [lambda: self.end_task(engine, runner, task_id)] * 2
        if self.runner_deaths_left and busy:
            moves.append(lambda: self.maybe_kill_runner(engine, busy[0][0]))
        return moves

    def tick(self) -> None:
        self.at += 0.05
        if self.driver is not None:
            self.driver.step()
        if self.engine is not None and not self.engine.has_left:
            self.engine.step()

    def read(self) -> None:
        driver = self.driver
        count = min(driver.wants_items, self.random.randint(1, 8), len(driver.items))
        given = [driver.items.popleft() for _ in range(count)]
        driver.wants_items = 0
        driver.step(ev.ItemsRead(given, not driver.items))

    def flush(self) -> None:
        self.durable_rows = len(self.rows)
        self.driver.pending_durable = self.driver.recorded
        self.driver.step(ev.RowsDurable(self.driver.recorded))

    def start_engine(self) -> None:
        self.wants_engine = False
        self.retire()
        self.engine = SimEngine(self)
        self.connect()

    def retire(self) -> None:
        """Another engine comes in place of one that has closed and keeps reports."""
        if self.engine is not None and not self.engine.has_left:
            self.closed[self.driver.engine_id] = self.engine

    def connect(self) -> None:
        engine, driver = self.engine, self.driver
        engine.is_connected = True
        driver.to_engine.clear()
        engine.to_driver.clear()
        driver.join(engine)
        setting_up = ee.SetUp(setup(driver.generation, self.slots))
        driver.to_engine.append(lambda e: e.step(setting_up))

    def collect_unjoined(self) -> None:
        """The engine left while it was being attached: its link ends, its spool is read."""
        driver, engine = self.driver, self.engine
        self.spools.append(engine.spool)
        self.engine = None
        driver.joins = None
        (new,) = news([engine.spool], self.row_started_at)
        driver.step(ev.KeptReports(-1, 0, new, "n", 0), ev.EngineLost(driver.engine_id, "left"))

    def deliver_to_engine(self) -> None:
        self.driver.to_engine.popleft()(self.engine)

    def deliver_to_driver(self) -> None:
        self.driver.hear(*self.engine.to_driver.popleft())

    def end_task(self, engine: SimEngine, runner: SimRunner, task_id: int) -> None:
        if task_id in runner.running:
            engine.end_attempt(runner, task_id, Exited(0))

    def maybe_kill_runner(self, engine: SimEngine, runner: SimRunner) -> None:
        if self.random.random() < 0.2:
            self.runner_deaths_left -= 1
            known = engine.machine.runners.get(runner.id)
            if known is not None and not known.is_dead:
                self.excused.update(known.in_hand)
                engine.owed = deque(e for e in engine.owed if getattr(e, "runner", -1) != runner.id)
                engine.step(ee.RunnerDied(runner.id))

    def maybe_crash(self) -> None:
        """The driver dies; with its machine, rows that were not durable are gone."""
        if self.random.random() > 0.03:
            return
        self.crashes_left -= 1
        self.driver = None
        if self.random.random() < 0.5:
            del self.rows[self.durable_rows:]
        self.durable_rows = len(self.rows)
        for engine in self.closed.values():
            engine.step(ee.DriverGone())
            while engine.owed:
                engine.step(engine.owed.popleft())
            self.spools.append(engine.spool)
        self.closed.clear()
        if self.engine is not None and not self.engine.has_left:
            self.engine.is_connected = False
            self.engine.to_driver.clear()
            self.engine.step(ee.DriverGone())

    def resume(self) -> None:
        """A new driver: it attaches the engine if that lives, else reads its spool."""
        self.generation += 1
        self.wants_engine = False
        self.driver = SimDriver(self, self.generation)
        engine = self.engine
        if engine is not None and not engine.has_left:
            self.connect()
        elif engine is not None:
            self.spools.append(engine.spool)  # read again by every driver until the end
            self.engine = None
        for spool in self.spools:
            (new,) = news([spool], self.row_started_at)
            self.driver.step(ev.KeptReports(-1, 0, new, "n", 0))
        self.driver.step()

    # -- promises ---------------------------------------------------------------------------

    def check(self) -> None:
        tasks = [item for item in self.items if isinstance(item, Task)]
        counts = Counter(
            e.task.id for e in self.rows if isinstance(e, fx.TaskEnded) and e.settles
        )
        for task in tasks:
            assert counts[task.id] == 1, f"task {task.id} has {counts[task.id]} rows"
            if task.id not in self.excused:
                assert self.executions[task.id] == 1, \
                    f"task {task.id} was run {self.executions[task.id]} times"
        assert self.driver.verdict.ending == "complete"
        lost = [e for e in self.rows if isinstance(e, fx.TaskEnded)
                and isinstance(e.report.outcome, Lost)]
        assert all(e.task.id in self.excused for e in lost)
