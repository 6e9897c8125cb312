"""Engines that have joined by themselves: somebody has started them, somewhere.

Nobody here is their parent, and on another machine nobody here can look at them. So such
an engine is never ended by its driver, and counts as gone when it has said so, when this
machine is its own and its process has ended, or when the user says so.
"""

from __future__ import annotations

import os

from overnight.contexts.local import NotDialled
from overnight.contexts.noted import NotedEngine, note
from overnight.contexts.survivors import Spools, has_left, leftovers_of
from overnight.core.allocate import NodeShare
from overnight.errors import LinkBroken, NoResources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set
    from typing import Any

    from overnight.contexts.settings import Settings
    from overnight.contexts.stepproof import StepProof
    from overnight.core.events import KeptReports
    from overnight.core.recorded import Recorded
    from overnight.model.messages import Setup
    from overnight.ports import LaunchedHandle

MOST_SLOTS = 16_384


class JoinedEngine(NotDialled):
    """One such engine.

    Attributes:
        setup: What it is told.
        node: Its host as rows have it.
        key: Its own name for itself.
        context: Label of its context.
        task_limit: Of that context, 0 for none.
        lends: Its node is given back, by whoever started it, when it leaves.
    """

    read_fd = write_fd = -1  # its link is a connection that it has made
    lends = False

    def __init__(
        self, noted: NotedEngine, setup: Setup, spools: Spools, recorded: Recorded,
        task_limit: int = 0, engine_file: str = "",
    ) -> None:
        self.setup = setup
        self.node = noted.node
        self.key = noted.key
        self.context = noted.label
        self.task_limit = task_limit
        self._noted = noted
        self._proof: StepProof | None = None
        self._engine_file = engine_file
        self._spools = spools
        self._recorded = recorded

    @property
    def noted(self) -> NotedEngine:
        """How a later driver finds it."""
        return self._noted

    def words(self) -> str:
        """Why its link has ended: nobody here knows."""
        return "its link has ended"

    def has_ended(self) -> bool:
        """Whether it is certain that its process has ended. False: nobody knows.

        Raises:
            ResumeRefused: What it left cannot be read.
        """
        if self._noted.step:
            return has_left(self._noted) or self._step_has_ended()
        if self._noted.is_here:
            return not self._noted.lives()
        return has_left(self._noted)

    def _step_has_ended(self) -> bool:
        """Whether Slurm says so of the step it is part of: other processes of that run tasks."""
        if self._proof is None:
            from overnight.contexts.stepproof import StepProof

            self._proof = StepProof(self._noted.step, self._noted.node)
        return self._proof.is_there()

    def is_gone(self) -> bool:
        """Whether there is nothing to wait for: it has ended, or nobody here can tell."""
        return not self._noted.is_here or not self._noted.lives()

    def end(self) -> None:
        """Nothing: whoever started it ends it. It is told to leave over its link."""

    def reports_left(self) -> Sequence[KeptReports]:
        """What is in its spools, once its process has ended.

        Raises:
            ResumeRefused: One cannot be read.
        """
        return self._spools.read(self._noted)

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        """End whatever it had started here, but what these tasks were allowed to leave.

        Returns:
            Numbers of processes that cannot be ended; none: nothing of it runs any more.
        """
        if not self._noted.is_here and self._noted.step and not has_left(self._noted):
            from overnight.contexts.stepsweep import sweep

            return sweep(self._noted, self._engine_file, self.setup.kill_after_s, released)
        if not self._noted.is_here:
            return ()  # it has said itself that nothing runs; or the user has
        return leftovers_of(self._noted, self.setup, released, self._recorded)

    @property
    def spool_paths(self) -> Sequence[str]:
        """Files in which it may have kept reports."""
        return self._noted.spools


class Joined:
    """Takes in engines that call a run."""

    def __init__(self, settings: Settings, recorded: Recorded, labels: Sequence[str]) -> None:
        """Take in nobody yet.

        Args:
            settings: Of the run.
            recorded: What need not be recorded again.
            labels: Of contexts that there are already.
        """
        self._settings = settings
        self._recorded = recorded
        self._labels = set(labels)

    def admit(
        self, about: Mapping[str, Any], hello: Mapping[str, Any], next_rank: Callable[[], int]
    ) -> JoinedEngine:
        """Take in an engine; it is noted, so that a later driver finds it again.

        Args:
            about: What HELLO says under ``join``.
            hello: All that it says.
            next_rank: Gives a number that no other engine of the run has.

        Raises:
            NoResources: It cannot be taken in.
            LinkBroken: What it says of itself cannot be understood.
        """
        share = _share(about)
        try:
            label = self.label(str(about["label"]))
            key, place, task_limit = (
                str(about["id"]), str(about["place"]), int(about["task_limit"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LinkBroken(f"an engine that joins says too little: {error!r}") from error
        if "/" in label:
            raise NoResources(f"a label names files: {label!r} must not hold a slash")
        setup = self._settings.setup(next_rank(), share, _variables(about, share.slots))
        _add_of_step(setup, about)
        noted = NotedEngine(
            int(hello["pid"]), int(hello["start"]), str(hello["boot"]), place,
            share.node, setup.run, setup.rank, setup.attach, setup.spools,
            [setup.cwd, *([os.environ["PWD"]] if "PWD" in os.environ else [])],
            key=key, label=label, step=str(about.get("step") or ""),
        )
        self._note(noted)
        engine = self._engine(noted, setup, task_limit)
        engine.lends = about.get("lends") is True
        return engine

    def admit_launched(
        self, handle: LaunchedHandle, about: Mapping[str, Any], hello: Mapping[str, Any]
    ) -> None:
        """Take in an engine that a context of this run has started; it is noted as any.

        Raises:
            NoResources: It cannot be noted.
            LinkBroken: What it says of itself cannot be understood.
        """
        setup = handle.setup
        try:
            noted = NotedEngine(
                int(hello["pid"]), int(hello["start"]), str(hello["boot"]), str(about["place"]),
                handle.node, setup.run, setup.rank, setup.attach, setup.spools,
                [setup.cwd, *([os.environ["PWD"]] if "PWD" in os.environ else [])],
                key=str(about["id"]), label=handle.context, step=str(about.get("step") or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LinkBroken(f"an engine that joins says too little: {error!r}") from error
        self._note(noted)
        handle.called(noted, Spools(self._recorded), self._recorded)

    def _note(self, noted: NotedEngine) -> None:
        try:
            note(self._settings.files, noted)
        except OSError as error:
            raise NoResources(
                f"an engine on {noted.node} cannot be noted: {error.strerror}",
                where=self._settings.files.engines,
            ) from error

    def again(self, noted: NotedEngine) -> JoinedEngine:
        """An engine that an earlier driver has taken in, and that may call this one."""
        share = NodeShare(noted.node, 1, 1)
        setup = self._settings.setup(noted.rank, share, (), noted.attach, noted.spools)
        self._labels.add(noted.label)
        return self._engine(noted, setup, 0)

    def _engine(self, noted: NotedEngine, setup: Setup, task_limit: int) -> JoinedEngine:
        return JoinedEngine(
            noted, setup, Spools(self._recorded), self._recorded, task_limit,
            self._settings.files.engine_file,
        )

    def set_up(self, engine: JoinedEngine, about: Mapping[str, Any]) -> None:
        """Give an engine that calls again the slots it says it has.

        Raises:
            LinkBroken: What it says of itself cannot be understood.
        """
        share = _share(about)
        engine.setup.slots = share.slots
        engine.setup.cores_per_task = share.cores_per_task
        engine.setup.slot_variables = _variables(about, share.slots)

    def label(self, wanted: str) -> str:
        """The label of a context: what was wanted, or the next number that is free."""
        number = 0
        while not wanted:
            free = f"SSH{number}"
            wanted = "" if free in self._labels else free
            number += 1
        self._labels.add(wanted)
        return wanted


def _share(about: Mapping[str, Any]) -> NodeShare:
    try:
        node, slots, cores = str(about["node"]), int(about["slots"]), int(about["cores_per_task"])
    except (KeyError, TypeError, ValueError) as error:
        raise LinkBroken(f"an engine that joins says too little of itself: {error!r}") from error
    if not 0 < slots <= MOST_SLOTS:
        raise LinkBroken(f"an engine with {slots} slots: from 1 to {MOST_SLOTS} can be served")
    if not node or any(character in node for character in "\t\n/"):
        raise LinkBroken(f"an engine on a host called {node!r}: that cannot stand in a row")
    return NodeShare(node, slots, max(1, cores))


def _add_of_step(setup: Setup, about: Mapping[str, Any]) -> None:
    """What the launcher of a step says of all its slots; see ``contexts/slurmlaunch``."""
    divided, removes, variables = (about.get(each) or [] for each in
                                   ("divided", "removes", "variables"))
    is_sound = all(isinstance(each, str) for each in (*divided, *removes)) and all(
        isinstance(each, bytes) and b"=" in each and b"\0" not in each for each in variables
    )
    if not is_sound:
        raise LinkBroken("an engine that joins says of its step what is not understood")
    setup.divided, setup.removes = list(divided), list(removes)
    setup.variables = [*setup.variables, *variables]


def _variables(about: Mapping[str, Any], slots: int) -> list[list[bytes]]:
    given = about.get("slot_variables") or []
    is_sound = isinstance(given, list) and len(given) in (0, slots) and all(
        isinstance(each, list) and all(isinstance(entry, bytes) and b"=" in entry
                                       and b"\0" not in entry for entry in each)
        for each in given
    )
    if not is_sound:
        raise LinkBroken("an engine that joins gives variables that are none")
    return given
