"""The names of a run's files. One prefix, one run; the prefix is an absolute path."""

from __future__ import annotations


class RunFiles:
    """Where the files of a run lie.

    Attributes:
        prefix: Absolute path without an ending; its last component is the run's id.
    """

    __slots__ = ("prefix",)

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @property
    def run_id(self) -> str:
        """DISBATCH_JOBID: last component of the prefix."""
        return self.prefix.rsplit("/", 1)[-1]

    @property
    def status(self) -> str:
        """One row per task: the record that counts."""
        return f"{self.prefix}_status.txt"

    @property
    def tasks(self) -> str:
        """One JSON line per attempt."""
        return f"{self.prefix}_tasks.jsonl"

    @property
    def driver_log(self) -> str:
        """What the driver did, unless --logfile names another file."""
        return f"{self.prefix}_driver.log"

    @property
    def utility_script(self) -> str:
        """The script that adds contexts and shows the monitor."""
        return f"{self.prefix}_dbUtil.sh"

    @property
    def lock(self) -> str:
        """Names the driver that owns these files, while it lives."""
        return f"{self.prefix}_lock"

    @property
    def engine_file(self) -> str:
        """The far half, which every engine of the run executes; while the run lives."""
        return f"{self.prefix}_engine.pyz"

    @property
    def engines(self) -> str:
        """How to reach engines that outlive their driver; while there are any."""
        return f"{self.prefix}_engines.json"

    @property
    def join(self) -> str:
        """How others join: addresses and the secret; while the driver listens."""
        return f"{self.prefix}_join"

    @property
    def description(self) -> str:
        """How the run was started: what ``overnight resume`` needs."""
        return f"{self.prefix}_run.json"

    def engine_log(self, label: str, node: str, rank: int) -> str:
        """What an engine and its runners say outside the link."""
        return f"{self.prefix}_{label}_{node}_engine_{rank}.log"

    def context_log(self, label: str) -> str:
        """What the clients of a resource manager say that start the engines of a context."""
        return f"{self.prefix}_{label}.context.log"

    def spool(self, engine: str) -> str:
        """Reports that this one engine kept while no driver listened; until collected."""
        return f"{self.prefix}_engine_{engine}.spool"


def prefix_of_status(path: str) -> str | None:
    """The prefix of a run whose status file this is, or None if it is not named like one.

    >>> prefix_of_status("/data/Tasks_7f_status.txt")
    '/data/Tasks_7f'
    """
    ending = "_status.txt"
    return path[: -len(ending)] if path.endswith(ending) and len(path) > len(ending) else None
