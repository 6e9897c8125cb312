"""Options that say where tasks run: each test fails where its option has no effect."""

from __future__ import annotations

import os

import pytest

from tests.e2e.kit import Stage, disbatch, run
from tests.e2e.options_kit import (
    BOUND_S,
    WAIT_FOR_GO,
    empties,
    ends,
    flags,
    ids,
    slots_used,
    tasks_of,
    write_crowd,
)

TWO_EACH = {"CUDA_VISIBLE_DEVICES": "4,7", "GPU_DEVICE_ORDINAL": "0,1"}


@pytest.mark.parametrize("count", [1, 3])
def test_jobs_is_the_number_of_slots(stage: Stage, count: int) -> None:
    assert slots_used(stage, run("-j", str(count), "-p", "P", "Tasks"), count) == count


def test_hosts_are_named_with_their_slots_and_counts_add_up(stage: Stage) -> None:
    here = os.uname().nodename
    command = [*disbatch("-s", f"{here}:1", "-p", "P", "Tasks")]
    assert slots_used(stage, command, 3) == 3


def test_a_host_that_is_not_this_machine_is_left_out_and_named(stage: Stage) -> None:
    stage.write("Tasks", "until grep -q 'left out' P_driver.log; do sleep 0.02; done")
    ended = ends(stage, disbatch("-s", "elsewhere.invalid:2", "-p", "P", "Tasks"))
    assert "elsewhere.invalid is left out: ssh" in ended.err
    assert stage.codes("P") == {0: 0}


def test_hosts_come_from_the_environment(stage: Stage) -> None:
    command = [disbatch()[0], "-p", "P", "Tasks"]
    used = slots_used(stage, command, 3, DISBATCH_SSH_NODELIST="localhost:2,localhost:1")
    assert used == 3


def test_named_hosts_win_over_those_of_the_environment(stage: Stage) -> None:
    used = slots_used(stage, disbatch("-p", "P", "Tasks"), 2, DISBATCH_SSH_NODELIST="localhost:4")
    assert used == 2


def test_hosts_of_the_environment_are_passed_on_to_tasks(stage: Stage) -> None:
    stage.write("Tasks", "echo $DISBATCH_SSH_NODELIST > seen")
    ends(stage, run("Tasks"), env={"DISBATCH_SSH_NODELIST": "localhost:3"})
    assert stage.read("seen") == "localhost:3\n"


def test_disbatch_wants_to_be_told_where_to_run(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, [disbatch()[0], "Tasks"], status=1)
    assert "Cannot determine batch execution environment." in ended.err
    assert [path.name for path in stage.folder.iterdir()] == ["Tasks"]


@pytest.mark.parametrize(("count", "cores", "slots"), [(4, "2", 2), (1, "0.5", 2)])
def test_cores_of_a_task_divide_the_cores(
    stage: Stage, count: int, cores: str, slots: int
) -> None:
    command = run("-s", f"localhost:{count}", "-c", cores, "-p", "P", "Tasks")
    assert slots_used(stage, command, slots) == slots


@pytest.mark.parametrize(("cores", "told"), [("2", "2"), ("0.5", "1"), ("3.5", "3")])
def test_jobs_are_slots_whatever_cores_a_task_uses(stage: Stage, cores: str, told: str) -> None:
    write_crowd(stage, 4, then="echo $DISBATCH_CORES_PER_TASK >> told")
    ends(stage, run("-j", "4", "-c", cores, "-p", "P", "Tasks"))
    assert stage.read("told") == f"{told}\n" * 8


def test_hosts_that_cannot_be_reached_end_a_run_that_can_be_resumed(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, run("-s", "elsewhere.invalid:3", "-p", "P", "Tasks"), status=3)
    assert "elsewhere.invalid is left out: ssh" in ended.err
    assert "no engine is left that could run a task" in ended.err
    assert "overnight resume" in ended.err
    assert not stage.path("ran").exists()


def test_an_interpreter_far_away_must_have_a_plain_name(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(
        stage, run("-s", "elsewhere.invalid:3", "--remote-python", "a b", "Tasks"), status=2
    )
    assert "--remote-python 'a b'" in ended.err


def test_a_task_finds_its_share_of_the_cores(stage: Stage) -> None:
    stage.write("Tasks", "echo $DISBATCH_CORES_PER_TASK > share")
    ends(stage, run("-j", "6", "-c", "3", "Tasks"))
    assert stage.read("share") == "3\n"


def test_more_cores_than_there_are_give_no_slot(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, disbatch("-c", "3", "Tasks"), status=1)
    assert "no host has enough cores for one task: 2 here, -c 3 asked for" in ended.err


def test_tasks_per_node_is_the_most_there_may_be(stage: Stage) -> None:
    command = [*disbatch("-s", "localhost:2"), "-t", "2", "-p", "P", "Tasks"]
    assert slots_used(stage, command, 2) == 2


def test_tasks_per_node_that_do_not_fit_are_said(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ended = ends(stage, disbatch("-t", "3", "Tasks"))
    assert "-t 3 does not fit on its cores; slots used: 2" in ended.err


@pytest.mark.parametrize(
    "option", [["--fill"], ["-K"], ["--no-retire"], ["--use-address", "localhost:0"],
               ["--grace", "1m"], ["--keep-slurm-env"]]
)
def test_what_has_a_meaning_elsewhere_alone_changes_nothing_here(
    stage: Stage, option: list[str]
) -> None:
    stage.write("Tasks", "true")
    ended = ends(stage, disbatch(*option, "-p", "P", "Tasks"))
    assert (ended.out, ended.err, stage.codes("P")) == ("", "", {0: 0})


def test_a_retire_command_is_not_called_for_this_machine(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, run("-q", "-k", "touch retired", "-p", "P", "Tasks"))
    assert not stage.path("retired").exists()


@pytest.mark.parametrize("command", ["", "touch retired"])
def test_a_retire_command_and_named_hosts_exclude_each_other(stage: Stage, command: str) -> None:
    stage.write("Tasks", "true")
    ended = ends(stage, disbatch("-k", command, "Tasks"), status=2)
    assert "--retire-cmd gives Slurm nodes back" in ended.err


# -- the task limit ----------------------------------------------------------------------


@pytest.mark.parametrize("command", [run("-j", "2"), disbatch()])
def test_the_context_leaves_after_its_task_limit(stage: Stage, command: list[str]) -> None:
    stage.write("Tasks", *["true"] * 5)
    ended = empties(stage, [*command, "-C", "3", "-p", "P", "Tasks"])
    assert stage.codes("P") == dict.fromkeys(range(3), 0)
    assert f"{stage.path('P_dbUtil.sh')} -s HOST:COUNT" in ended.err
    assert f"overnight resume {stage.path('P')}" in ended.err


def test_a_run_may_listen_from_the_start(stage: Stage) -> None:
    stage.write("Tasks", WAIT_FOR_GO)
    live = stage.start(run("--listen", "-j", "1", "-p", "P", "Tasks"))
    stage.appears("P_join")
    stage.write("go")
    assert live.wait(BOUND_S).status == 0
    assert not stage.path("P_join").exists()


def test_a_task_limit_of_zero_is_none(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 3)
    ends(stage, disbatch("-C", "0", "-p", "P", "Tasks"))
    assert len(stage.codes("P")) == 3


def test_skipped_tasks_do_not_count_towards_the_task_limit(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 4)
    empties(stage, disbatch("-C", "2", "-p", "P", "Tasks"))
    ends(stage, disbatch("-C", "2", "-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert flags(stage, "Q") == {0: "   S", 1: "   S", 2: "    ", 3: "    "}


def test_a_list_that_is_as_long_as_the_task_limit_is_complete(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER", "true", "#DISBATCH BARRIER")
    ends(stage, disbatch("-C", "2", "-p", "P", "Tasks"))
    assert ids(stage, "P") == [0, 1, 2, 3]


# -- devices and labels ------------------------------------------------------------------


def test_gpus_are_divided_among_the_slots_in_step(stage: Stage) -> None:
    write_crowd(stage, 2, "echo $CUDA_VISIBLE_DEVICES $GPU_DEVICE_ORDINAL")
    ends(stage, run("-j", "2", "-g", "-p", "P", "Tasks"), env=TWO_EACH)
    assert {row.out for row in tasks_of(stage, "P")} == {r"'4 0\n'", r"'7 1\n'"}


def test_without_gpu_every_task_sees_all_devices(stage: Stage) -> None:
    stage.write("Tasks", "echo $CUDA_VISIBLE_DEVICES $GPU_DEVICE_ORDINAL > seen")
    ends(stage, run("-j", "2", "Tasks"), env=TWO_EACH)
    assert stage.read("seen") == "4,7 0,1\n"


def test_values_of_a_variable_are_divided_and_lower_the_slots(stage: Stage) -> None:
    write_crowd(stage, 2, "echo $PORT $KEY")
    ended = ends(stage, run("-j", "3", "-E", "PORT,KEY", "-p", "P", "Tasks"),
                 env={"PORT": "5001,5002", "KEY": "a,b,c"})
    assert {row.out for row in tasks_of(stage, "P")} == {r"'5001 a\n'", r"'5002 b\n'"}
    assert "PORT has 2 values for 3 slots: the slots are lowered to 2" in ended.err


def test_env_resource_may_be_given_more_than_once(stage: Stage) -> None:
    stage.write("Tasks", "echo $PORT $KEY > seen")
    ends(stage, run("-j", "1", "-E", "PORT", "-E", "KEY", "Tasks"),
         env={"PORT": "5001,5002", "KEY": "a,b"})
    assert stage.read("seen") == "5001 a\n"


def test_the_label_names_the_context(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, disbatch("-l", "attic", "-p", "P", "Tasks"))
    assert stage.path(f"P_attic_{os.uname().nodename}_engine_0.log").exists()


# -- pairs -------------------------------------------------------------------------------


def test_jobs_and_named_hosts_exclude_each_other(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ended = stage.run(run("-j", "2", "-s", "localhost:2", "Tasks"), limit_s=BOUND_S)
    assert ended.status == 2
    assert "--jobs counts slots here" in ended.err


def test_cores_of_a_task_and_tasks_per_node_meet_at_the_smaller_count(stage: Stage) -> None:
    command = run("-s", "localhost:8", "-c", "2", "-t", "3", "-p", "P", "Tasks")
    assert slots_used(stage, command, 3) == 3
