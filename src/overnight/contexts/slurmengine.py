"""The step of one node: started by srun here, joined by its engine, ended by Slurm's word.

srun ends when all processes of its step have; but it may be killed, or lose its step when a
node fails, so that it has ended is no proof. A new step can be asked about only when its
engine has said which it is; before that it has been given nothing.
"""

from __future__ import annotations

import signal

from overnight.contexts.local import NotDialled
from overnight.contexts.stepproof import StepProof
from overnight.contexts.stepsweep import sweep
from overnight.contexts.survivors import leftovers_of
from overnight.guard.slurmcalls import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence, Set

    from overnight.contexts.noted import NotedEngine
    from overnight.contexts.survivors import Spools
    from overnight.core.events import KeptReports
    from overnight.core.recorded import Recorded
    from overnight.model.allocation import Step
    from overnight.model.messages import Setup

class SlurmEngine(NotDialled):
    """The step of one node, and the engine in it.

    Attributes:
        launch: Name of the step, by which its engine is known when it calls.
        node: As Slurm names it.
        setup: What the engine is told.
        key: The engine's own name for itself, once it has called.
        context: Label of its context.
        task_limit: None of its own: its context has the run's.
    """

    read_fd = write_fd = -1  # its link is a connection that it makes
    task_limit = 0
    lends = False  # its context says which are given back

    def __init__(
        self, process: subprocess.Popen[bytes], step: Step, setup: Setup, launch: str,
        context: str, engine_file: str,
    ) -> None:
        self.launch = launch
        self.node = step.node
        self.setup = setup
        self.context = context
        self.key = ""
        self._process = process
        self._engine_file = engine_file
        self.noted: NotedEngine | None = None
        self._spools: Spools | None = None
        self._recorded: Recorded | None = None
        self._proof: StepProof | None = None

    @property
    def code(self) -> int | None:
        """What srun ended with; None while it runs."""
        return self._process.poll()

    @property
    def spool_paths(self) -> Sequence[str]:
        """Files in which the engine may have kept reports."""
        return self.setup.spools

    def called(self, noted: NotedEngine, spools: Spools, recorded: Recorded) -> None:
        """The engine has called, and is noted."""
        self.key = noted.key
        self.noted = noted
        self._spools = spools
        self._recorded = recorded
        self._proof = StepProof(noted.step, noted.node, self.launch if noted.is_here else "")

    def is_gone(self) -> bool:
        """Whether srun has ended."""
        return self.code is not None

    def end(self) -> None:
        """End the step, if its srun has not ended."""
        if self.is_gone():
            return
        if self.noted is not None and self.noted.step:
            ask(["scancel", "--signal=KILL", self.noted.step])
        else:
            self._process.send_signal(signal.SIGTERM)  # it ends the step it has started

    def has_ended(self) -> bool:
        """Whether it is proved that nothing of the step runs; asked for in a thread."""
        return self.is_gone() if self._proof is None else self._proof.is_there()

    def reports_left(self) -> Sequence[KeptReports]:
        """What is in its spools, once its step has ended.

        Raises:
            ResumeRefused: One cannot be read.
        """
        if self.noted is None or self._spools is None:
            return ()
        return self._spools.read(self.noted)

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        """End what it had started, but what these tasks were allowed to leave.

        Returns:
            Numbers of processes that cannot be ended; none: nothing of it runs any more.
        """
        noted, recorded = self.noted, self._recorded
        if noted is None or recorded is None:
            return ()  # it was given nothing
        if not noted.is_here:
            return sweep(noted, self._engine_file, self.setup.kill_after_s, released)
        return leftovers_of(noted, self.setup, released, recorded)
