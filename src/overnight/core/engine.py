"""The machine of an engine: it stands between one driver at a time and the runners.

Rules:

* An attempt that the driver gave is reported once, or said to be recalled before it was
  started. A report is kept until the driver has acknowledged it.
* START commands run one after the other before the first attempt, STOP commands after
  the last. A new driver does not run START again.
* Alone - without a driver - nothing is started; what runs finishes, and is written to a
  spool. Then the STOP commands run and the engine leaves; the spool stays. One that can
  call its run itself stays instead, as long as its run may take it in again.
* An engine obeys the driver with the highest generation it has seen.
* What a dead runner had in hand is lost: which of it had been started cannot be known.
  It is reported when nothing of it is alive any more, not before.
"""

from __future__ import annotations

from overnight.core.engine_events import (
    Acknowledged,
    Assigned,
    AttemptsEnded,
    CloseAsked,
    CommandEnded,
    CommandsGiven,
    DriverGone,
    EndOrphans,
    ForgetSpool,
    HandedBack,
    Keep,
    KeepCommands,
    Kept,
    Leave,
    Listen,
    OrphansEnded,
    PassEnd,
    RankJoined,
    Refuse,
    RunCommand,
    RunnerDied,
    RunOver,
    SayClosed,
    SayCommandsEnded,
    SayEnded,
    SayKept,
    SayOpened,
    SayRecalled,
    SayRoom,
    SayTaken,
    SetUp,
    SetUpRunners,
    SlotsReleased,
    StopListening,
    TakeBack,
    Terminated,
)
from overnight.core.runners import NEVER, Runners
from overnight.core.slot_events import SIGKILL, EndAsked, RecallAsked
from overnight.model.outcome import Lost
from overnight.model.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from overnight.core.deadline import Deadline
    from overnight.core.engine_events import CommandRows, Effect, Event, Pairs
    from overnight.core.runners import Runner
    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup
    from overnight.model.task import PerEngine

BUSY_COUNT = 25
BUSY_S = 0.25
"""So many ends in that time, a hundred a second, are worth a runner for each core."""

TERMINATED_WAITS_S = 20.0
"""An engine that was told to end, and has no driver, tries for so long to say how it ended."""

UNKNOWN_CALLS_S = 60.0
"""An engine that no driver has set up yet calls its run for so long."""

WAITING, OPENING, OPEN, CLOSING, STOPPING, CLOSED = range(6)
"""Phases: before START; START runs; takes attempts; takes none; STOP runs; done."""


class Batch:
    """Reports under one sequence number, until they are acknowledged."""

    __slots__ = ("is_kept", "pairs", "rows")

    def __init__(self, pairs: Pairs, rows: CommandRows) -> None:
        self.pairs = pairs
        self.rows = rows
        self.is_kept = False  # safe in a spool


class Engine:
    """One engine.

    Attributes:
        setup: The latest one, or None before the first.
        phase: See above.
        queue: Attempts that no runner has, in order.
        runners: Who has the others.
        is_alone: It was set up by a driver and has none.
        unacknowledged: Batches by sequence number.
    """

    def __init__(
        self, core_count: int, most_slots_each: int, redials: bool = False,
        runners: Runners | None = None, deadline: Deadline | None = None,
    ) -> None:
        """Begin without a driver's word.

        Args:
            core_count: Cores this process may use.
            most_slots_each: Slots one runner can hold.
            redials: While alone it calls its run: a driver may take it back.
            runners: Who runs the attempts; None: forks, as many as that takes.
            deadline: Where a resource manager may end what runs here: what is of its doing.
        """
        self.setup: Setup | None = None
        self.phase = WAITING
        self.queue: list[Attempt] = []
        self.runners = runners or Runners(core_count, most_slots_each)
        self.is_alone = False
        self.unacknowledged: dict[int, Batch] = {}
        self._generation = 0
        self._sequence = 0
        self._commands: list[PerEngine] = []  # to be run in this phase
        self._stop_commands: list[PerEngine] = []
        self._command: PerEngine | None = None  # the one that runs
        self._runs_stop = False
        self._wanted_back: set[int] = set()  # tasks the driver wants back, in some runner's hand
        self._has_spool = False
        self._deadline = deadline
        self._room_said: int | None = None
        self._deaths = 0
        self._busy_since = 0.0
        self._busy_count = 0
        self._has_left = False
        self._leaves_at = NEVER  # alone, done, and the spool not written
        self._redials = redials
        self._hopes_until = NEVER  # alone: a driver may take it back until then
        self._effects: list[Effect] = []

    @property
    def has_started(self) -> bool:
        """Whether the START commands have run."""
        return self.phase > OPENING

    @property
    def is_closing(self) -> bool:
        """Whether it takes no more attempts."""
        return self.phase > OPEN

    @property
    def generation(self) -> int:
        """Of the latest driver."""
        return self._generation

    @property
    def wake_at(self) -> float:
        """When to call ``step`` at the latest, by the clock that ``at`` is read from."""
        hopes_until = self._hopes_until if self._redials and self.is_alone else NEVER
        due_at = NEVER if self._deadline is None else self._deadline.wake_at
        return min(
            self.runners.wake_at, self.runners.give_up_at, self._leaves_at, hopes_until, due_at
        )

    def in_hand(self) -> list[Attempt]:
        """Attempts that may be running."""
        return [attempt for runner in self.runners for attempt in runner.in_hand.values()]

    def step(self, events: Sequence[Event], at: float) -> list[Effect]:
        """What is to be done after these events, in order.

        Args:
            events: In the order they happened; may be empty when only time has passed.
            at: Seconds of a clock that is never set back.
        """
        effects = self._effects = []
        for event in events:
            _HANDLERS[type(event)](self, event, at)
        if self._deadline is not None and at >= self._deadline.wake_at:
            self._report(self._deadline.due(at))
        if self.setup is not None:
            self._effects += self.runners.settle(at)
            self._mind_room()
            if self.phase == OPEN and not self.is_alone:
                self._effects += self.runners.tend(self.queue, at)
            else:
                self.runners.wake_at = NEVER
                self._go_on(at)
        elif self.is_alone and not self._hopes(at):
            self._leave()
        return effects

    def _mind_room(self) -> None:
        """Say how many slots there are when it is not what the driver thinks."""
        room = self.runners.room
        if room == self._room_said:
            return
        self._room_said = room
        if not self.is_alone:
            self._effects.append(SayRoom(room))
        self._say_recalled(self._unqueue(None))
        if self.runners.is_hopeless(self._deaths) and self.phase < CLOSING:
            self._close(runs_stop=False)

    # ---- what the driver says

    def would_obey(self, setup: Setup) -> bool:
        """Whether a driver with this setup is the latest, or the one it has had, again."""
        if self.setup is None or setup.generation != self._generation:
            return setup.generation >= self._generation
        return bool(setup.driver) and setup.driver == self.setup.driver

    def on_set_up(self, event: SetUp, at: float) -> None:
        setup = event.setup
        if not self.would_obey(setup):
            self._effects.append(Refuse(self._generation))
            return
        self.setup = setup
        self._generation = setup.generation
        self._effects.append(SetUpRunners(self.runners.slot_variables))
        self._effects += self.runners.resize(setup.slots, at, setup.divided)
        self._room_said = setup.slots
        if self.is_alone:
            self._take_over()

    def _take_over(self) -> None:
        self.is_alone = False
        self._hopes_until = NEVER
        self._leaves_at = NEVER
        self._effects.append(StopListening())
        for sequence, batch in self.unacknowledged.items():
            if batch.pairs:
                self._effects.append(SayKept(sequence, batch.pairs))
            else:
                self._effects.append(SayCommandsEnded(sequence, batch.rows))
        self._effects.append(SayTaken(self.in_hand()))
        if self.phase == CLOSED:
            self._effects.append(SayClosed())

    def on_commands_given(self, event: CommandsGiven, at: float) -> None:
        self._stop_commands = [each for each in event.commands if not each.at_start]
        if self.phase == WAITING:
            self.phase = OPENING
            self._commands.extend(each for each in event.commands if each.at_start)
        elif self.phase == OPEN:
            self._effects.append(SayOpened())

    def on_assigned(self, event: Assigned, at: float) -> None:
        if self.phase in (OPENING, OPEN) and not self.is_alone:
            known = {each.task.id for each in self.queue}.union(*self.runners.ids_in_hand())
            self.queue.extend(each for each in event.attempts if each.task.id not in known)
        else:
            self._say_recalled([each.task.id for each in event.attempts])

    def on_recall_asked(self, event: RecallAsked, at: float) -> None:
        self._want_back(event.ids)

    def _want_back(self, ids: Sequence[int] | None) -> None:
        """Give the driver back what has not been started of these; None means all."""
        wanted = None if ids is None else set(ids)
        self._say_recalled(self._unqueue(wanted))
        for runner in self.runners:
            if not runner.is_dead:
                theirs = [id for id in runner.in_hand if wanted is None or id in wanted]
                if theirs:
                    self._wanted_back.update(theirs)
                    self._effects.append(TakeBack(runner.id, theirs))

    def _unqueue(self, wanted: set[int] | None) -> list[int]:
        taken = [a.task.id for a in self.queue if wanted is None or a.task.id in wanted]
        if taken:
            gone = set(taken)
            self.queue = [a for a in self.queue if a.task.id not in gone]
        return taken

    def on_end_asked(self, event: EndAsked, at: float) -> None:
        wanted = None if event.ids is None else set(event.ids)
        if wanted is None and event.signal == SIGKILL:  # at once: STOP commands are not waited for
            self._runs_stop = False
            self._commands.clear()
        self._say_recalled(self._unqueue(wanted))
        for runner in self.runners:
            theirs = [id for id in runner.in_hand if wanted is None or id in wanted]
            self._wanted_back.update(theirs)
            if not runner.is_dead and (theirs or wanted is None):
                self._effects.append(PassEnd(runner.id, event))

    def on_acknowledged(self, event: Acknowledged, at: float) -> None:
        for sequence in [each for each in self.unacknowledged if each <= event.sequence]:
            del self.unacknowledged[sequence]
        if self._has_spool and not self.is_alone and not self._any_kept():
            self._has_spool = False
            self._effects.append(ForgetSpool())

    def _any_kept(self) -> bool:
        return any(batch.is_kept for batch in self.unacknowledged.values())

    def on_close_asked(self, event: CloseAsked, at: float) -> None:
        if self.phase < CLOSING:
            self._close(event.runs_stop)

    def _close(self, runs_stop: bool) -> None:
        self._runs_stop = runs_stop and self.phase != WAITING
        self.phase = CLOSING
        self._commands.clear()
        self._want_back(None)

    def on_driver_gone(self, event: DriverGone, at: float) -> None:
        if self.is_alone:
            return
        has_ended = self.phase == CLOSED and not self.unacknowledged
        if has_ended or (self.setup is None and not self._redials):
            self._leave()
            return
        self.is_alone = True
        if self._redials:  # min: it may have been told to end before
            patience_s = UNKNOWN_CALLS_S if self.setup is None else self.setup.keep_reports_s
            self._hopes_until = min(self._hopes_until, at + patience_s)
        self._want_back(None)  # the next driver's to give out again
        self._effects.append(Listen())
        for sequence, batch in self.unacknowledged.items():
            self._keep(sequence, batch)

    def on_terminated(self, event: Terminated, at: float) -> None:
        """Whoever ends the engine ends what it runs; there is no time for STOP commands."""
        reason = "its engine was told to end"
        if self._deadline is not None:
            reason = self._deadline.reason
            self._report(self._deadline.came())
        kill_after_s = 2.0 if self.setup is None else self.setup.kill_after_s
        self.on_end_asked(EndAsked(None, reason, kill_after_s=kill_after_s), at)
        if self.setup is None:
            self._leave()
        elif self.phase < CLOSING:
            self._close(runs_stop=False)
        self._runs_stop = False
        self._commands.clear()
        self._hopes_until = min(self._hopes_until, at + TERMINATED_WAITS_S)

    def on_run_over(self, event: RunOver, at: float) -> None:
        """Its run has ended without it: what it keeps is for a resume to collect."""
        if self.is_alone:
            self._hopes_until = at

    # ---- what the runners say

    def on_attempts_ended(self, event: AttemptsEnded, at: float) -> None:
        runner = self.runners.get(event.runner)
        if runner is None:
            return
        self._deaths = 0
        self.runners.ended(runner, event.reports, at)
        in_hand = runner.in_hand
        pairs: Pairs = [(in_hand.pop(each.task_id), each) for each in event.reports]
        if self._deadline is None:
            self._report(pairs, event.rows)
        else:
            self._report(self._deadline.sort(pairs, at))
        if self._wanted_back:
            self._wanted_back.difference_update(each.task_id for each in event.reports)
        self._count_busy(len(event.reports), at)

    def _count_busy(self, count: int, at: float) -> None:
        self._busy_count += count
        if self._busy_count >= BUSY_COUNT:
            if at - self._busy_since <= BUSY_S and not self.is_alone:
                self._effects += self.runners.grow()
            self._busy_since = at
            self._busy_count = 0

    def on_command_ended(self, event: CommandEnded, at: float) -> None:
        command, self._command = self._command, None
        if command is not None:
            self._report_command(command, event.report)

    def on_handed_back(self, event: HandedBack, at: float) -> None:
        runner = self.runners.get(event.runner)
        if runner is None:
            return
        runner.is_asked = False
        attempts = [runner.in_hand.pop(id) for id in event.ids if id in runner.in_hand]
        recalled = [a.task.id for a in attempts if a.task.id in self._wanted_back]
        self._wanted_back.difference_update(recalled)
        self._say_recalled(recalled)
        gone = set(recalled)
        self.queue[:0] = [a for a in attempts if a.task.id not in gone]

    def on_rank_joined(self, event: RankJoined, at: float) -> None:
        self._effects += self.runners.join(event)

    def on_slots_released(self, event: SlotsReleased, at: float) -> None:
        self._effects += self.runners.released(event.runner, event.slots)

    def on_runner_died(self, event: RunnerDied, at: float) -> None:
        runner = self.runners.get(event.runner)
        if runner is not None and not runner.is_dead:
            runner.is_dead = True
            self._effects.append(EndOrphans(runner.id, self.runners.rank_slot(runner.id)))

    def on_orphans_ended(self, event: OrphansEnded, at: float) -> None:
        runner = self.runners.get(event.runner)
        if runner is None:
            return
        outcome = Lost("its runner died")
        self._lose_attempts(runner, outcome, event.now)
        if self._command is not None and runner is self.runners.first:
            command, self._command = self._command, None
            self._report_command(command, Report(command.number, 1, outcome, -1, event.now, 0.0))
        self._effects += self.runners.replace(runner.id)
        self._deaths += 1
        if self.runners.is_hopeless(self._deaths) and self.phase < CLOSING:
            self._close(runs_stop=False)

    def _lose_attempts(self, runner: Runner, outcome: Lost, now: float) -> None:
        pairs = [
            (each, Report(each.task.id, each.number, outcome, -1, now, 0.0))
            for each in runner.in_hand.values()
        ]
        self._wanted_back.difference_update(runner.in_hand)
        runner.in_hand.clear()
        self._report(pairs)

    # ---- reports

    def _report(self, pairs: Pairs, rows: bytes = b"") -> None:
        if not pairs:
            return
        self._sequence += 1
        batch = self.unacknowledged[self._sequence] = Batch(pairs, ())
        if self.is_alone:
            self._keep(self._sequence, batch)
        else:
            self._effects.append(SayEnded(self._sequence, pairs, rows))

    def _report_command(self, command: PerEngine, report: Report) -> None:
        self._sequence += 1
        rows = [(command.at_start, report)]
        batch = self.unacknowledged[self._sequence] = Batch((), rows)
        if self.is_alone:
            self._keep(self._sequence, batch)
        else:
            self._effects.append(SayCommandsEnded(self._sequence, rows))

    def _keep(self, sequence: int, batch: Batch) -> None:
        if batch.is_kept:
            return
        self._has_spool = True
        if batch.pairs:
            self._effects.append(Keep(sequence, batch.pairs))
        else:
            self._effects.append(KeepCommands(sequence, batch.rows))

    def on_kept(self, event: Kept, at: float) -> None:
        batch = self.unacknowledged.get(event.sequence)
        if batch is not None:
            batch.is_kept = True

    def _say_recalled(self, ids: list[int]) -> None:
        if ids and not self.is_alone:
            self._effects.append(SayRecalled(ids))

    # ---- going on

    def _go_on(self, at: float) -> None:
        """Run the next per-engine command, or go to the next phase, or leave."""
        if self._command is not None or self._is_held_up():
            return
        if self.phase <= OPEN and self._hopes(at):
            return
        if self.phase == OPENING and not self.is_alone:
            self._open(at)
        elif self.phase in (OPENING, OPEN, CLOSING):
            self._stop(at)
        elif self.phase == STOPPING:
            if not self._run_next():
                self._finish(at)
        elif self.phase == CLOSED:
            self._leave_when_safe(at)
        elif self.is_alone:
            self._leave()

    def _hopes(self, at: float) -> bool:
        """Whether it is alone and a driver may yet take it back."""
        return self._redials and self.is_alone and at < self._hopes_until

    def _is_held_up(self) -> bool:
        """Whether something must end first, or be there."""
        if self.phase == OPENING and self.runners.is_awaited:
            return True
        if self._deadline is not None and self._deadline.holds:
            return True
        return any(runner.is_dead or runner.in_hand for runner in self.runners)

    def _run_next(self) -> bool:
        """Run the next per-engine command, if there is one."""
        if not self._commands:
            return False
        self._command = self._commands.pop(0)
        self._effects.append(RunCommand(self.runners.first.id, self._command))
        return True

    def _open(self, at: float) -> None:
        if not self._run_next():
            self.phase = OPEN
            self._effects.append(SayOpened())
            self._effects += self.runners.tend(self.queue, at)

    def _stop(self, at: float) -> None:
        """All attempts are over: run the STOP commands, if they are to be run."""
        runs_stop = self._runs_stop or self.phase != CLOSING
        self.phase = STOPPING
        self._commands = list(self._stop_commands) if runs_stop else []
        self._go_on(at)

    def _finish(self, at: float) -> None:
        self.phase = CLOSED
        if not self.is_alone:
            self._effects.append(SayClosed())
        self._leave_when_safe(at)

    def _leave_when_safe(self, at: float) -> None:
        """Leave when nobody could miss a report: all acknowledged, or all in a spool."""
        batches = self.unacknowledged.values()
        if self._hopes(at):
            return
        if all(batch.is_kept for batch in batches) if self.is_alone else not batches:
            self._leave()
        elif self.is_alone and self._leaves_at == NEVER:
            keep_s = self.setup.keep_reports_s if self.setup is not None else 0.0
            self._leaves_at = at + keep_s
        elif at >= self._leaves_at:
            self._leave()

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self._effects.append(Leave())


_HANDLERS: dict[type, Callable[[Engine, Any, float], None]] = {
    SetUp: Engine.on_set_up,
    CommandsGiven: Engine.on_commands_given,
    Assigned: Engine.on_assigned,
    RecallAsked: Engine.on_recall_asked,
    EndAsked: Engine.on_end_asked,
    Acknowledged: Engine.on_acknowledged,
    CloseAsked: Engine.on_close_asked,
    DriverGone: Engine.on_driver_gone,
    AttemptsEnded: Engine.on_attempts_ended,
    CommandEnded: Engine.on_command_ended,
    HandedBack: Engine.on_handed_back,
    SlotsReleased: Engine.on_slots_released,
    RunnerDied: Engine.on_runner_died,
    OrphansEnded: Engine.on_orphans_ended,
    Kept: Engine.on_kept,
    RankJoined: Engine.on_rank_joined,
    Terminated: Engine.on_terminated,
    RunOver: Engine.on_run_over,
}
