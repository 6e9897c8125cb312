"""Engines, links and drivers that end at random: each task once, and never twice at once."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.conformance.harness_processes import descendants
from tests.e2e.kit import Live, Stage, overnight, run, until
from tests.ssh.kit import ENV, GROUP, PARTS, nothing_is_left
from tests.ssh_lab import NAMES, Hosts, counts

pytestmark = [
    pytest.mark.needs(*PARTS), pytest.mark.xdist_group(GROUP), pytest.mark.slow,
    pytest.mark.flaky(reruns=1),
    pytest.mark.timeout(400),
]

TASKS = 1000
CHAOS_S = 60.0
SEED = 20

TASK = """\
#!/bin/bash
exec 9>> lock.$DISBATCH_TASKID
flock --nonblock 9 || echo "$DISBATCH_TASKID on $(hostname)" >> twice
sleep 0.$((RANDOM % 90 + 10))
echo $DISBATCH_TASKID >> done
"""


class Chaos:
    """What goes wrong next."""

    def __init__(self, stage: Stage, hosts: Hosts, live: Live) -> None:
        self._stage = stage
        self._hosts = hosts
        self._random = random.Random(SEED)
        self.live = live
        self.happened: list[str] = []

    def strike(self) -> None:
        """One thing goes wrong."""
        blow = self._random.choice(
            [self.kill_engine, self.kill_ssh, self.cut, self.kill_driver, self.freeze]
        )
        host = self._random.choice(NAMES)
        self.happened.append(f"{blow.__name__} {host}")
        blow(host)

    def kill_engine(self, host: str) -> None:
        found = [pid for pid, args in self._hosts.processes(host) if "engine.pyz" in args]
        if found:
            pid = self._random.choice(found)  # the engine, a runner, or a relay
            self._hosts.on(host, "bash", "-c", f"kill -9 {pid}; true")

    def kill_ssh(self, host: str) -> None:
        found = [p.pid for p in descendants(self.live.pid) if f" {host} exec sh" in p.command]
        for pid in found[:1]:
            self._stage.run(["kill", "-9", str(pid)])

    def cut(self, host: str) -> None:
        self._hosts.fault("cut", host, *self._random.choice([[], ["--link"], ["--way", "out"]]))
        self.pause(self._random.uniform(1.0, 6.0))
        self._hosts.fault("undo", host)

    def freeze(self, host: str) -> None:
        self._hosts.fault("freeze", host, "--keep-daemon")
        self.pause(self._random.uniform(1.0, 6.0))
        self._hosts.fault("undo", host)

    def kill_driver(self, host: str) -> None:
        self.live.signal(signal.SIGKILL)
        self.live.process.wait()
        self.live = self._stage.start(overnight("resume", "-q", "P"), env=ENV)

    def pause(self, seconds: float) -> None:
        """Let the run go on for a while; nothing is concluded from it."""
        end_at = time.monotonic() + seconds
        until(lambda: time.monotonic() >= end_at, "time passes", seconds + 5.0)


def test_each_task_is_done_once_whatever_dies(stage: Stage, hosts: Hosts) -> None:
    stage.write("task.sh", TASK).chmod(0o755)
    stage.write("Tasks", f"#DISBATCH REPEAT {TASKS} ./task.sh")
    command = run("-s", counts(each=4), "--crash-limit", "1000", "-q", "-p", "P", "Tasks")
    chaos = Chaos(stage, hosts, stage.start(command, env=ENV))
    stage.has_rows("P", 5)
    end_at = time.monotonic() + CHAOS_S
    while time.monotonic() < end_at and not chaos.live.is_over:
        chaos.strike()
        chaos.pause(1.0)
    for _ in range(5):  # a resume may have met a host that was cut off
        if chaos.live.wait(150.0).status == 0:
            break
        chaos.live = stage.start(overnight("resume", "-q", "P"), env=ENV)
    story = f"{chaos.happened}\n{chaos.live.err}"
    assert stage.read("twice") == "", story
    assert stage.codes("P") == dict.fromkeys(range(TASKS), 0), story
    assert {int(line) for line in stage.read("done").split()} == set(range(TASKS)), story
    nothing_is_left(hosts)
