"""A world for an engine's machine: runners with real machines, links as queues, no processes.

Messages wait until they are delivered, one at a time; processes end when the test says
so. What must hold whatever the order is checked as it happens.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overnight.core import engine_events as e
from overnight.core import slot_events as s
from overnight.core.engine import OPEN, Engine
from overnight.core.slots import Slots
from overnight.model.attempt import Attempt
from overnight.model.messages import PER_ENGINE_SLOT, Setup
from overnight.model.report import Report
from overnight.model.task import NO_REPEAT, PerEngine, Task
from tests.core.slots_kit import attempt, check_slots

if TYPE_CHECKING:
    from overnight.core.engine_events import Effect, Event


def setup(generation: int = 1, slots: int = 2, **changes: object) -> Setup:
    values: dict[str, object] = {
        "run": "run", "name_tasks": "Tasks", "generation": generation, "rank": 0,
        "slots": slots, "cores_per_task": 1, "cwd": "/", "variables": [],
        "always_shell": False, "late_output_s": 5.0, "leaves_children": True,
        "timeout_s": None, "kill_after_s": 2.0, "output_dir": None, "spools": ["/spool"],
        "attach": "/attach", "keep_reports_s": 60.0,
    }
    return Setup(**(values | changes))  # type: ignore[arg-type]


def start_command(number: int = 0) -> PerEngine:
    return PerEngine(True, number, 1, b"start")


def stop_command(number: int = 0) -> PerEngine:
    return PerEngine(False, number, 2, b"stop")


class FakeRunner:
    """A runner without processes; its shells end when the test says so."""

    def __init__(self, id: int, world: World) -> None:
        self.id = id
        self.world = world
        self.slots = Slots()
        self.inbox: deque[Any] = deque()
        self.outbox: deque[Any] = deque()
        self.shells: dict[int, Attempt] = {}
        self.is_dead = False

    def take(self, *events: Any) -> None:
        for effect in self.slots.step(events, self.world.at):
            self._perform(effect)
        check_slots(self.slots)

    def _perform(self, effect: object) -> None:
        if isinstance(effect, s.Start):
            self.shells[effect.slot] = effect.attempt
            if effect.slot != PER_ENGINE_SLOT:
                self.world.note_start(effect.attempt)
        elif isinstance(effect, s.Finish):
            task = effect.attempt.task
            report = Report(task.id, effect.attempt.number, effect.outcome, 1, 0.0, 0.001)
            if effect.slot == PER_ENGINE_SLOT:
                self.outbox.append(e.CommandEnded(self.id, report))
            else:
                self.outbox.append(e.AttemptsEnded(self.id, [report]))
        elif isinstance(effect, s.EndTree):
            self.shells.pop(effect.slot)
            self.inbox.append(s.ShellEnded(effect.slot, -effect.signal))
        elif isinstance(effect, s.HandBack):
            self.outbox.append(e.HandedBack(self.id, effect.ids))
        elif isinstance(effect, s.Release):
            self.outbox.append(e.SlotsReleased(self.id, effect.slots))

    def end_shell(self, slot: int, code: int = 0) -> None:
        del self.shells[slot]
        self.take(s.ShellEnded(slot, code))

    def held_slots(self) -> set[int]:
        """Slots it may be using, without the one beside the others."""
        return (self.slots._own | set(self.slots.occupied)) - {PER_ENGINE_SLOT}


class World:
    """An engine, its runners, and the driver it has at the time.

    Attributes:
        said: What the engine has asked for, as names with numbers, in order.
        batches: Attempts reported, by sequence number.
        safe: Sequence numbers that a driver has acknowledged or a spool holds.
    """

    def __init__(self, core_count: int = 2, most_slots_each: int = 8) -> None:
        self.engine = Engine(core_count, most_slots_each)
        self.at = 100.0
        self.runners: dict[int, FakeRunner] = {}
        self.has_driver = True
        self.said: list[tuple[object, ...]] = []
        self.batches: dict[int, list[tuple[int, int]]] = {}
        self.command_batches: dict[int, list[tuple[bool, int]]] = {}
        self.safe: set[int] = set()
        self.to_keep: deque[int] = deque()
        self.recalled: Counter[int] = Counter()
        self.started: Counter[tuple[int, int]] = Counter()
        self.orphaned: deque[int] = deque()
        self.given_up: set[int] = set()  # not started when there was no driver: not ours any more
        self.last_sequence = 0
        self.has_left = False

    # ---- verbs

    def tell(self, *events: Event) -> list[tuple[object, ...]]:
        """Let the engine hear of events; what it asks for in answer."""
        already = len(self.said)
        for effect in self.engine.step(events, self.at):
            self._perform(effect)
        self.check()
        return self.said[already:]

    def open(self, slots: int = 2, commands: Sequence[PerEngine] = (), **changes: object) -> None:
        """Bring it to where it takes attempts."""
        self.tell(e.SetUp(setup(slots=slots, **changes)), e.CommandsGiven(commands))
        self.run_until(lambda: self.engine.phase == OPEN)

    def assign(self, *ids: int) -> list[tuple[object, ...]]:
        return self.tell(e.Assigned([attempt(id) for id in ids]))

    def lose_driver(self) -> list[tuple[object, ...]]:
        self.has_driver = False
        self.given_up.update(each.task.id for each in self.engine.queue)
        return self.tell(e.DriverGone())

    def attach(self, generation: int, slots: int = 2) -> list[tuple[object, ...]]:
        self.has_driver = True
        return self.tell(e.SetUp(setup(generation, slots)))

    def acknowledge(self) -> list[tuple[object, ...]]:
        """Acknowledge all that the present driver was told."""
        sequences = [*self.batches, *self.command_batches]
        self.safe.update(each for each in sequences if each <= self.last_sequence)
        return self.tell(e.Acknowledged(self.last_sequence))

    def deliver_to(self, runner: FakeRunner) -> None:
        runner.take(runner.inbox.popleft())

    def deliver_from(self, runner: FakeRunner) -> list[tuple[object, ...]]:
        event = runner.outbox.popleft()
        if isinstance(event, e.HandedBack) and self.engine.is_alone:
            self.given_up.update(event.ids)
        return self.tell(event)

    def settle(self) -> None:
        """Deliver all messages; no process ends by itself."""
        while True:
            for runner in list(self.runners.values()):
                if runner.inbox and not runner.is_dead:
                    self.deliver_to(runner)
                    break
                if runner.outbox:
                    self.deliver_from(runner)
                    break
            else:
                return

    def run_until(self, is_true: Any) -> None:
        """Deliver messages and end shells until a condition holds."""
        for _ in range(2000):
            self.settle()
            if is_true():
                return
            if not self._end_a_shell():
                self.tell()
                break
        self.settle()
        assert is_true(), f"never came about: {self.said[-5:]}"

    def _end_a_shell(self) -> bool:
        for runner in self.runners.values():
            if runner.shells and not runner.is_dead:
                runner.end_shell(min(runner.shells))
                return True
        return False

    def kill_runner(self, runner: FakeRunner) -> None:
        """What it has said already is still read; then its end is seen."""
        runner.is_dead = True
        runner.inbox.clear()
        runner.outbox.append(e.RunnerDied(runner.id))

    def end_orphans(self) -> list[tuple[object, ...]]:
        return self.tell(e.OrphansEnded(self.orphaned.popleft(), 5.0))

    def write_spool(self) -> list[tuple[object, ...]]:
        sequence = self.to_keep.popleft()
        self.safe.add(sequence)
        return self.tell(e.Kept(sequence))

    # ---- what the engine asks for

    def _perform(self, effect: Effect) -> None:
        assert not self.has_left, f"asked for after leaving: {effect}"
        _PERFORM[type(effect)](self, effect)

    def _say(self, *what: object) -> None:
        self.said.append(what)

    def _to_driver(self, *what: object) -> None:
        assert self.has_driver, f"said to nobody: {what}"
        self._say(*what)

    def _batch(self, sequence: int, pairs: e.Pairs) -> list[int]:
        reported = [(a.task.id, r.attempt) for a, r in pairs]
        assert self.batches.setdefault(sequence, reported) == reported, "a batch has changed"
        return [id for id, _ in reported]

    def _command_batch(self, sequence: int, rows: e.CommandRows) -> list[tuple[bool, int]]:
        reported = [(at_start, r.task_id) for at_start, r in rows]
        assert self.command_batches.setdefault(sequence, reported) == reported
        return reported

    def _say_reports(self, effect: Any) -> None:
        words = "ended" if isinstance(effect, e.SayEnded) else "kept"
        self.last_sequence = max(self.last_sequence, effect.sequence)
        self._to_driver(words, *self._batch(effect.sequence, effect.pairs))

    def _say_commands(self, effect: e.SayCommandsEnded) -> None:
        self.last_sequence = max(self.last_sequence, effect.sequence)
        self._to_driver("commands", *self._command_batch(effect.sequence, effect.rows))

    def _say_recalled(self, effect: e.SayRecalled) -> None:
        self.recalled.update(effect.ids)
        self._to_driver("recalled", *effect.ids)

    def _keep(self, effect: Any) -> None:
        if isinstance(effect, e.Keep):
            self._batch(effect.sequence, effect.pairs)
        else:
            self._command_batch(effect.sequence, effect.rows)
        self.to_keep.append(effect.sequence)
        self._say("keep", effect.sequence)

    def _start_runner(self, effect: e.StartRunner) -> None:
        self.runners[effect.runner] = FakeRunner(effect.runner, self)
        self._say("start runner", effect.runner)

    def _set_up_runners(self, effect: e.SetUpRunners) -> None:
        for runner in self.runners.values():
            self._post(runner.id, s.LimitsSet(s.Limits()))

    def _post(self, runner: int, event: object) -> None:
        if not self.runners[runner].is_dead:
            self.runners[runner].inbox.append(event)

    def _give_slots(self, effect: e.GiveSlots) -> None:
        self._post(effect.runner, s.SlotsSet(effect.slots))
        self._say("slots", effect.runner, *effect.slots)

    def _give(self, effect: e.Give) -> None:
        assert not self.engine.is_alone, "given without a driver"
        self._post(effect.runner, s.AttemptsGiven(effect.attempts))
        self._say("give", effect.runner, *[each.task.id for each in effect.attempts])

    def _run_command(self, effect: e.RunCommand) -> None:
        command = effect.command
        task = Task(command.number, command.line, NO_REPEAT, command.command)
        self._post(effect.runner, s.CommandGiven(Attempt(task, 1)))
        self._say("run", "start" if command.at_start else "stop", command.number)

    def _take_back(self, effect: e.TakeBack) -> None:
        self._post(effect.runner, s.RecallAsked(effect.ids))
        self._say("take back", effect.runner, *effect.ids)

    def _pass_end(self, effect: e.PassEnd) -> None:
        self._post(effect.runner, effect.request)
        self._say("end", effect.runner)

    def _end_orphans(self, effect: e.EndOrphans) -> None:
        self.orphaned.append(effect.runner)
        self._say("end orphans", effect.runner)

    def _leave(self, effect: e.Leave) -> None:
        self.has_left = True
        self._say("leave")

    # ---- what must hold

    def note_start(self, attempt: Attempt) -> None:
        assert attempt.task.id not in self.given_up, f"{attempt} is the next driver's to give"
        self.started[attempt.task.id, attempt.number] += 1
        assert self.started[attempt.task.id, attempt.number] == 1, f"{attempt} started twice"

    def check(self) -> None:
        held: Counter[int] = Counter()
        for runner in self.runners.values():
            if not runner.is_dead:
                held.update(runner.held_slots())
        assert all(count == 1 for count in held.values()), f"slots of two runners: {held}"
        reported = Counter(each for batch in self.batches.values() for each in batch)
        assert all(count == 1 for count in reported.values()), f"reported twice: {reported}"
        gone = set(self.batches) | set(self.command_batches)
        gone -= set(self.engine.unacknowledged) | self.safe
        assert not gone, f"forgotten before it was safe: {gone}"


_PERFORM: dict[type, Any] = {
    e.SayEnded: World._say_reports,
    e.SayKept: World._say_reports,
    e.SayCommandsEnded: World._say_commands,
    e.SayOpened: lambda world, _: world._to_driver("opened"),
    e.SayRecalled: World._say_recalled,
    e.SayTaken: lambda world, _: world._to_driver("taken"),
    e.SayClosed: lambda world, _: world._to_driver("closed"),
    e.Refuse: lambda world, effect: world._to_driver("refused", effect.seen),
    e.StartRunner: World._start_runner,
    e.SetUpRunners: World._set_up_runners,
    e.GiveSlots: World._give_slots,
    e.Give: World._give,
    e.RunCommand: World._run_command,
    e.TakeBack: World._take_back,
    e.PassEnd: World._pass_end,
    e.EndOrphans: World._end_orphans,
    e.Keep: World._keep,
    e.KeepCommands: World._keep,
    e.ForgetSpool: lambda world, _: world._say("forget spool"),
    e.Listen: lambda world, _: world._say("listen"),
    e.StopListening: lambda world, _: world._say("stop listening"),
    e.Leave: World._leave,
}
