"""The driver's machine: which task starts where and when, and what is recorded.

``step(at, events)`` takes a batch of facts and returns what is to be done, in order.
It is a function of its state and its input: no clock, no I/O, no randomness.

An item of the list goes through these states, and is forgotten after the last:

    backlog   read, in the order of the list; a barrier at its head holds all behind it
    ready     may start before the backlog: a further attempt, or one handed back
    waiting   failed, and will be ready at a time (back-off)
    held      given to an engine, which answers for it
    settled   its row is written; only counts remain

Rules that hold after every step (``core/invariants``): an attempt is in one of these
places; nothing behind a barrier has left the backlog before everything in front of it
is settled and durable; reports are acknowledged only when durable.
"""

from __future__ import annotations

import heapq
from collections import deque

from overnight.core import pool as p
from overnight.core import verdict as v
from overnight.core.absent import FIRST_S, RETURNS_WITHIN_S, left_behind_text, say_absent
from overnight.core.dispatch import shares
from overnight.core.effects import (
    Acknowledge,
    Assign,
    BarrierMet,
    CloseEngine,
    CommandEnded,
    EndAttempts,
    Finish,
    GiveBack,
    LeaveAlone,
    MakeDurable,
    OpenEngine,
    Read,
    Recall,
    Record,
    SetSlots,
    StartEngines,
    TaskEnded,
    TasksSkipped,
    Tell,
    WakeAt,
)
from overnight.core.events import (
    END,
    KILL,
    SOFT,
    AttemptsEnded,
    AttemptsRecalled,
    ContextEndsAt,
    DrainAsked,
    EngineAbandoned,
    EngineAwaited,
    EngineClosed,
    EngineCutOff,
    EngineJoined,
    EngineLost,
    EngineOpened,
    EngineResized,
    EngineReturned,
    EnginesStarted,
    EngineStarting,
    HostMeasured,
    ItemsRead,
    KeptReports,
    PerEngineEnded,
    RecordFailed,
    RecordMended,
    RowsDurable,
    SlotsSet,
    SourceFailed,
    StopAsked,
)
from overnight.core.policy import retry_delay_s
from overnight.errors import InvariantBroken, ResumeRefused
from overnight.model.attempt import Attempt
from overnight.model.outcome import Cancelled, Lost
from overnight.model.report import Report
from overnight.model.task import Barrier, DoneBefore, PerEngine, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from overnight.core.effects import Effect, Entry
    from overnight.core.events import Event
    from overnight.core.policy import Policy
    from overnight.errors import OvernightError
    from overnight.model.task import Item

LEAST_READ = 64
MOST_READ = 1 << 14
NO_LIMIT = 1 << 40
SAY_WAITING_EVERY_S = 60.0


class Counts:
    """How far a run is. Tasks, not attempts; per-engine commands are not in it."""

    __slots__ = ("cut", "done", "failed", "skipped", "skipped_failed")

    def __init__(self) -> None:
        self.done = 0  # ended well in this run
        self.failed = 0  # ended badly for good in this run
        self.skipped = 0  # settled by an earlier run
        self.skipped_failed = 0  # of these, those that had failed there
        self.cut = 0  # cut off by us


class Stop:
    """Why nothing more is started, once that is so."""

    __slots__ = ("ending", "error", "how", "reason", "signal")

    def __init__(
        self, how: int, ending: str, reason: str = "", signal: int = 0,
        error: OvernightError | None = None,
    ) -> None:
        self.how = how
        self.ending = ending
        self.reason = reason
        self.signal = signal
        self.error = error


class Scheduler:
    """Decides a run from its first item to its verdict."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.pool = p.Pool()
        self.counts = Counts()
        self.backlog: deque[Item] = deque()
        self.ready: deque[Attempt] = deque()
        self.waiting: list[tuple[float, int, Attempt]] = []  # heap by time
        self.stop: Stop | None = None
        self.is_finished = False
        self.is_finishing = False  # nothing is left but engines that leave
        self.barrier_since: float | None = None  # when the barrier at the head was reached
        self._at = 0.0
        self._effects: list[Effect] = []
        self._entries: list[Entry] = []
        self._commands: list[PerEngine] = []
        self._known: dict[int, bytes] = {}  # tasks met before the list gave them: id, command
        self._failures: dict[int, int] = {}  # failed attempts of live tasks that had any
        self._crashes: dict[int, int] = {}  # lost attempts of live tasks that had any
        self._failed_since_barrier = False
        self._has_failures = False
        self._source_ended = False
        self._has_looked_again = False
        self._is_reading = False
        self._lenders = set(policy.gives_back)  # contexts whose nodes are given back
        self._asked_for_engines = False
        self._awaits_engines = False  # asked, and the answer is not here yet
        self._losses = 0  # engines lost since the last report of any
        self._left_behind = 0  # tasks of engines that were abandoned
        self._left_in_order = False  # the last engine that went had been told to
        self._say_waiting_at = 0.0
        self._drains = False  # some engine was asked to take nothing more
        self._lets_absent_go_at: float | None = None  # the run is over but for engines away
        self._record_number = 0
        self._durable_number = 0
        self._unacknowledged: deque[tuple[int, int, int]] = deque()  # record no., engine, seq
        self._record_fault = ""
        self._next_start_at = 0.0
        self._load = 0.0
        self._held_by = ""  # why the state of this machine holds back starts
        self._free_memory: int | None = None
        self._handlers = {
            ItemsRead: self.on_items_read,
            AttemptsEnded: self.on_attempts_ended,
            RowsDurable: self.on_rows_durable,
            SourceFailed: self.on_source_failed,
            EngineStarting: self.on_engine_starting,
            EnginesStarted: self.on_engines_started,
            EngineAwaited: self.on_engine_awaited,
            EngineCutOff: self.on_engine_cut_off,
            EngineReturned: self.on_engine_returned,
            EngineAbandoned: self.on_engine_abandoned,
            DrainAsked: self.on_drain_asked,
            SlotsSet: self.on_slots_set,
            ContextEndsAt: self.on_context_ends_at,
            EngineJoined: self.on_engine_joined,
            EngineOpened: self.on_engine_opened,
            EngineResized: self.on_engine_resized,
            KeptReports: self.on_kept_reports,
            PerEngineEnded: self.on_per_engine_ended,
            AttemptsRecalled: self.on_attempts_recalled,
            EngineClosed: self.on_engine_closed,
            EngineLost: self.on_engine_lost,
            RecordFailed: self.on_record_failed,
            RecordMended: self.on_record_mended,
            HostMeasured: self.on_host_measured,
            StopAsked: self.on_stop_asked,
        }

    def lend(self, context: str, is_lent: bool) -> None:
        """Before the first step: whether nodes of this context are given back."""
        if is_lent:
            self._lenders.add(context)

    @property
    def barrier_line(self) -> int | None:
        """Line of the barrier that is waited for, or None."""
        if self.barrier_since is None or not self.backlog:
            return None
        head = self.backlog[0]
        return head.line if isinstance(head, Barrier) else None

    def step(self, at: float, events: Iterable[Event]) -> list[Effect]:
        """Take these facts, in order, and say what is to be done.

        Args:
            at: Unix seconds by a clock that is never set back.
            events: What has happened since the last step; may be empty.
        """
        self._at = at
        self._effects = []
        self._entries = []
        for event in events:
            self._handlers[type(event)](event)  # type: ignore[operator]  # keyed by its class
        if not self.is_finished:
            self._decide()
        self._flush_entries(first=True)
        return self._effects

    # -- facts ---------------------------------------------------------------------

    def on_items_read(self, event: ItemsRead) -> None:
        self._is_reading = False
        self._source_ended = event.has_ended
        if event.items:
            self._has_looked_again = False
        self.backlog.extend(event.items)

    def on_source_failed(self, event: SourceFailed) -> None:
        self._is_reading = False
        self._stop(Stop(SOFT, v.REFUSED, event.error.what, error=event.error))

    def on_engine_starting(self, event: EngineStarting) -> None:
        self._awaits_engines = False
        engine = self.pool.add(event.engine, event.context, event.task_limit)
        engine.is_guest = event.is_guest
        engine.node = event.node
        engine.is_dispensable = event.is_dispensable
        if event.is_survivor:
            self.pool.note_survivor(engine)
        if event.lends:
            self._lenders.add(event.context)

    def on_engines_started(self, event: EnginesStarted) -> None:
        self._awaits_engines = False

    def on_engine_awaited(self, event: EngineAwaited) -> None:
        engine = self.pool.add(event.engine, event.context)
        engine.is_guest = True
        engine.node = event.node
        self.pool.note_survivor(engine)
        self._note_absent(engine, f"an engine of an earlier driver on {event.node} is awaited")

    def on_engine_joined(self, event: EngineJoined) -> None:
        engine = self.pool.join(
            event.engine, event.node, event.slots, event.is_open, event.rank
        )
        if engine is None:
            return
        if event.is_closing:
            engine.state = p.CLOSING
        for attempt in event.running:
            self._unqueue(attempt)
            engine.held[attempt.task.id] = attempt
            self._known[attempt.task.id] = attempt.task.command
        self._tell("info", f"engine {engine.rank} on {engine.node} has joined: "
                           f"{engine.slots} slots, {len(engine.held)} tasks running")
        if self.stop is not None and self.stop.how >= END and engine.held:
            self._end_by(engine, self.stop)  # it was not here when that was asked

    def on_engine_opened(self, event: EngineOpened) -> None:
        engine = self.pool.get(event.engine)
        if engine is not None and engine.state == p.OPENING:
            engine.state = p.DRAINING if engine.wants_to_leave else p.OPEN

    def on_engine_resized(self, event: EngineResized) -> None:
        engine = self.pool.get(event.engine)
        if engine is not None and engine.slots != event.slots:
            self._tell("warning", f"engine {engine.rank} on {engine.node} has {event.slots} of"
                                  f" {engine.slots} slots")
            engine.slots = event.slots

    def on_attempts_ended(self, event: AttemptsEnded) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        held, recent = engine.held, engine.recent
        for report in event.reports:
            attempt = held.get(report.task_id)
            if attempt is None or attempt.number != report.attempt:
                self._tell("info", f"engine {engine.rank} reports attempt {report.attempt} of "
                                   f"task {report.task_id}, which it does not hold: passed over")
                continue
            del held[report.task_id]
            recent.append(report.elapsed_s)
            if (engine.gives_back or engine.is_guest) and self._was_ended_here(report):
                self._run_elsewhere(attempt, report, engine)
            else:
                self._judge(attempt, report, engine.node, engine.rank)
        self._losses = 0
        engine.judge_prefetch()
        self._acknowledge_later(engine.id, event.seq)

    def _was_ended_here(self, report: Report) -> bool:
        return type(report.outcome) is Cancelled and report.outcome.code != 0 \
            and self.stop is None

    def _run_elsewhere(self, attempt: Attempt, report: Report, engine: p.EngineState) -> None:
        """Its engine was to leave, or its launcher ended it: nobody's failure, and no row yet."""
        self._entries.append(
            TaskEnded(attempt.task, report, engine.node, engine.rank, False, True)
        )
        self.ready.append(Attempt(attempt.task, attempt.number + 1))
        self._drain(engine, ends_tasks=False)

    # -- what users ask of the pool ------------------------------------------------------

    def on_drain_asked(self, event: DrainAsked) -> None:
        for id in event.engines:
            engine = self.pool.get(id)
            if engine is not None:
                self._drain(engine, event.ends_tasks)

    def _drain(self, engine: p.EngineState, ends_tasks: bool) -> None:
        self._drains = engine.wants_to_leave = True
        if engine.state == p.OPEN:
            self._recall_all(engine)
            engine.state = p.DRAINING
        if ends_tasks and not engine.gives_back:
            engine.gives_back = True
            if engine.state > p.STARTING:
                self._end_attempts(engine, "its engine was asked to leave")

    def on_slots_set(self, event: SlotsSet) -> None:
        engine = self.pool.get(event.engine)
        if engine is not None and engine.state > p.STARTING and not engine.is_absent:
            engine.slots = event.slots
            self._effects.append(SetSlots(engine.id, event.slots))

    def on_context_ends_at(self, event: ContextEndsAt) -> None:
        self.pool.ends_at[event.context] = event.at

    def _end_loans(self) -> None:
        """Start nothing that would outlast the loan of its host; end there what does."""
        for engine in self.pool:
            ends_at = self.pool.ends_at.get(engine.context)
            if ends_at is None:
                continue
            drain_at = ends_at - max(engine.recent, default=0.0)
            if self._at >= ends_at:
                self._drain(engine, ends_tasks=True)
            elif self._at >= drain_at:
                self._drain(engine, ends_tasks=False)
            if self._at < ends_at:
                self._effects.append(WakeAt(drain_at if self._at < drain_at else ends_at))

    def on_kept_reports(self, event: KeptReports) -> None:
        engine = self.pool.get(event.engine)
        for attempt, report in event.pairs:
            task = attempt.task
            if type(report.outcome) is Cancelled and report.outcome.code != 0:
                # An earlier driver cut it off: its row says so, and like any such task it
                # runs again when the list gives it.
                self._entries.append(TaskEnded(task, report, event.node, event.rank, True, True))
                continue
            self._known[task.id] = task.command
            held = engine.held.get(task.id) if engine is not None else None
            if held is not None and held.number > attempt.number:
                self._entries.append(TaskEnded(task, report, event.node, event.rank, False, False))
                continue
            if held is not None and engine is not None:
                del engine.held[task.id]
            self._unqueue(attempt)
            self._judge(attempt, report, event.node, event.rank)
        self._note_commands(event.commands, event.node, event.rank)
        self._acknowledge_later(event.engine, event.seq)

    def _unqueue(self, met: Attempt) -> None:
        """An attempt has been met elsewhere: it need not be made, nor one before it."""
        def is_over(queued: Attempt) -> bool:
            return queued.task.id == met.task.id and queued.number <= met.number

        if any(map(is_over, self.ready)):
            self.ready = deque(one for one in self.ready if not is_over(one))
        if any(is_over(one) for _, _, one in self.waiting):
            self.waiting = [entry for entry in self.waiting if not is_over(entry[2])]
            heapq.heapify(self.waiting)

    def on_per_engine_ended(self, event: PerEngineEnded) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        self._note_commands(event.pairs, engine.node, engine.rank)
        self._acknowledge_later(engine.id, event.seq)

    def _note_commands(
        self, pairs: Iterable[tuple[PerEngine, Report]], node: str, rank: int
    ) -> None:
        for command, report in pairs:
            if report.outcome.code != 0:
                self._has_failures = self._failed_since_barrier = True
            self._entries.append(CommandEnded(command, report, node, rank))

    def on_attempts_recalled(self, event: AttemptsRecalled) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        self._take_back(engine, event.task_ids)

    def _take_back(self, engine: p.EngineState, task_ids: Sequence[int]) -> None:
        for task_id in reversed(task_ids):
            attempt = engine.held.pop(task_id, None)
            if attempt is not None:
                self.pool.given[engine.context] -= 1
                self.ready.appendleft(attempt)

    def on_engine_closed(self, event: EngineClosed) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        self.pool.remove(engine.id)
        # It has reported whatever it had started: the rest never was, and is nobody's fault.
        self._take_back(engine, list(engine.held))
        if engine.is_dry:
            self._effects.append(GiveBack(engine.id))
        self._left_in_order = engine.was_told_to_leave or engine.is_guest
        if not self._left_in_order:
            self._may_start_another(engine)

    def on_engine_lost(self, event: EngineLost) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        self.pool.remove(engine.id)
        if engine.was_told_to_leave and engine.is_absent and not engine.held:
            self._left_in_order = True  # its last word was lost with the link
            return
        self._tell(*self._loss_text(engine, event.reason))
        self._left_in_order = False
        self._lose(engine, event.reason)
        self._may_start_another(engine)

    @staticmethod
    def _loss_text(engine: p.EngineState, reason: str) -> tuple[str, str]:
        """Level and words: whoever held nothing takes nothing along."""
        if engine.state == p.STARTING and engine.node and not engine.is_survivor:
            return "warning", f"{engine.node} is left out: {reason}"
        if engine.is_absent and not engine.held:
            return "warning", f"engine on {engine.node} has left with nothing open: {reason}"
        return "error", f"engine on {engine.node or engine.context} was lost: {reason}"

    def _may_start_another(self, engine: p.EngineState) -> None:
        """An engine is gone that was not told to leave: its context may try once more."""
        if engine.is_guest:
            return  # no context can start another
        if engine.is_survivor:  # this driver's contexts have not tried yet
            self._asked_for_engines = False
            return
        self._losses += 1
        if self.policy.gives_out_lost and self._losses < self.policy.crash_limit:
            self._asked_for_engines = False

    def on_engine_cut_off(self, event: EngineCutOff) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        engine.absent_reason = event.reason
        if not engine.is_absent:
            self._note_absent(engine, f"engine on {engine.node} is cut off: {event.reason}")

    def _note_absent(self, engine: p.EngineState, text: str) -> None:
        self.pool.note_absent(engine, self._at, self._at + FIRST_S)
        self._tell("info", text)

    def on_engine_returned(self, event: EngineReturned) -> None:
        """It goes on where it was; what it had been given and never started is given anew."""
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        self.pool.note_back(engine)
        in_hand = set(event.task_ids)
        self._take_back(engine, [id for id in engine.held if id not in in_hand])
        self._tell("info", f"engine {engine.rank} on {engine.node} is back, with "
                           f"{len(engine.held)} tasks running")
        if event.is_closing:
            engine.state = p.CLOSING
        elif engine.was_told_to_leave:
            engine.state = p.OPEN if event.is_open else p.JOINED
            self._close(engine)  # it may never have heard of it
        elif not event.is_open:
            engine.state = p.JOINED  # the START commands are given once more
        elif engine.state != p.DRAINING:
            engine.state = p.OPEN
        if self.stop is not None and self.stop.how >= END:
            self._end_by(engine, self.stop)
        elif engine.gives_back:
            self._end_attempts(engine, "its engine was asked to leave")

    def on_engine_abandoned(self, event: EngineAbandoned) -> None:
        engine = self.pool.get(event.engine)
        if engine is None:
            return
        may_run_tasks = bool(engine.held) or engine.holds_unknown
        self.pool.remove(engine.id)
        self._left_behind += may_run_tasks
        if may_run_tasks:
            self._tell("error", left_behind_text(engine, event.reason))
            # Nothing may follow that would take these tasks for settled.
            self._stop(Stop(SOFT, v.STOPPED, f"{engine.node} was left alone with tasks"))

    def on_rows_durable(self, event: RowsDurable) -> None:
        self._durable_number = max(self._durable_number, event.number)
        latest: dict[int, int] = {}
        while self._unacknowledged and self._unacknowledged[0][0] <= self._durable_number:
            _, engine, seq = self._unacknowledged.popleft()
            latest[engine] = seq
        for engine, seq in latest.items():
            self._effects.append(Acknowledge(engine, seq))

    def on_record_failed(self, event: RecordFailed) -> None:
        if not self._record_fault:
            for engine in self.pool:
                self._recall_all(engine)
        self._record_fault = event.reason

    def on_record_mended(self, event: RecordMended) -> None:
        self._record_fault = ""

    def on_host_measured(self, event: HostMeasured) -> None:
        self._load = event.load
        self._free_memory = event.free_memory

    def on_stop_asked(self, event: StopAsked) -> None:
        if event.notice:
            self._tell("warning", event.notice)
        self._stop(Stop(event.how, v.STOPPED, event.reason, event.signal))

    # -- what an ending means ---------------------------------------------------------

    def _judge(self, attempt: Attempt, report: Report, node: str, rank: int) -> None:
        """Settle the task of a report, or put its next attempt in line."""
        task, outcome = attempt.task, report.outcome
        settles, is_cut = True, type(outcome) is Cancelled
        if outcome.code == 0:  # also of one that we ended, and that had come to its end
            self.counts.done += 1
        elif is_cut:
            self.counts.cut += 1
        elif self._tries_again(attempt, outcome):
            settles = False
        else:
            self._count_failure()
        if settles and (self._failures or self._crashes):
            self._failures.pop(task.id, None)
            self._crashes.pop(task.id, None)
        self._entries.append(
            TaskEnded(task, report, node, rank, settles, is_cut or report.late)
        )

    def _tries_again(self, attempt: Attempt, outcome: object) -> bool:
        if self.stop is not None:
            return False
        task_id = attempt.task.id
        again = Attempt(attempt.task, attempt.number + 1)
        if type(outcome) is Lost:
            self._crashes[task_id] = self._crashes.get(task_id, 0) + 1
            if not self.policy.gives_out_lost or self._crashes[task_id] >= self.policy.crash_limit:
                return False
            self.ready.append(again)
            return True
        failures = self._failures.get(task_id, 0) + 1
        if failures > self.policy.retries:
            return False
        self._failures[task_id] = failures
        heapq.heappush(self.waiting, (self._at + retry_delay_s(failures), task_id, again))
        return True

    def _count_failure(self) -> None:
        self.counts.failed += 1
        self._has_failures = self._failed_since_barrier = True
        limit = self.policy.max_failures
        if limit is not None and self.counts.failed >= limit:
            ending = v.FAIL_FAST if self.policy.fails_fast else v.MAX_FAILURES
            self._stop(Stop(END, ending, f"{self.counts.failed} failed"))

    def _lose(self, engine: p.EngineState, reason: str) -> None:
        """Nobody can say how these attempts ended; that they ended is proved."""
        held, engine.held = engine.held, {}
        for attempt in held.values():
            report = Report(attempt.task.id, attempt.number, Lost(reason), -1, self._at, 0.0)
            self._judge(attempt, report, engine.node, engine.rank)

    # -- stopping ---------------------------------------------------------------------

    def _stop(self, stop: Stop) -> None:
        """Start nothing more; a harder stop replaces a softer one, never the reverse."""
        earlier = self.stop
        if earlier is not None and earlier.how >= stop.how:
            return
        if earlier is not None and earlier.ending != v.STOPPED:
            stop.ending, stop.error = earlier.ending, earlier.error
            stop.reason = earlier.reason
        self.stop = stop
        for engine in self.pool:
            self._recall_all(engine)
            if stop.how >= END and engine.state > p.STARTING:
                self._end_by(engine, stop)

    def _end_by(self, engine: p.EngineState, stop: Stop) -> None:
        reason = stop.reason if stop.ending == v.STOPPED else stop.ending
        self._end_attempts(engine, reason, at_once=stop.how == KILL)

    def _end_attempts(
        self, engine: p.EngineState, reason: str, *, at_once: bool = False
    ) -> None:
        if not engine.is_absent:
            self._effects.append(EndAttempts(engine.id, reason, at_once))

    def _recall_all(self, engine: p.EngineState) -> None:
        if engine.held and engine.takes_tasks:
            self._effects.append(Recall(engine.id, list(engine.held)))

    # -- decisions, once at the end of a step -------------------------------------------

    def _decide(self) -> None:
        self._release_due_retries()
        if self.pool.ends_at:
            self._end_loans()
        if self.stop is None:
            self._advance()
            self._read_ahead()
        self._retire_contexts()
        self._let_idle_go()
        self._let_leaving_go()
        self._let_dry_ones_leave()
        self._effects += say_absent(self.pool.absent.values(), self._at, self.policy.how_to_forget)
        if self._is_over():
            self._finish()

    def _let_idle_go(self) -> None:
        """Nothing more is started: who holds nothing need not wait for one that is away."""
        if self.stop is not None and self.pool.absent:
            for engine in self.pool:
                if not engine.held:
                    self._close(engine)

    def _let_leaving_go(self) -> None:
        """One that was told to leave, and holds nothing, may have left: its last word is lost."""
        for engine in list(self.pool.absent.values()):
            if not engine.was_told_to_leave or engine.held or engine.holds_unknown:
                continue
            gone_at = (engine.absent_since or self._at) + RETURNS_WITHIN_S
            if self._at < gone_at:
                self._effects.append(WakeAt(gone_at))
                continue
            self.pool.remove(engine.id)
            self._left_in_order = True
            self._effects.append(LeaveAlone(engine.id))

    def _release_due_retries(self) -> None:
        while self.waiting and self.waiting[0][0] <= self._at:
            self.ready.append(heapq.heappop(self.waiting)[2])
        if self.waiting:
            self._effects.append(WakeAt(self.waiting[0][0]))

    def _advance(self) -> None:
        """Take from the head of the list what may be taken now."""
        while self.stop is None:
            if (self.ready or self._front_is_task()) and not self._start_tasks():
                return
            item = self.backlog[0] if self.backlog else None
            if item is None:
                return
            if type(item) is Task:
                if item.id not in self._known:
                    return
                self._drop_known(item)
            elif type(item) is DoneBefore:
                self._skip(item)
            elif type(item) is PerEngine:
                self._commands.append(item)
                self.backlog.popleft()
            elif type(item) is Barrier:
                if not self._pass_barrier(item):
                    return
            else:
                raise InvariantBroken(f"not an item of a list: {item!r}")

    def _front_is_task(self) -> bool:
        return bool(self.backlog) and type(self.backlog[0]) is Task

    def _drop_known(self, task: Task) -> None:
        """The list gives a task whose attempt outlived an earlier driver."""
        command = self._known.pop(task.id)
        if command != task.command:
            self._stop(Stop(SOFT, v.REFUSED, error=ResumeRefused(
                f"task {task.id} still ran, or had just run, as {command[:200]!r}; the list now"
                f" says {task.command[:200]!r}",
                kept="its old text has its row; nothing further is started",
                do="resume with the list as it was",
            )))
        self.backlog.popleft()

    def _skip(self, done: DoneBefore) -> None:
        self.backlog.popleft()
        self.counts.skipped += done.count
        if done.code != 0:
            self.counts.skipped_failed += done.count
            self._has_failures = self._failed_since_barrier = True
        self._entries.append(TasksSkipped(done))

    def _pass_barrier(self, barrier: Barrier) -> bool:
        """Record the barrier if everything before it is settled and durable."""
        if self.barrier_since is None:
            self.barrier_since = self._at
        if self.ready or self.waiting or self.pool.live_count or self.pool.holds_unknown:
            return False
        if self._durable_number < self._record_number or self._entries:
            self._effects.append(MakeDurable())
            return False
        self.backlog.popleft()
        self._entries.append(BarrierMet(barrier, self.barrier_since, self._at))
        self.barrier_since = None
        if barrier.checks and self._failed_since_barrier:
            self._stop(Stop(SOFT, v.CHECK_FAILED, f"line {barrier.line}"))
        self._failed_since_barrier = False
        return True

    def _start_tasks(self) -> bool:
        """Give ready attempts and tasks at the head of the list to engines with room.

        Returns:
            Whether something was given, so that the head of the list may have changed.
        """
        if self._known and not self.ready and self.is_known(self.backlog[0]):
            return True
        if not self._have_engines() or not self._may_start():
            return False
        count = self._startable_count()
        if self.policy.delay_s:
            count = min(count, 1)
        engines = [e for e in self.pool if e.takes_tasks and self._context_room(e) > 0]
        prefetches = self.policy.allows_prefetch and self._is_plentiful(count)
        given = 0
        for engine, share in shares(count, engines, prefetches) if count else ():
            given += self._assign(engine, min(share, self._context_room(engine)))
        if given and self.policy.delay_s:
            self._next_start_at = self._at + self.policy.delay_s
            self._effects.append(WakeAt(self._next_start_at))
        return given > 0

    def is_known(self, item: Item) -> bool:
        """Whether the item's task was met before the list gave it."""
        return type(item) is Task and item.id in self._known

    def _startable_count(self) -> int:
        """Attempts that nothing in the list holds back, as far as engines have room."""
        most = sum(max(e.room, 0) for e in self.pool)
        count = len(self.ready)
        for item in self.backlog:
            if count >= most or type(item) is not Task or (self._known and item.id in self._known):
                break
            count += 1
        return count

    def _is_plentiful(self, count: int) -> bool:
        """Whether handing tasks out ahead of slots leaves no slot without one at the end."""
        left = len(self.ready) + len(self.backlog)
        return not self._source_ended or left >= 2 * self.pool.slots + count // 2

    def _have_engines(self) -> bool:
        for engine in self.pool:
            if engine.state == p.JOINED and not engine.is_absent:
                if self._context_room(engine) > 0 and not engine.wants_to_leave:
                    self._open(engine)
                else:
                    self._close(engine)
        if not self._asked_for_engines:  # also beside survivors, and for one that was lost
            self._asked_for_engines = True
            if not self.policy.starts_bare:
                self._awaits_engines = True
                self._effects.append(StartEngines())
        return len(self.pool) > 0

    def _open(self, engine: p.EngineState) -> None:
        self._effects.append(OpenEngine(engine.id, list(self._commands)))
        has_start = any(c.at_start for c in self._commands)
        engine.state = p.OPENING if has_start else p.OPEN

    def _may_start(self) -> bool:
        """Whether nothing holds back starts: a broken record, --delay, --load, --memfree."""
        if self._record_fault or self.pool.holds_unknown:
            return False
        if self._at < self._next_start_at:
            self._effects.append(WakeAt(self._next_start_at))
            return False
        held_by = self._host_holds()
        if held_by and not self._held_by:
            self._tell("warning", f"nothing is started for now: {held_by}")
        elif self._held_by and not held_by:
            self._tell("info", "tasks are started again")
        self._held_by = held_by
        return not held_by

    def _host_holds(self) -> str:
        """Why this machine's state holds back starts; empty if it does not."""
        policy = self.policy
        if policy.load_limit is not None and self._load > policy.load_limit:
            return f"the load is {self._load:.2f}, above --load {policy.load_limit:g}"
        floor, free = policy.memory_floor, self._free_memory
        if floor is None or (free is not None and free >= floor):
            return ""
        if free is None:
            return "free memory is not measured yet"
        return f"{free >> 20} MiB of memory are free, below --memfree ({floor >> 20} MiB)"

    def _context_room(self, engine: p.EngineState) -> int:
        limit = self.pool.limits.get(engine.context, self.policy.task_limit)
        return limit - self.pool.given[engine.context] if limit else NO_LIMIT

    def _assign(self, engine: p.EngineState, count: int) -> int:
        attempts = []
        held, ready, backlog = engine.held, self.ready, self.backlog
        for _ in range(count):
            if ready:
                attempt = ready.popleft()
            else:
                task = backlog.popleft()
                if type(task) is not Task:
                    raise InvariantBroken(f"{task!r} was about to be started")
                attempt = Attempt(task, 1)
            held[attempt.task.id] = attempt
            attempts.append(attempt)
        if attempts:
            self.pool.given[engine.context] += len(attempts)
            self._effects.append(Assign(engine.id, attempts))
        return len(attempts)

    def _retire_contexts(self) -> None:
        """Engines of a context that has had all its tasks leave when theirs are done."""
        if not (self.policy.task_limit or self.pool.limits or self._drains):
            return  # as in most runs; a look at every engine costs a step of a thousand
        for engine in self.pool:
            if engine.state == p.OPEN and self._context_room(engine) <= 0:
                engine.state = p.DRAINING
            is_idle = engine.state in (p.JOINED, p.DRAINING) and not engine.held
            if is_idle and (engine.state == p.DRAINING or engine.wants_to_leave):
                engine.is_dry = engine.context in self._lenders
                self._close(engine)

    def _let_dry_ones_leave(self) -> None:
        """Engines that nothing is left for leave, where their nodes are given back.

        One stays, whichever has run dry last: the list may have grown. All stay while one is
        cut off: what it runs may have to be given out again.
        """
        if not self._lenders or self.pool.absent or not self._has_run_dry():
            return
        staying = sum(engine.state <= p.OPEN for engine in self.pool)
        for engine in self.pool:
            if staying > 1 and engine.state in (p.JOINED, p.OPEN) and not engine.held \
                    and engine.context in self._lenders:
                staying -= 1
                engine.is_dry = True
                self._close(engine)

    def _has_run_dry(self) -> bool:
        """Whether nothing is left to be given out; what runs may still fail, and be tried again."""
        if self.stop is not None:
            return True
        return self._source_ended and not (self.backlog or self.ready or self.waiting)

    def _read_ahead(self) -> None:
        if self._source_ended or self._is_reading:
            return
        wanted = min(max(LEAST_READ, 2 * sum(e.slots + e.prefetch for e in self.pool)), 10**6)
        if len(self.backlog) < wanted:
            self._is_reading = True
            self._effects.append(Read(min(max(wanted, LEAST_READ), MOST_READ)))

    # -- the end ----------------------------------------------------------------------

    def _is_over(self) -> bool:
        """Whether nothing can happen any more except that engines leave."""
        if self.pool.live_count or any(
            e.state == p.OPENING and not e.is_absent for e in self.pool
        ):
            return False
        if self.stop is not None:
            return True
        if self.pool.holds_unknown:
            return False
        has_work = bool(self.ready or self.waiting or self.backlog)
        if has_work or not self._source_ended:
            return self._is_stranded()
        if not self._has_looked_again:
            self._look_again()
            return False
        return not self._is_reading

    def _look_again(self) -> None:
        """The list may have grown since its end was met: those lines are run as well."""
        self._has_looked_again = self._is_reading = True
        self._effects.append(Read(LEAST_READ))

    def _is_stranded(self) -> bool:
        """Whether tasks are left and nothing that could run them is there or will come."""
        if len(self.pool) or self._awaits_engines or not self._asked_for_engines:
            return False
        if not (self.ready or self._front_is_task()):
            return False
        if self.policy.how_to_add and (self.policy.starts_bare or self._left_in_order):
            self._say_waiting()
            return False
        self._stop(Stop(SOFT, v.NO_RESOURCES, "no engine is left that could run a task"))
        return True

    def _say_waiting(self) -> None:
        """Nobody is there, and none was lost: somebody may add slots, once told how."""
        if self._at >= self._say_waiting_at:
            self._say_waiting_at = self._at + SAY_WAITING_EVERY_S
            self._tell("warning", "tasks wait, and no slots are there to run them on\n"
                                  f"  do:    add some: {self.policy.how_to_add}")
        self._effects.append(WakeAt(self._say_waiting_at))

    def _finish(self) -> None:
        self._let_dispensable_go()
        self.is_finishing = True
        for engine in self.pool:
            if engine.state != p.STARTING:
                self._close(engine)
        self._let_absent_go()
        if len(self.pool):
            return
        self._flush_entries()
        if self._record_fault:
            if self.stop is not None and self.stop.how >= END:
                self.is_finished = True
                self._effects.append(Finish(self._verdict(v.NO_RECORD)))
            return
        if self._durable_number < self._record_number:
            self._effects.append(MakeDurable())
            return
        self.is_finished = True
        self._effects.append(Finish(self._verdict(self.stop.ending if self.stop else v.COMPLETE)))

    def _let_dispensable_go(self) -> None:
        for engine in list(self.pool):
            if engine.state == p.STARTING and engine.is_dispensable:
                self.pool.remove(engine.id)
                self._tell("info", f"{engine.node} is not waited for: nothing is left to do")
                self._effects.append(LeaveAlone(engine.id))

    def _let_absent_go(self) -> None:
        """Engines that are away are waited for a moment, and not for ever.

        They hold nothing, or this driver never knew what: a later one has to find them then.
        """
        absent = list(self.pool.absent.values())
        if not absent:
            return
        if self._lets_absent_go_at is None:
            self._lets_absent_go_at = self._at + RETURNS_WITHIN_S
        if self.stop is None and self._at < self._lets_absent_go_at:
            self._effects.append(WakeAt(self._lets_absent_go_at))
            return
        for engine in absent:
            self._left_behind += engine.holds_unknown
            self.pool.remove(engine.id)
            self._tell("warning", f"engine on {engine.node} is still cut off: the run ends"
                                  " without it")
            self._effects.append(LeaveAlone(engine.id, engine.holds_unknown))

    def _verdict(self, ending: str) -> v.Verdict:
        left = bool(self.ready or self.waiting or self.counts.cut or self._left_behind)
        left = left or not self._source_ended
        left = left or any(type(item) is Task for item in self.backlog)
        stop = self.stop
        return v.Verdict(
            ending, self._has_failures, left,
            (stop.reason if stop else "") or self._record_fault,
            stop.signal if stop else 0, stop.error if stop else None,
        )

    def _close(self, engine: p.EngineState) -> None:
        if engine.state in (p.CLOSING, p.STARTING):
            return
        engine.was_told_to_leave = True
        if engine.is_absent:
            return  # told when it is back
        was_opened = engine.state in (p.OPENING, p.OPEN, p.DRAINING)
        engine.state = p.CLOSING
        is_killed = self.stop is not None and self.stop.how >= KILL
        self._effects.append(CloseEngine(engine.id, was_opened and not is_killed))

    # -- effects that are gathered ---------------------------------------------------------

    def _acknowledge_later(self, engine: int, seq: int) -> None:
        number = self._record_number + len(self._entries)
        self._unacknowledged.append((number, engine, seq))

    def _flush_entries(self, first: bool = False) -> None:
        """Turn what was gathered into one Record, before everything else of this step."""
        if not self._entries:
            return
        self._record_number += len(self._entries)
        record = Record(self._entries, self._record_number)
        self._entries = []
        if first:
            self._effects.insert(0, record)
        else:
            self._effects.append(record)

    def _tell(self, level: str, text: str) -> None:
        self._effects.append(Tell(level, text))
