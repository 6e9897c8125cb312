"""Runs over real hosts that ssh reaches."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.kit import Stage, overnight, run, until
from tests.e2e.options_kit import empties, ends
from tests.ssh.kit import ENV, GROUP, PARTS, have_started, nothing_is_left, started, write_locked
from tests.ssh_lab import NAMES, Hosts, counts

pytestmark = [
    pytest.mark.needs(*PARTS), pytest.mark.xdist_group(GROUP), pytest.mark.flaky(reruns=1),
]

WHOLE_CROWD = "echo >> crowd; until [ $(wc -l < crowd) -ge 6 ]; do sleep 0.02; done"


def test_a_list_runs_over_three_hosts_and_rows_name_them(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", f"#DISBATCH REPEAT 6 {WHOLE_CROWD}; hostname > who.$DISBATCH_TASKID")
    ends(stage, run("-s", "lab1:3,lab[2-3]:1,lab2:1", "-p", "P", "Tasks"))
    rows = stage.rows("P")
    assert sorted(row.node for row in rows) == ["lab1", "lab1", "lab1", "lab2", "lab2", "lab3"]
    assert {row.id: row.node for row in rows} == {
        id: stage.read(f"who.{id}").strip() for id in range(6)
    }
    nothing_is_left(hosts)


def test_this_machine_and_another_are_in_one_context(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 2 echo >> crowd;"
                         " until [ $(wc -l < crowd) -ge 2 ]; do sleep 0.02; done")
    ends(stage, run("-s", "localhost:1,lab2:1", "-p", "P", "Tasks"))
    assert {row.node for row in stage.rows("P")} == {os.uname().nodename, "lab2"}


def test_a_task_has_the_environment_of_its_host_and_the_contracts_variables(
    stage: Stage, hosts: Hosts
) -> None:
    stage.write("Tasks", "env > env; pwd > pwd; ls -l /proc/self/fd/ > fds; cat > in")
    ends(stage, run("-s", "lab1:2", "-c", "2", "-p", "P", "Tasks"), env={"ONLY_HERE": "1"})
    env = dict(line.split("=", 1) for line in stage.read("env").splitlines() if "=" in line)
    told = {name: value for name, value in env.items() if name.startswith("DISBATCH_")}
    assert told["DISBATCH_CORES_PER_TASK"] == "2"
    assert told["DISBATCH_JOBID"] == "P"
    assert told["DISBATCH_ENGINE_RANK"] == "0"
    assert "ONLY_HERE" not in env
    assert "SSH_CONNECTION" in env
    assert not any(name.startswith("PYTHON") for name in env)
    assert stage.read("pwd").strip() == str(stage.folder)
    assert stage.read("fds").count(" -> ") == 4  # its three, and the listing's own
    assert stage.read("in") == ""


def test_devices_are_divided_by_what_each_host_has(stage: Stage, hosts: Hosts) -> None:
    # sshd takes LC_ variables from its clients: a host's own environment, as tasks find it.
    stage.write("Tasks", "#DISBATCH REPEAT 4 echo $LC_DEVICES >> got;"
                         " until [ $(wc -l < got) -ge 2 ]; do sleep 0.02; done")
    ended = ends(
        stage, run("-s", "lab1:4", "-E", "LC_DEVICES", "-p", "P", "Tasks"),
        env={"LC_DEVICES": "a,b", "OVERNIGHT_SSH": "ssh -o SendEnv=LC_DEVICES"},
    )
    assert set(stage.read("got").split()) == {"a", "b"}
    assert "lab1: LC_DEVICES has 2 values for 4 slots: the slots are lowered to 2" in ended.err


def test_per_engine_commands_run_on_every_host(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", "#DISBATCH PERENGINE START echo $(hostname) >> began",
                "#DISBATCH PERENGINE STOP echo $(hostname) >> ended",
                f"#DISBATCH REPEAT 6 {WHOLE_CROWD}")
    ends(stage, run("-s", counts(each=2), "-p", "P", "Tasks"))
    assert sorted(stage.read("began").split()) == list(NAMES)
    assert sorted(stage.read("ended").split()) == list(NAMES)


def test_what_login_files_print_is_passed_over_and_logged(
    stage: Stage, hosts: Hosts, tmp_path: Path
) -> None:
    # A command that is not a login reads no file of bash's: ssh itself stands in for one.
    noisy = tmp_path / "noisy"
    noisy.write_text("#!/bin/bash\nhead -c 60000 /dev/zero | tr '\\0' x\nexec ssh \"$@\"\n")
    noisy.chmod(0o755)
    stage.write("Tasks", "hostname > who")
    ends(stage, run("-s", "lab1:1", "-p", "P", "Tasks"), env={"OVERNIGHT_SSH": str(noisy)})
    assert stage.read("who") == "lab1\n"
    assert "lab1 printed 60000 bytes before its engine began" in stage.read("P_driver.log")


def test_nodes_may_be_named_by_the_environment(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", "hostname > who")
    ends(stage, run("-p", "P", "Tasks"), env={"DISBATCH_SSH_NODELIST": "lab3:1"})
    assert stage.read("who") == "lab3\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_on_any_host_after_a_signal(
    stage: Stage, hosts: Hosts, number: int
) -> None:
    write_locked(stage, 3)
    disbatch = overnight()[0].replace("overnight", "disBatch")
    live = stage.start([disbatch, "-s", counts(), "-p", "P", "Tasks"])
    have_started(stage, 3, live)
    live.signal_group(number)
    assert live.wait().status == 128 + number
    assert [row.is_cut for row in stage.rows("P")] == [True] * 3
    nothing_is_left(hosts)
    stage.is_empty_soon()


def test_a_context_ends_with_its_limit_of_tasks_over_all_its_hosts(
    stage: Stage, hosts: Hosts
) -> None:
    write_locked(stage, 9)
    stage.write("go")
    empties(stage, run("-s", counts(), "-C", "5", "-p", "P", "Tasks"))
    assert len(started(stage)) == 5


def test_many_short_tasks_over_hosts_are_each_recorded_once(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 1000 true")
    ends(stage, run("-s", counts(each=4), "-p", "P", "-q", "Tasks"), env=ENV)
    assert stage.codes("P") == dict.fromkeys(range(1000), 0)
    until(lambda: not stage.path("P_engines.json").exists(), "the notes are tidied away")
