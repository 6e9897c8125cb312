"""Lists whose tasks prove that no two copies of one of them run at once."""

from __future__ import annotations

from tests.e2e.kit import Live, Stage, until
from tests.ssh_lab import NAMES, QUICK, Hosts

PARTS = ("ssh hosts",)
GROUP = "lab"
ENV = {"OVERNIGHT_SSH": QUICK}

TASK = """\
#!/bin/bash
# Holds a lock for as long as anything of it runs: whoever finds it held is a second copy.
exec 9>> lock.$DISBATCH_TASKID
flock --nonblock 9 || echo "$DISBATCH_TASKID on $(hostname)" >> twice
echo "$DISBATCH_TASKID $(hostname)" >> started
until [ -e go ] || [ -e go.$DISBATCH_TASKID ]; do sleep 0.05; done
"""


def write_locked(stage: Stage, count: int) -> None:
    """A list ``Tasks`` of so many tasks that end once there is a file ``go``."""
    stage.write("task.sh", TASK).chmod(0o755)
    stage.write("Tasks", f"#DISBATCH REPEAT {count} ./task.sh")


def started(stage: Stage) -> list[str]:
    """Task and host of every start, in their order."""
    return stage.read("started").splitlines()


def have_started(stage: Stage, count: int, live: Live | None = None) -> None:
    """Wait for so many starts."""
    until(lambda: len(started(stage)) >= count or (live and live.is_over), f"{count} starts")
    assert len(started(stage)) >= count, f"it ended before: {live and live.err}"


def each_ran_once(stage: Stage, prefix: str, count: int) -> None:
    """Every task has one row, ended well, was started once, and never beside a copy of it."""
    assert stage.codes(prefix) == dict.fromkeys(range(count), 0)
    assert stage.read("twice") == ""
    assert sorted(int(line.split()[0]) for line in started(stage)) == list(range(count))


def nothing_is_left(hosts: Hosts) -> None:
    """Wait until no engine, runner or task is on any host."""
    def left() -> dict[str, list[tuple[int, str]]]:
        found = {name: hosts.processes(name) for name in NAMES}
        return {name: processes for name, processes in found.items() if processes}

    try:
        until(lambda: not left(), "nothing is left on any host", 20.0)
    except AssertionError:
        raise AssertionError(f"left running: {left()}") from None
