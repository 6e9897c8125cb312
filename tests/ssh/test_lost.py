"""Links that are cut, hosts that freeze, engines and drivers that are killed."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.kit import Live, Stage, overnight, run, until
from tests.ssh.kit import (
    ENV,
    GROUP,
    PARTS,
    each_ran_once,
    have_started,
    nothing_is_left,
    started,
    write_locked,
)
from tests.ssh_lab import NAMES, Hosts, counts

pytestmark = [
    pytest.mark.needs(*PARTS), pytest.mark.xdist_group(GROUP), pytest.mark.flaky(reruns=1),
]


def _live(stage: Stage, count: int, *more: str) -> Live:
    write_locked(stage, count)
    live = stage.start(run("-s", counts(), *more, "-p", "P", "Tasks"), env=ENV)
    have_started(stage, 3, live)
    return live


def _ends_well(live: Live) -> None:
    ended = live.wait(90.0)
    assert ended.status == 0, ended.err


def _cut_is_noticed(stage: Stage, host: str) -> None:
    until(lambda: f"{host} is cut off" in stage.read("P_driver.log"), f"{host} is cut off")


@pytest.mark.parametrize("fault", [("cut",), ("cut", "--link"), ("freeze", "--keep-daemon")])
def test_a_host_out_of_reach_keeps_its_tasks_and_comes_back(
    stage: Stage, hosts: Hosts, fault: tuple[str, ...]
) -> None:
    live = _live(stage, 6)
    hosts.fault(fault[0], "lab2", *fault[1:])
    _cut_is_noticed(stage, "lab2")
    stage.write("go.0")
    stage.write("go.1")
    stage.write("go.2")
    have_started(stage, 5, live)  # the others go on
    hosts.fault("undo", "lab2")
    until(lambda: "lab2 is back" in stage.read("P_driver.log")
          or "has left with nothing open" in live.err, "lab2 is back")
    stage.write("go")
    _ends_well(live)
    each_ran_once(stage, "P", 6)
    nothing_is_left(hosts)


def test_what_ended_while_the_link_was_cut_is_collected(stage: Stage, hosts: Hosts) -> None:
    live = _live(stage, 3)
    hosts.fault("cut", "lab3", "--link")
    _cut_is_noticed(stage, "lab3")
    stage.write("go")
    stage.has_rows("P", 2)
    hosts.fault("undo", "lab3")
    _ends_well(live)
    each_ran_once(stage, "P", 3)
    nothing_is_left(hosts)


def test_a_task_of_a_killed_engine_runs_again_once_its_first_attempt_is_ended(
    stage: Stage, hosts: Hosts
) -> None:
    live = _live(stage, 3)
    hosts.on("lab1", "kill", "-9", str(hosts.engine("lab1")))
    have_started(stage, 4, live)  # while the others still wait
    stage.write("go")
    _ends_well(live)
    assert stage.codes("P") == {0: 0, 1: 0, 2: 0}
    assert stage.read("twice") == ""
    assert len(started(stage)) == 4
    lost = [one for one in stage.attempts("P") if one["outcome"] == "lost"]
    assert [one["node"] for one in lost] == ["lab1"]
    nothing_is_left(hosts)


def test_tasks_of_a_host_that_the_user_says_is_gone_run_elsewhere(
    stage: Stage, hosts: Hosts
) -> None:
    live = _live(stage, 3)
    hosts.fault("power-off", "lab2")
    _cut_is_noticed(stage, "lab2")
    stage.write("go")
    stage.has_rows("P", 2)
    said = stage.run(overnight("pool", "forget", "P", "lab2"))
    assert said.status == 0, said.err
    _ends_well(live)
    assert stage.codes("P") == {0: 0, 1: 0, 2: 0}
    assert stage.read("twice") == ""
    assert [one["node"] for one in stage.attempts("P") if one["outcome"] == "lost"] == ["lab2"]


def test_a_killed_drivers_engines_are_taken_over_by_a_resume(stage: Stage, hosts: Hosts) -> None:
    live = _live(stage, 9)
    live.signal(signal.SIGKILL)
    live.process.wait()
    again = stage.start(overnight("resume", "P"), env=ENV)
    until(lambda: stage.read("P_driver.log").count("1 tasks running") == 3 or again.is_over,
          "all three engines are taken over")
    assert not again.is_over, again.err
    stage.write("go")
    _ends_well(again)
    each_ran_once(stage, "P", 9)
    assert {row.node for row in stage.rows("P")} == set(NAMES)
    nothing_is_left(hosts)


def test_devices_stay_divided_when_an_engine_is_taken_over(stage: Stage, hosts: Hosts) -> None:
    env = {"LC_DEVICES": "a,b", "OVERNIGHT_SSH": f"{ENV['OVERNIGHT_SSH']} -o SendEnv=LC_DEVICES"}
    stage.write("Tasks", "#DISBATCH REPEAT 4 echo $LC_DEVICES >> started;"
                         " until [ -e go ]; do sleep 0.05; done; [ $DISBATCH_TASKID -lt 2 ] ||"
                         " until [ $(wc -l < started) -ge 4 ]; do sleep 0.05; done")
    live = stage.start(run("-s", "lab1:2", "-E", "LC_DEVICES", "-p", "P", "Tasks"), env=env)
    have_started(stage, 2, live)
    live.signal(signal.SIGKILL)
    live.process.wait()
    again = stage.start(overnight("resume", "P"), env=env)
    until(lambda: "2 tasks running" in stage.read("P_driver.log") or again.is_over, "taken over")
    stage.write("go")
    _ends_well(again)
    assert sorted(started(stage)) == ["a", "a", "b", "b"]


def test_what_ended_while_there_was_no_driver_is_collected_by_a_resume(
    stage: Stage, hosts: Hosts
) -> None:
    live = _live(stage, 6)
    live.signal(signal.SIGKILL)
    live.process.wait()
    stage.write("go")
    nothing_is_left(hosts)  # engines that are alone leave when their tasks have ended
    assert stage.codes("P") == {}
    again = stage.start(overnight("resume", "P"), env=ENV)
    _ends_well(again)
    each_ran_once(stage, "P", 6)
    assert not stage.path("P_engines.json").exists()


def test_a_resume_is_refused_while_a_host_cannot_be_asked(stage: Stage, hosts: Hosts) -> None:
    live = _live(stage, 6)
    live.signal(signal.SIGKILL)
    live.process.wait()
    hosts.fault("cut", "lab2", "--link")
    refused = stage.run(overnight("resume", "P"), env=ENV)
    assert refused.status == 1
    assert "an engine of this run was on lab2, and nobody can tell" in refused.err
    hosts.fault("undo", "lab2")
    again = stage.start(overnight("resume", "P"), env=ENV)
    have_started(stage, 3, again)
    stage.write("go")
    _ends_well(again)
    each_ran_once(stage, "P", 6)
    nothing_is_left(hosts)


def test_a_run_that_is_stopped_while_a_host_is_out_of_reach_is_collected_later(
    stage: Stage, hosts: Hosts
) -> None:
    live = _live(stage, 6)
    hosts.fault("cut", "lab2", "--link")
    _cut_is_noticed(stage, "lab2")
    live.signal(signal.SIGINT)
    live.says("SIGINT")
    live.signal(signal.SIGINT)
    ended = live.wait()
    assert ended.status == 3, ended.err
    assert "lab2 is left alone" in ended.err
    assert sorted(row.node for row in stage.rows("P")) == ["lab1", "lab3"]
    hosts.fault("undo", "lab2")
    stage.write("go")
    again = stage.start(overnight("resume", "P"), env=ENV)
    _ends_well(again)
    assert stage.read("twice") == ""
    rows = [row for row in stage.rows("P") if row.code == 0]
    assert sorted(row.id for row in rows) == list(range(6))
    nothing_is_left(hosts)
