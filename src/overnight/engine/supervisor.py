"""The loop of an engine's process: what the driver and the runners say in, effects out.

What is to happen is decided by ``core/engine``; here it is done.
"""

from __future__ import annotations

import os
import time
from select import epoll

from overnight.core import engine_events as e
from overnight.core.engine import Engine
from overnight.core.runners import NEVER
from overnight.core.slot_events import EndAsked
from overnight.engine.driver_end import DriverEnd
from overnight.engine.runner_ends import RunnerEnds
from overnight.engine.spool import Spool
from overnight.formats import link as f
from overnight.guard.sweep import LOOK_S
from overnight.model import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from overnight.engine.ranks import RankDoor
    from overnight.engine.ticket import Ticket

EPOLLIN = 1
SIGTERM = 15

RETRY_S = 5.0
"""How often a spool that cannot be written, or a door that cannot be opened, is tried."""

DESCRIPTORS_A_SLOT = 3
SPARE_DESCRIPTORS = 48

_NOTHING: Mapping[str, object] = {}


class Supervisor:
    """One engine, from its greeting to its end."""

    def __init__(
        self, read_fd: int, write_fd: int, signal_fd: int, inherited: list[bytes],
        version: str, lacks: frozenset[str], ticket: Ticket | None = None,
        told: Mapping[str, object] = _NOTHING, is_far: bool = False, launch: str = "",
    ) -> None:
        """Greet the driver and make ready.

        Args:
            read_fd: From the driver.
            write_fd: To it; may be the same.
            signal_fd: Gives the numbers of signals this process has had, a byte each.
            inherited: The environment this process was started with.
            version: Of the package.
            lacks: What to do without although the kernel may have it.
            ticket: With which it joins by itself.
            told: What else HELLO says.
            is_far: The link may be cut without a sign of it here: the door is always open.
            launch: Where the runners are ranks of a step: the name of that.
        """
        self._poll = epoll()
        self._signal_fd = signal_fd
        self._poll.register(signal_fd, EPOLLIN)
        self._is_on_its_own = ticket is not None
        self._ranks: RankDoor | None = None
        self._engine = self._make_engine(launch, inherited)
        self._driver = DriverEnd(
            self._poll, self._engine, version, read_fd, write_fd, ticket, told
        )
        self._runners = RunnerEnds(self._poll, inherited, lacks, self._driver.say)
        self._events: list[e.Event] = []
        self._spool = Spool(self._driver.notice)
        self._is_far = is_far
        self._wants_door = False
        self._retry_at = NEVER
        self._has_left = False

    def _make_engine(self, launch: str, inherited: list[bytes]) -> Engine:
        core_count = len(os.sched_getaffinity(0))
        if not launch:
            return Engine(core_count, _most_slots_each(), self._is_on_its_own)
        # Not imported where slots are forks: an engine's start counts in milliseconds.
        from overnight.core.deadline import Deadline
        from overnight.core.ranks import Ranks
        from overnight.engine.ranks import RankDoor, by_name

        self._ranks = RankDoor(launch)
        self._poll.register(self._ranks.fd, EPOLLIN)
        return Engine(
            core_count, 1, self._is_on_its_own, Ranks(by_name(inherited)), Deadline()
        )

    def run(self) -> None:
        """Run until the engine leaves; no process of it is left then."""
        while not self._has_left:
            for fd, _ in self._poll.poll(self._timeout_s()):
                self._events += self._receive(fd)
            self._turn()
        self._driver.stop_listening()
        if self._ranks is not None:
            self._ranks.close()
        self._runners.close()
        self._driver.leave()

    @property
    def was_set_up(self) -> bool:
        """Whether a driver has taken it in."""
        return self._engine.setup is not None

    def _timeout_s(self) -> float | None:
        wake_at = min(self._engine.wake_at, self._retry_at)
        if self._runners.is_sweeping:
            wake_at = min(wake_at, time.monotonic() + LOOK_S)
        return None if wake_at == NEVER else max(0.0, wake_at - time.monotonic())

    def _receive(self, fd: int) -> list[e.Event]:
        events = self._runners.receive(fd)
        if events is None:
            events = self._driver.receive(fd)
        if events is None and fd == self._signal_fd and SIGTERM in os.read(fd, 512):
            events = [e.Terminated()]
        if events is None and self._ranks is not None and fd == self._ranks.fd:
            events = self._ranks.admit()
        return events or []

    def _turn(self) -> None:
        now = time.monotonic()
        if self._runners.is_sweeping:
            self._events += self._runners.look()
        if now >= self._retry_at:
            self._retry_at = NEVER
            self._open_door()
            self._write_spool()
        while True:
            events, self._events = self._events, []
            for effect in self._engine.step(events, now):
                _PERFORMERS[type(effect)](self, effect)
            if self._spool.is_waiting and self._retry_at == NEVER:
                self._write_spool()
            if not self._events:
                break
        self._runners.push()
        self._driver.push()

    # ---- towards the driver

    def _say_ended(self, effect: e.SayEnded) -> None:
        if effect.rows:
            payload = f.numbered(effect.sequence, effect.rows)
        else:
            payload = f.encode_reports(effect.sequence, [report for _, report in effect.pairs])
        self._driver.say(m.ENDED, payload)

    def _say_kept(self, effect: e.SayKept) -> None:
        self._driver.say(m.KEPT, f.encode_kept(effect.sequence, effect.pairs))

    def _say_commands_ended(self, effect: e.SayCommandsEnded) -> None:
        payload = f.encode_per_engine_reports(effect.sequence, effect.rows)
        self._driver.say(m.PE_ENDED, payload)

    def _say_opened(self, effect: e.SayOpened) -> None:
        self._driver.say(m.OPENED, b"")

    def _say_recalled(self, effect: e.SayRecalled) -> None:
        self._driver.say(m.RECALLED, f.encode_ids(effect.ids))

    def _say_taken(self, effect: e.SayTaken) -> None:
        if effect.attempts:
            self._driver.say(m.RUNNING, f.encode_attempts(effect.attempts))
        self._driver.say(m.TAKEN, f.encode_ids(effect.ids))

    def _say_room(self, effect: e.SayRoom) -> None:
        self._driver.say(m.ROOM, f.encode_control({"slots": effect.slots}))

    def _say_notice(self, effect: e.SayNotice) -> None:
        self._driver.notice(effect.level, effect.text)

    def _say_closed(self, effect: e.SayClosed) -> None:
        self._driver.say(m.CLOSED, b"")

    def _refuse(self, effect: e.Refuse) -> None:
        self._driver.notice("ERROR", f"a driver of generation {effect.seen} has this engine")
        self._events.append(self._driver.hang_up())

    # ---- towards the runners

    def _start_runner(self, effect: e.StartRunner) -> None:
        try:
            self._runners.start(effect.runner, self._driver.setup_payload)
        except OSError as error:
            self._driver.notice("ERROR", f"no process for a runner: {error.strerror}")
            self._events.append(e.RunnerDied(effect.runner))

    def _set_up_runners(self, effect: e.SetUpRunners) -> None:
        payload = self._driver.setup_payload
        if effect.slot_variables is not None:
            mapping = {**f.decode_control(payload), "slot_variables": effect.slot_variables}
            payload = f.encode_control(mapping)
        self._runners.tell_all(m.SETUP, payload)
        if self._engine.setup is not None:
            self._spool.paths = self._engine.setup.spools
        if self._is_far:
            self._wants_door = True
            self._open_door()

    def _admit_rank(self, effect: e.AdmitRank) -> None:
        self._runners.admit(effect.runner, effect.guest, self._driver.setup_payload)

    def _turn_away(self, effect: e.TurnAway) -> None:
        os.close(effect.guest)

    def _give_slots(self, effect: e.GiveSlots) -> None:
        self._runners.tell(effect.runner, m.SLOTS, f.encode_control({"slots": effect.slots}))

    def _give(self, effect: e.Give) -> None:
        self._runners.tell(effect.runner, m.ASSIGN, f.encode_attempts(effect.attempts))

    def _run_command(self, effect: e.RunCommand) -> None:
        self._runners.tell(effect.runner, m.START, f.encode_commands((effect.command,)))

    def _take_back(self, effect: e.TakeBack) -> None:
        self._runners.tell(effect.runner, m.RECALL, f.encode_ids(effect.ids))

    def _pass_end(self, effect: e.PassEnd) -> None:
        request = effect.request
        mapping = {name: getattr(request, name) for name in EndAsked.__slots__}
        self._runners.tell(effect.runner, m.END, f.encode_control(mapping))

    def _end_orphans(self, effect: e.EndOrphans) -> None:
        setup = self._engine.setup
        if setup is not None:
            self._runners.end_orphans(
                effect.runner, setup.run, setup.rank, setup.kill_after_s, effect.slot
            )

    # ---- alone

    def _keep(self, effect: e.Keep) -> None:
        payload = f.encode_kept(effect.sequence, effect.pairs)
        self._spool.add(effect.sequence, m.KEPT, payload)

    def _keep_commands(self, effect: e.KeepCommands) -> None:
        payload = f.encode_per_engine_reports(effect.sequence, effect.rows)
        self._spool.add(effect.sequence, m.PE_ENDED, payload)

    def _write_spool(self) -> None:
        self._events += [e.Kept(sequence) for sequence in self._spool.write()]
        if self._spool.is_waiting:
            self._retry_at = time.monotonic() + RETRY_S

    def _forget_spool(self, effect: e.ForgetSpool) -> None:
        self._spool.forget()

    def _listen(self, effect: e.Listen) -> None:
        self._wants_door = True
        self._driver.call()
        self._open_door()

    def _open_door(self) -> None:
        setup = self._engine.setup
        if self._wants_door and setup is not None and setup.attach:
            if self._driver.listen(setup.attach):
                self._wants_door = False
            else:
                self._retry_at = time.monotonic() + RETRY_S

    def _stop_listening(self, effect: e.StopListening) -> None:
        if not self._is_far:
            self._wants_door = False
            self._driver.stop_listening()

    def _leave(self, effect: e.Leave) -> None:
        self._has_left = True
        if self._is_on_its_own and self._engine.is_alone and self._spool.paths:
            # Nobody here may look at its process later: this is how it says that it has left.
            self._spool.add(0, m.CLOSED, b"")
            self._spool.write()


def _most_slots_each() -> int:
    """Slots that one runner can hold with the descriptors it may have."""
    descriptors = os.sysconf("SC_OPEN_MAX")
    if descriptors < 0:  # no limit
        return 1 << 20
    return max(1, (descriptors - SPARE_DESCRIPTORS) // DESCRIPTORS_A_SLOT)


_PERFORMERS: dict[type, Callable[[Supervisor, Any], None]] = {
    e.SayEnded: Supervisor._say_ended,
    e.SayKept: Supervisor._say_kept,
    e.SayCommandsEnded: Supervisor._say_commands_ended,
    e.SayOpened: Supervisor._say_opened,
    e.SayRecalled: Supervisor._say_recalled,
    e.SayTaken: Supervisor._say_taken,
    e.SayRoom: Supervisor._say_room,
    e.SayNotice: Supervisor._say_notice,
    e.SayClosed: Supervisor._say_closed,
    e.Refuse: Supervisor._refuse,
    e.StartRunner: Supervisor._start_runner,
    e.SetUpRunners: Supervisor._set_up_runners,
    e.AdmitRank: Supervisor._admit_rank,
    e.TurnAway: Supervisor._turn_away,
    e.GiveSlots: Supervisor._give_slots,
    e.Give: Supervisor._give,
    e.RunCommand: Supervisor._run_command,
    e.TakeBack: Supervisor._take_back,
    e.PassEnd: Supervisor._pass_end,
    e.EndOrphans: Supervisor._end_orphans,
    e.Keep: Supervisor._keep,
    e.KeepCommands: Supervisor._keep_commands,
    e.ForgetSpool: Supervisor._forget_spool,
    e.Listen: Supervisor._listen,
    e.StopListening: Supervisor._stop_listening,
    e.Leave: Supervisor._leave,
}
