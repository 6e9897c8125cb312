"""Hosts that cannot be used are named with the reason, and the run goes on without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kit import Stage, run
from tests.e2e.options_kit import ends
from tests.ssh.kit import ENV, GROUP, PARTS
from tests.ssh_lab import Hosts

pytestmark = [
    pytest.mark.needs(*PARTS), pytest.mark.xdist_group(GROUP), pytest.mark.flaky(reruns=1),
]

WAIT_FOR_NEWS = "until grep -q 'left out' P_driver.log; do sleep 0.05; done; hostname > who"


def test_a_host_that_is_not_there_is_left_out(stage: Stage, hosts: Hosts) -> None:
    stage.write("Tasks", WAIT_FOR_NEWS)
    ended = ends(stage, run("-s", "nohost.invalid:2,lab1:1", "-p", "P", "Tasks"))
    assert "nohost.invalid is left out: ssh: Could not resolve" in ended.err
    assert stage.read("who") == "lab1\n"


def test_a_host_that_hangs_in_connecting_is_left_out_in_time(stage: Stage, hosts: Hosts) -> None:
    hosts.fault("freeze", "lab2")
    stage.write("Tasks", WAIT_FOR_NEWS)
    ended = ends(stage, run("-s", "lab2:2,lab1:1", "-p", "P", "Tasks"), env=ENV)
    assert "lab2 is left out: " in ended.err
    assert stage.read("who") == "lab1\n"


def test_a_host_that_refuses_the_key_is_left_out(
    stage: Stage, hosts: Hosts, tmp_path: Path
) -> None:
    stage.write("Tasks", "echo > ran")
    program = f"ssh -o IdentityFile=/dev/null -o IdentitiesOnly=yes -F {tmp_path / 'config'}"
    (tmp_path / "config").write_text("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n")
    ended = ends(
        stage, run("-s", "lab1:1", "-p", "P", "Tasks"), status=3, env={"OVERNIGHT_SSH": program}
    )
    assert "lab1 is left out: " in ended.err
    assert "Permission denied" in ended.err
    assert not stage.path("ran").exists()


def test_a_host_without_a_python_is_left_out_and_the_run_can_be_resumed(
    stage: Stage, hosts: Hosts
) -> None:
    stage.write("Tasks", "hostname > who")
    ended = ends(
        stage, run("-s", "lab1:1", "--remote-python", "python9.9", "-p", "P", "Tasks"), status=3
    )
    assert "lab1 is left out: no python9.9 of Python 3.9 or later is there; python3 is" \
        in ended.err
    assert "overnight resume" in ended.err
    ends(stage, run("-s", "lab1:1", "-r", "P_status.txt", "-p", "P", "Tasks"))
    assert stage.read("who") == "lab1\n"


def test_an_interpreter_that_is_too_old_is_named(stage: Stage, hosts: Hosts) -> None:
    # Stands in for one: it fails the question and gives its version as Python 2.7 does.
    old = stage.write("old", "#!/bin/sh", '[ "$1" = -V ] && echo Python 2.7.18 >&2 || exit 1')
    old.chmod(0o755)
    stage.write("Tasks", "true")
    ended = ends(
        stage, run("-s", "lab1:1", "--remote-python", str(old), "-p", "P", "Tasks"), status=3
    )
    assert f"{old} is Python 2.7.18" in ended.err


def test_a_host_without_the_working_directory_is_left_out(
    stage: Stage, hosts: Hosts
) -> None:
    stage.write("Tasks", "echo > ran")
    hosts.fault("undo", "all")
    here = Path("/var/tmp/overnight-only-here")  # each host has a /var/tmp of its own
    here.mkdir(exist_ok=True)
    try:
        live = stage.start(
            run("-s", "lab1:1", "-p", stage.path("P"), stage.path("Tasks")), cwd=here
        )
        ended = live.wait()
    finally:
        here.rmdir()
    assert ended.status == 3
    assert f"lab1 is left out: its working directory {here} cannot be entered there" in ended.err


def test_a_host_that_does_not_share_the_runs_folder_is_left_out(
    stage: Stage, hosts: Hosts
) -> None:
    stage.write("Tasks", "echo > ran")
    prefix = Path("/var/tmp/overnight-P")
    try:
        ended = ends(stage, run("-s", "lab1:1", "-p", prefix, "Tasks"), status=3)
    finally:
        for path in prefix.parent.glob(f"{prefix.name}_*"):
            path.unlink()
    assert "lab1 is left out: the run's folder /var/tmp is not shared with it" in ended.err
