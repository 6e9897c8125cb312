"""Engines whose link this driver dials: from the first call to their end, whatever is cut.

Such an engine may live on when its link has ended, and run its tasks; so may one that an
earlier driver has started. It is dialled again and again (``EngineCutOff``) until it is
found (``EngineReturned``) or what is found is the proof that nothing of it runs
(``EngineLost``). One that never had a task needs no proof.

A jump host in front of all others sees every connection; sshd refuses at random from ten
on that have not logged in yet (MaxStartups 10:30:100). So they are dialled a few at a time.
"""

from __future__ import annotations

from collections import deque

from overnight.core.events import EngineAbandoned, EngineCutOff, EngineLost, SourceFailed
from overnight.driver.engines import NoLink
from overnight.errors import NoResources, ResumeRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from overnight.core.events import Event
    from overnight.driver.engines import EngineEnd
    from overnight.ports import EngineHandle

    class Host(Protocol):
        """What this needs of the driver's loop."""

        @property
        def dialling_count(self) -> int: ...
        def attach(self, engine: EngineEnd) -> None: ...
        def detach(self, engine: EngineEnd) -> None: ...
        def happened(self, *events: Event) -> None: ...
        def leave_out(self, node: str) -> None: ...

MOST_AT_ONCE = 8
FIRST_AGAIN_S = 1.0
MOST_AGAIN_S = 30.0


class Reach:
    """All of them that are not simply there."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: deque[EngineEnd] = deque()  # never dialled so far
        self._absent: dict[int, EngineEnd] = {}  # by id: cut off, and not found since
        self._tries: dict[int, int] = {}  # by id: in vain, since it was cut off
        self._due: dict[int, float] = {}  # by id: when it is dialled next
        self._gives_up = ""  # why nobody is waited for any more
        self._abandoned: list[EngineHandle] = []

    def add(self, engine: EngineEnd) -> None:
        """This one is to be started when its turn comes."""
        self._waiting.append(engine)

    def busy_nodes(self) -> set[str]:
        """Hosts that have, or may have, an engine to which there is no link."""
        return {each.handle.node for each in (*self._waiting, *self._absent.values())}

    # ---- dialling

    def look_after(self, now: float) -> None:
        """Dial those whose turn it is, for the first time or again."""
        count = self._host.dialling_count if self._waiting else MOST_AT_ONCE
        while self._waiting and count < MOST_AT_ONCE:
            count += 1
            self._begin(self._waiting.popleft(), now)
        for id in [id for id, at in self._due.items() if at <= now]:
            del self._due[id]
            self._redial(self._absent[id], now)

    def _begin(self, engine: EngineEnd, now: float) -> None:
        try:
            engine.begin(now)
        except NoResources as error:
            engine.trouble = error.what
            engine.link.close()
            self.cut_off(engine, error.what, now)
        else:
            self._host.attach(engine)

    def _redial(self, engine: EngineEnd, now: float) -> None:
        try:
            engine.redial(now)
        except NoResources as error:
            engine.trouble = error.what
            self.cut_off(engine, error.what, now)
        else:
            self._host.attach(engine)

    def wake_at(self) -> float | None:
        """When somebody is to be dialled next."""
        return min(self._due.values(), default=None)

    def found(self, engine: EngineEnd) -> None:
        """It is here, and has said all that it kept."""
        if self._absent.pop(engine.id, None) is not None:
            self._tries.pop(engine.id, None)

    # ---- cuts

    def cut_off(self, engine: EngineEnd, reason: str, now: float) -> None:
        """The link of an engine has ended, or it was looked for in vain.

        The driver's loop has forgotten it.
        """
        engine.handle.end()
        engine.link = NoLink()
        if not engine.may_live_on:  # it has had no task
            self._host.leave_out(engine.handle.node)
            self._host.happened(EngineLost(engine.id, reason))
        elif engine.is_refused:
            self._abandon(engine, reason)
            self._host.happened(SourceFailed(_refused(engine)))
        elif engine.proof is not None and engine.proof.is_ended:
            self._drop(engine)
            self._host.happened(EngineLost(engine.id, reason))
        elif self._gives_up:
            self._abandon(engine, self._gives_up)
        else:
            self._absent[engine.id] = engine
            self._host.happened(EngineCutOff(engine.id, reason))
            self._dial_later(engine, now)

    def _dial_later(self, engine: EngineEnd, now: float) -> None:
        """At once where the cut is new, then after longer and longer."""
        tries = self._tries.get(engine.id, 0)
        self._tries[engine.id] = tries + 1
        wait_s = min(FIRST_AGAIN_S * 2 ** (tries - 1), MOST_AGAIN_S) if tries else 0.0
        self._due[engine.id] = now + wait_s

    def forget(self, node: str) -> int:
        """The user says that nothing runs on this host any more; how many engines that were."""
        engines = [each for each in self._absent.values() if each.handle.node == node]
        for engine in engines:
            self._drop(engine)
            self._host.happened(EngineLost(engine.id, "its machine is gone, as the user says"))
        return len(engines)

    @property
    def left_behind(self) -> list[EngineHandle]:
        """Engines that may live on with tasks that have no row."""
        unheard = [each.handle for each in self._absent.values() if not each.has_joined]
        return [*self._abandoned, *unheard]

    def absent_nodes(self) -> list[str]:
        """Hosts of engines that are cut off."""
        return [engine.handle.node for engine in self._absent.values()]

    def abandon(self, reason: str) -> None:
        """Look for nobody any more, from now on."""
        self._gives_up = reason
        for engine in list(self._absent.values()):
            self._abandon(engine, reason)
        while self._waiting:
            engine = self._waiting.popleft()
            engine.handle.end()
            self._host.happened(EngineLost(engine.id, reason))

    def _abandon(self, engine: EngineEnd, reason: str) -> None:
        self._abandoned.append(engine.handle)
        self._drop(engine)
        self._host.happened(EngineAbandoned(engine.id, reason))

    def leave_alone(self, id: int, may_run_tasks: bool) -> None:
        """The run ends without this one."""
        engine = self._absent.get(id)
        if engine is not None:
            if may_run_tasks:
                self._abandoned.append(engine.handle)
            self._drop(engine)
        for engine in [each for each in self._waiting if each.id == id]:
            self._waiting.remove(engine)
            engine.handle.end()

    def _drop(self, engine: EngineEnd) -> None:
        """Have no more to do with it; it goes on alone, if it lives."""
        self._absent.pop(engine.id, None)
        self._tries.pop(engine.id, None)
        self._due.pop(engine.id, None)
        self._host.detach(engine)  # it may be dialled just now
        engine.handle.end()

    def close(self) -> None:
        """Hang up."""
        for engine in (*self._waiting, *self._absent.values()):
            engine.handle.end()


def _refused(engine: EngineEnd) -> ResumeRefused:
    return ResumeRefused(
        f"the engine on {engine.handle.node} obeys a later driver of this run",
        kept="what that engine runs is recorded there",
        do="leave the run to the other driver",
    )
