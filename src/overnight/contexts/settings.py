"""How the engines of a run are set up: what is the same for all, and what is of one node."""

from __future__ import annotations

import os

from overnight.guard.private import private_directory
from overnight.model.messages import Setup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from overnight.core.allocate import NodeShare
    from overnight.model.options import RunOptions
    from overnight.model.run import RunFiles


class Settings:
    """Makes the Setup of each engine of a run; contexts hold it.

    Attributes:
        options: Of the run.
        files: Of the run.
        generation: Of its driver.
        output_dir: Where output of attempts is kept, or None.
    """

    def __init__(
        self, options: RunOptions, files: RunFiles, generation: int, name_tasks: str,
        output_dir: str | None,
    ) -> None:
        self.options = options
        self.files = files
        self.generation = generation
        self.output_dir = output_dir
        self._name_tasks = name_tasks
        self._driver = os.urandom(8).hex()

    def setup(
        self, rank: int, share: NodeShare, slot_variables: Sequence[list[bytes]] = (),
        attach: str | None = None, spools: Sequence[str] | None = None,
    ) -> Setup:
        """How an engine runs the tasks.

        Args:
            rank: DISBATCH_ENGINE_RANK.
            share: What its node gives the run.
            slot_variables: For each slot, ``b"NAME=VALUE"`` of divided devices.
            attach: Its door, where it is taken over and keeps that.
            spools: Its spools, likewise.
        """
        options, files = self.options, self.files
        own = os.urandom(8).hex()  # of this engine alone
        private = private_directory()
        return Setup(
            run=files.run_id,
            name_tasks=self._name_tasks,
            generation=self.generation,
            rank=rank,
            slots=share.slots,
            cores_per_task=share.cores_per_task,
            cwd=os.getcwd(),
            variables=[],
            slot_variables=slot_variables,
            always_shell=options.always_shell,
            late_output_s=options.late_output,
            leaves_children=options.leave_children,
            timeout_s=options.timeout,
            kill_after_s=options.kill_after,
            output_dir=self.output_dir,
            spools=list(spools or (files.spool(own), f"{private}/{own}.spool")),
            attach=attach or f"{private}/{own}.sock",
            keep_reports_s=options.keep_reports,
            driver=self._driver,
        )


def as_entries(values: Iterable[Mapping[str, str]]) -> list[list[bytes]]:
    """Variables by name, for each slot, as they travel: ``b"NAME=VALUE"``."""
    return [
        [f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in each.items()]
        for each in values
    ]
