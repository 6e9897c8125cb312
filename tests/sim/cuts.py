"""The same world with an engine that has joined from elsewhere: its link is cut, it calls again.

A cut loses what is on its way. Each end notices it in its own time, the driver at the latest
when the engine calls; the same driver takes it back.
"""

from __future__ import annotations

from overnight.core import engine_events as ee
from overnight.core import events as ev
from overnight.core.kept import news
from overnight.formats import rows
from overnight.model.task import PerEngine
from tests.sim.world import SimDriver, SimEngine, World, setup


class CutDriver(SimDriver):
    """A driver that takes back an engine whose link was cut."""

    def __init__(self, world: World, generation: int) -> None:
        super().__init__(world, generation)
        self.returns: tuple[bool, bool] | None = None  # of HELLO: has started, is closing
        self.told_commands: set[tuple[bool, int]] = set()

    def join(self, engine: SimEngine) -> None:
        self.returns = None
        super().join(engine)

    def take_back(self, engine: SimEngine) -> None:
        machine = engine.machine
        self.returns = (machine.has_started, machine.is_closing)

    def hear(self, kind: str, payload) -> None:
        if kind == "commands":
            seq, reports = rows.decode_per_engine_reports(payload)
            new = [(a, r) for a, r in reports if (a, r.task_id) not in self.told_commands]
            self.told_commands.update((a, r.task_id) for a, r in reports)
            pairs = [(PerEngine(at_start, r.task_id, 1, b"c"), r) for at_start, r in new]
            self.after_kept(ev.PerEngineEnded(self.engine_id, seq, pairs))
        elif self.returns is not None and kind == "kept":
            seq, kept = rows.decode_kept(payload)
            self.step(ev.AttemptsEnded(self.engine_id, seq, [report for _, report in kept]))
        elif self.returns is not None and kind == "taken":
            returns, self.returns = self.returns, None
            self.step(ev.EngineReturned(self.engine_id, rows.decode_ids(payload), *returns))
        elif kind == "taken" and self.joins is None:
            pass  # no driver had ever set it up: it joined as a new one does
        else:
            super().hear(kind, payload)


class CutWorld(World):
    """One seed's course of events, with cuts."""

    def __init__(self, seed: int, count: int) -> None:
        super().__init__(seed, count)
        self.driver = CutDriver(self, 1)
        self.wants_engine = False
        self.driver.step()
        self.cuts_left = self.random.randint(0, 8)
        self.engine_notices = self.driver_notices = False  # what each end has yet to notice
        self.is_cut = False

    def moves(self) -> list:
        moves = super().moves()
        engine = self.engine
        if engine is None or engine.has_left:
            if self.is_cut and self.driver is not None and engine is not None:
                moves += [self.prove_gone] * 4
            return moves
        if engine.is_connected and self.cuts_left and self.driver is not None:
            moves.append(self.maybe_cut)
        if self.engine_notices:
            moves += [self.notice_at_engine] * 2
        if self.driver_notices and self.driver is not None:
            moves += [self.notice_at_driver]
        if self.is_cut and not self.engine_notices and self.driver is not None:
            moves += [self.redial] * 2
        return moves

    def start_engine(self) -> None:
        self.wants_engine = False
        self.retire()
        self.engine = SimEngine(self, redials=True)
        self.is_cut = self.engine_notices = self.driver_notices = False
        self.connect()

    def maybe_cut(self) -> None:
        if self.random.random() > 0.15:
            return
        self.cuts_left -= 1
        self.engine.is_connected = False
        self.engine.to_driver.clear()
        self.driver.to_engine.clear()
        self.is_cut = self.engine_notices = self.driver_notices = True

    def notice_at_engine(self) -> None:
        self.engine_notices = False
        self.engine.step(ee.DriverGone())

    def notice_at_driver(self) -> None:
        self.driver_notices = False
        if self.driver.joins is None:
            self.driver.step(ev.EngineCutOff(self.driver.engine_id, "cut"))

    def redial(self) -> None:
        engine, driver = self.engine, self.driver
        if self.driver_notices:
            # Whoever calls again has been cut off. The scheduler has to know before the new
            # link is used: what it gave in between would be taken for what was never started.
            self.notice_at_driver()
        self.is_cut = False
        driver.to_engine.clear()
        engine.to_driver.clear()
        engine.is_connected = True
        if driver.joins is not None:  # it was cut before it had joined this driver
            joins = driver.joins
            joins.running = engine.machine.in_hand()
            joins.is_open, joins.is_closing = engine.machine.has_started, engine.machine.is_closing
            driver.kept = []
        else:
            driver.take_back(engine)
        setting_up = ee.SetUp(setup(driver.generation, self.slots))
        driver.to_engine.append(lambda e: e.step(setting_up))

    def prove_gone(self) -> None:
        """It left while it was cut off, and its machine says so."""
        self.is_cut = False
        driver, engine = self.driver, self.engine
        self.engine = None
        if engine.machine.setup is None:  # it never had a word of any driver
            held = driver.scheduler.pool.get(driver.engine_id)
            self.excused.update(held.held if held is not None else ())  # nobody knows: lost
            driver.step(ev.EngineLost(driver.engine_id, "it left"))
            return
        self.spools.append(engine.spool)
        (new,) = news([engine.spool], self.row_started_at)
        driver.step(ev.KeptReports(-1, 0, new, "n", 0), ev.EngineLost(driver.engine_id, "left"))

    def maybe_crash(self) -> None:
        before = self.driver
        super().maybe_crash()
        if self.driver is not before:
            self.is_cut = self.engine_notices = self.driver_notices = False

    def resume(self) -> None:
        self.generation += 1
        self.wants_engine = False
        self.driver = CutDriver(self, self.generation)
        engine = self.engine
        if engine is not None and not engine.has_left:
            self.connect()
        elif engine is not None:
            self.spools.append(engine.spool)
            self.engine = None
        for spool in self.spools:
            (new,) = news([spool], self.row_started_at)
            self.driver.step(ev.KeptReports(-1, 0, new, "n", 0))
        self.driver.step()
