"""How runs in allocations end: in order, by the clock, by command, and by what breaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.kit import DISBATCH, OVERNIGHT, Cluster, Job, call, wait_until

WAITS = "until [ -e go ]; do sleep 0.05; done"


def attempts(folder: Path, prefix: str = "run") -> list[dict[str, object]]:
    lines = (folder / f"{prefix}_tasks.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def is_running(job: Job, *ids: int) -> Callable[[], bool]:
    return lambda: all((job.folder / f"on.{id}").exists() for id in ids)


# ---- giving nodes back


def test_nodes_that_run_dry_are_given_back_while_the_run_goes_on(job: Job) -> None:
    (job.folder / "Tasks").write_text(
        "echo $SLURMD_NODENAME > on.0; until [ -e go ]; do sleep 0.1; done\ntrue\ntrue\n"
    )
    job.submit(["-N", "3", "--ntasks-per-node=1"], f"{DISBATCH} -p run Tasks")
    wait_until(lambda: job.describe().get("NumNodes") in ("1", "2"), "nodes were given back")
    node = (job.folder / "on.0").read_text().strip()
    kept = {"node1", node}  # the first one holds the batch script
    wait_until(
        lambda: set(call("scontrol", "show", "hostnames", job.describe()["NodeList"]).split())
        == kept,
        "just these are kept", 120, job.log,
    )
    (job.folder / "go").touch()
    assert job.wait() == "COMPLETED", job.log()
    assert len(job.rows()) == 3
    assert not list(job.folder.glob("slurm_job_*")), "scontrol's scripts do not litter the folder"


def test_no_node_is_given_back_where_that_is_not_wished(job: Job) -> None:
    (job.folder / "Tasks").write_text(
        "until [ -e go ]; do sleep 0.1; done\ntrue\n"
    )
    command = f"echo $NODE >> {job.folder}/given"
    job.submit(["-N", "2", "--ntasks-per-node=1"],
               f"{DISBATCH} --no-retire --retire-cmd '{command}' -p run Tasks")
    wait_until(lambda: len(job.rows_so_far()) == 1, "one is done")
    (job.folder / "go").touch()
    assert job.wait() == "COMPLETED" and not (job.folder / "given").exists()


def test_a_command_of_the_user_s_gives_a_node_back(job: Job) -> None:
    # The longer task goes to whichever engine is first.
    (job.folder / "Tasks").write_text(f"echo $SLURMD_NODENAME > on.0; {WAITS}\n:\n:\n:\n")
    command = 'echo "$NODE $ACTIVE $RETIRED ${DRIVER_NODE-}" > given'
    job.submit(["-N", "2", "--ntasks-per-node=1"],
               f"{DISBATCH} --retire-cmd '{command}' -p run Tasks")
    wait_until((job.folder / "given").exists, "it was called")
    busy = (job.folder / "on.0").read_text().strip()
    dry = "node2" if busy == "node1" else "node1"
    words = (job.folder / "given").read_text().split()
    assert words == [dry, busy, dry, *(["node1"] if dry == "node1" else [])]
    (job.folder / "go").touch()
    assert job.wait() == "COMPLETED"


# ---- the end of an allocation


def test_a_run_into_the_limit_is_stopped_before_it_and_goes_on_in_the_next_allocation(
    job: Job, new_job: Callable[[], Job]
) -> None:
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 40 echo $DISBATCH_REPEAT_INDEX >> done; sleep 4\n"
    )
    job.submit(["-n", "2", "-p", "short"], f"{DISBATCH} -p run Tasks")
    assert job.wait(150) in ("FAILED", "COMPLETED"), "it ended by itself, before it was ended"
    assert "overnight resume" in job.text() and "ends in" in job.text()
    rows = job.rows()
    assert 4 < len(rows) < 40 and {row[0] for row in rows} == {"    "}
    second = new_job()
    second.submit(["-N", "3", "--ntasks-per-node=4"],
                  f"{DISBATCH} -r run_status.txt -p run Tasks", name="second")
    assert second.wait() == "COMPLETED", second.text()
    lines = sorted(map(int, (job.folder / "done").read_text().split()))
    assert lines == list(range(40)), "each ran once"
    assert {each["attempt"] for each in attempts(job.folder)} == {1}


def test_what_the_limit_cuts_off_has_not_failed_and_runs_again(
    job: Job, new_job: Callable[[], Job]
) -> None:
    (job.folder / "Tasks").write_text("true\ntouch on.1; [ -e go ] || sleep 1000\n")
    job.submit(["-n", "2"], f"{DISBATCH} -p run Tasks")
    wait_until(is_running(job, 1), "the long one runs")
    call("scancel", job.id)
    wait_until(lambda: job.state == "CANCELLED", "it is cancelled")
    job.wait_gone()
    rows = job.rows()
    assert [(row[0], row[6]) for row in rows] == [("    ", "0"), ("R  Z", "-15")]
    assert attempts(job.folder)[-1]["outcome"] == "cancelled"
    (job.folder / "go").touch()
    second = new_job().submit(["-n", "2"], f"{DISBATCH} -r run_status.txt -p run2 Tasks",
                              name="second")
    assert second.wait() == "COMPLETED"
    assert [(row[0], row[6]) for row in job.rows("run2")] == [("   S", "0"), ("    ", "0")]


# ---- what breaks


def test_an_engine_that_is_killed_loses_its_attempts_once_its_step_has_ended(
    cluster: Cluster, job: Job
) -> None:
    (job.folder / "Tasks").write_text(
        "touch on.$DISBATCH_TASKID.$OVERNIGHT_ATTEMPT; [ $OVERNIGHT_ATTEMPT = 2 ] || sleep 1000\n"
        f"touch on.1.1; {WAITS}\n"
    )
    job.submit(["-N", "2", "--ntasks-per-node=1"], f"{OVERNIGHT} run -p run Tasks")
    wait_until(lambda: len(list(job.folder.glob("on.*.1"))) == 2, "both run")
    cluster.kill_engine_of_task(job, 0)
    wait_until(lambda: '"lost"' in (job.folder / "run_tasks.jsonl").read_text(), "it is proved")
    (job.folder / "go").touch()  # the other node has room for its second attempt
    assert job.wait() == "COMPLETED", job.text() + job.log()
    assert [each["outcome"] for each in attempts(job.folder) if each["task"] == 0] == [
        "lost", "exited",
    ]  # fmt: skip


def test_what_outlives_a_step_is_ended_before_its_tasks_are_given_out_again(
    cluster: Cluster, job: Job
) -> None:
    # Slurm of this cluster follows processes by their parents: it loses these.
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 4 touch on.$DISBATCH_TASKID.$OVERNIGHT_ATTEMPT; flock -n"
        " lock.$DISBATCH_TASKID -c '[ $OVERNIGHT_ATTEMPT = 2 ] ||"
        " until [ -e go.$SLURMD_NODENAME ]; do sleep 0.05; done' || touch twice\n"
    )
    job.submit(["-N", "2", "--ntasks-per-node=2"], f"{OVERNIGHT} run -p run Tasks")
    wait_until(lambda: len(list(job.folder.glob("on.*.1"))) == 4, "two run on each node")
    cluster.kill_ours_on("node2", job)
    (job.folder / "go.node1").touch()
    assert job.wait() == "COMPLETED", job.text() + job.log()
    assert len(list(job.folder.glob("on.*.2"))) == 2, "those of the other node ran again"
    assert not (job.folder / "twice").exists(), "two copies ran at one time"


@pytest.mark.parametrize("node", ["node2"])
def test_a_node_that_fails_costs_only_its_attempts(
    cluster: Cluster, job: Job, node: str
) -> None:
    (job.folder / "Tasks").write_text(
        "#DISBATCH REPEAT 3 echo $SLURMD_NODENAME > on.$DISBATCH_TASKID.$OVERNIGHT_ATTEMPT;"
        f" [ $OVERNIGHT_ATTEMPT = 2 ] || {WAITS}\n"
    )
    job.submit(["-N", "3", "--ntasks-per-node=1", "--no-kill"],
               f"{OVERNIGHT} run -p run Tasks")
    wait_until(lambda: len(list(job.folder.glob("on.*.1"))) == 3, "all run")
    (task,) = [path.name.split(".")[1] for path in job.folder.glob("on.*.1")
               if path.read_text().strip() == node]
    cluster.lab("fault", "power-off", node)
    try:
        (job.folder / "go").touch()
        wait_until((job.folder / f"on.{task}.2").exists, "it is given out again", 150, job.log)
        assert job.wait() == "COMPLETED", job.text() + job.log()
    finally:
        cluster.lab("fault", "undo", node)
    outcomes = [(each["task"], each["outcome"]) for each in attempts(job.folder)]
    assert sorted(outcomes) == sorted(
        [(id, "exited") for id in range(3)] + [(int(task), "lost")]
    )


def test_a_run_whose_driver_was_killed_with_its_job_goes_on_in_the_next_allocation(
    cluster: Cluster, job: Job, new_job: Callable[[], Job]
) -> None:
    (job.folder / "Tasks").write_text(f"true\ntouch on.1; {WAITS}; sleep 0.1\n")
    job.submit(["-N", "2", "--ntasks-per-node=1"], f"{DISBATCH} -p run Tasks")
    wait_until(is_running(job, 1), "the long one runs")
    wait_until(lambda: len(job.rows_so_far()) == 1, "the other is recorded")
    cluster.kill_driver(job)
    job.wait_gone()
    assert (job.folder / "run_lock").exists() and (job.folder / "run_engines.json").exists()
    (job.folder / "go").touch()
    second = new_job().submit(["-N", "1", "-w", "node3"],
                              f"{DISBATCH} -r run_status.txt -p run2 Tasks", name="second")
    assert second.wait() == "COMPLETED", second.text()
    ends = [(row[1], row[6]) for row in job.rows("run2") if "Z" not in row[0]]
    assert ends == [("0", "0"), ("1", "0")], "what was cut off with its engine has run again"


@pytest.mark.parametrize("prefix", ["-p run", ""])
def test_a_job_that_slurm_starts_again_goes_on_with_its_run(job: Job, prefix: str) -> None:
    (job.folder / "Tasks").write_text(
        "echo x >> first\ntouch on.1; [ $SLURM_RESTART_COUNT ] || sleep 1000\n"
    )
    job.submit(["-n", "2", "--requeue"], f"{DISBATCH} {prefix} Tasks")
    wait_until(is_running(job, 1), "the long one runs")
    wait_until(lambda: (job.folder / "first").exists(), "the short one ran")
    call("scontrol", "requeue", job.id)
    wait_until(lambda: job.describe()["Reason"] == "BeginTime", "it waits")
    # Started before the last word of its first life is heard, it would be taken for failed.
    wait_until(lambda: "idle" in call("sinfo", "-h", "-n", "node1", "-o", "%T"), "node1 is idle")
    call("scontrol", "update", f"JobId={job.id}", "StartTime=now")
    assert job.wait(200) == "COMPLETED", f"{job.describe()} {job.text()} {job.log()}"
    assert (job.folder / "first").read_text() == "x\n", "what was done is not done again"
    (status,) = job.folder.glob("*_status.txt")
    rows = [line.split("\t") for line in status.read_text().splitlines()]
    ended = [(row[1], row[6]) for row in rows if row[0] == "    "]
    assert ended == [("0", "0"), ("1", "0")], f"{rows} {job.text()}"
