"""Engines that join a run by themselves: from their call to its end, whatever is cut."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.kit import disbatch, overnight, run, until
from tests.join.kit import (
    ELSEWHERE,
    began,
    engine_pids,
    join,
    listening,
    log_says,
    waits_for,
)


def has_begun(stage, *ids: int) -> None:
    until(lambda: set(ids) <= set(began(stage)), f"tasks {ids} have begun")


def ran_once(stage, count: int, prefix: str = "P") -> None:
    """Every task has one row, was begun once, and no copy of it ever ran beside another."""
    assert stage.codes(prefix) == dict.fromkeys(range(count), 0)
    assert {id: len(ranks) for id, ranks in began(stage).items()} == dict.fromkeys(range(count), 1)
    assert stage.read("twice") == ""


def test_a_machine_joins_in_the_middle_and_leaves_at_the_end(stage):
    stage.write("Tasks", *[waits_for("go")] * 4)
    live = listening(stage, "-j", "1")
    has_begun(stage, 0)
    joined = join(stage, "-n", "2", "--label", "friend")
    until(lambda: len(began(stage)) == 3, "all three slots are busy")
    stage.write("go")
    assert live.wait().status == 0, live.err
    ended = joined.wait()
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    ran_once(stage, 4)
    assert {rank for ranks in began(stage).values() for rank in ranks} == {0, 1}
    assert not stage.path("P_join").exists()
    stage.is_empty_soon()


def test_disbatch_listens_by_itself_and_early_joiners_wait_for_it(stage):
    stage.write("Tasks", *[waits_for("go")] * 3)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("P_engine.pyz")
    joined = join(stage, "-n", "1")
    until(lambda: len(began(stage)) == 3, "all three slots are busy")
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert joined.wait().status == 0, joined.err
    ran_once(stage, 3)


def test_commands_of_each_engine_run_on_one_that_joins_late(stage):
    stage.write(
        "Tasks", "#DISBATCH PERENGINE START echo start $DISBATCH_ENGINE_RANK >> engines",
        "#DISBATCH PERENGINE STOP echo stop $DISBATCH_ENGINE_RANK >> engines",
        *[waits_for("go")] * 2,
    )
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "1")
    until(lambda: len(began(stage)) == 2, "both slots are busy")
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert joined.wait().status == 0
    assert sorted(stage.read("engines").split("\n")[:-1]) == [
        "start 0", "start 1", "stop 0", "stop 1",
    ]


def test_what_a_joiner_cannot_do_is_said_with_every_address_that_was_tried(stage, wire):
    stage.write("Tasks", waits_for("go"))
    live = listening(stage, "-j", "1")
    laid = wire()
    laid.cut(dead=True)
    ended = laid.engine().wait()
    assert ended.status == 1
    assert "127.0.0.1 port" in ended.err and "hung up" in ended.err
    assert "--use-address" in ended.err
    stage.write("go")
    assert live.wait().status == 0


def test_a_run_that_has_ended_takes_nobody_in(stage):
    stage.write("Tasks", "true")
    assert stage.run(run("-p", "P", "Tasks")).status == 0
    ended = join(stage).wait()
    assert ended.status == 1 and "the run has ended" in ended.err


@pytest.mark.needs("namespaces")
def test_a_machine_without_the_folder_of_the_tasks_is_named_and_gets_none(stage):
    stage.write("Tasks", waits_for("go"))
    hidden = stage.path("sub")
    hidden.mkdir()
    live = stage.start(run("--listen", "-j", "1", "-p", "../P", "../Tasks"), cwd=hidden)
    stage.appears("P_join")
    bare = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none {hidden.parent} &&"
            ' exec "$@"', "sh"]
    copies = stage.path("../kept")
    for name in ("P_join", "P_engine.pyz"):
        (copies / name).touch(mode=0o600)
        (copies / name).write_bytes(stage.path(name).read_bytes())
    joined = stage.start([*bare, "python3", str(copies / "P_engine.pyz"), "join",
                          str(copies / "P_join")], cwd=Path("/"))
    ended = joined.wait()
    assert ended.status == 1
    assert str(hidden) in ended.err and "no folder here" in ended.err
    stage.write("sub/go")
    assert live.wait().status == 0


# ---- cuts


@pytest.mark.parametrize("during", ["a task", "idleness"])
def test_an_engine_whose_link_is_cut_comes_back_and_goes_on(stage, wire, during):
    busy = during == "a task"
    stage.write("Tasks", waits_for("go"), waits_for("go"), waits_for("more"), waits_for("more"))
    live = listening(stage, "-j", "1")
    laid = wire()
    joined = laid.engine("-n", "1")
    has_begun(stage, 0, 1)
    if not busy:
        laid.cut(dead=True)
        log_says(stage, "is cut off")
        stage.write("go")
        until(lambda: stage.read("ended").count("\n") >= 2, "both tasks end, one unheard")
        laid.mend()
    else:
        laid.cut()
        log_says(stage, "is back, with 1 tasks running")
        stage.write("go")
    log_says(stage, "is back")
    has_begun(stage, 0, 1, 2, 3)
    stage.write("more")
    assert live.wait().status == 0, live.err
    assert joined.wait().status == 0, joined.err
    ran_once(stage, 4)
    assert laid.accepted >= 2
    stage.is_empty_soon()


def test_many_cuts_lose_no_task_and_run_none_twice(stage, wire):
    stage.write("Tasks", f"#DISBATCH REPEAT 120 {waits_for('.')}; sleep 0.02")
    live = listening(stage, "-j", "1")
    laid = wire()
    joined = laid.engine("-n", "3")
    log_says(stage, "engine 1 on")
    cuts = 0
    while stage.read("ended").count("\n") < 100:
        laid.cut()
        cuts += 1
        until(lambda: _returns(stage) >= cuts or live.is_over, "it is back")  # noqa: B023
    assert live.wait().status == 0, live.err
    assert joined.wait().status == 0, joined.err
    ran_once(stage, 120)
    stage.is_empty_soon()


def _returns(stage) -> int:
    return stage.read("P_driver.log").count("is back")


def test_an_engine_killed_here_is_proved_gone_and_its_task_runs_again(stage):
    stage.write("Tasks", waits_for("go"), waits_for("go"))
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "1")
    has_begun(stage, 0, 1)
    (pid,) = engine_pids(joined)
    os.kill(pid, signal.SIGKILL)
    assert joined.wait().status == 137
    until(lambda: "was lost" in live.err, "it is said")
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("twice") == ""
    assert sorted(len(ranks) for ranks in began(stage).values()) == [1, 2]


def test_whoever_started_an_engine_ends_it_and_its_tasks_run_elsewhere(stage):
    stage.write("Tasks", *[waits_for("go")] * 2)
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "1")
    has_begun(stage, 0, 1)
    joined.signal(signal.SIGTERM)
    assert joined.wait().status == 0, joined.err
    assert stage.codes("P") == {}
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("twice") == ""
    assert sorted(map(len, began(stage).values())) == [1, 2]
    stage.is_empty_soon()


# ---- drivers that die


@pytest.mark.parametrize("place", [
    "here", pytest.param("elsewhere", marks=pytest.mark.needs("namespaces")),
])
def test_a_joined_engine_outlives_its_driver_and_calls_the_next_one(stage, place):
    stage.write("Tasks", *[waits_for("go")] * 3, waits_for("more"))
    live = listening(stage, "-j", "1")
    through = ELSEWHERE if place == "elsewhere" else ()
    joined = stage.start([*through, *overnight("join", "P", "-n", "1")])
    until(lambda: len(began(stage)) == 2, "both slots are busy")
    (on_joined,) = [id for id, ranks in began(stage).items() if ranks == [1]]
    live.signal(signal.SIGKILL)
    live.wait()
    resumed = stage.start(overnight("resume", "P", "-j", "1"))
    log_says(stage, "has joined: 1 slots, 1 tasks running")
    assert len(began(stage)[on_joined]) == 1
    stage.write("go")
    until(lambda: len(began(stage)) == 4, "all tasks have begun")
    stage.write("more")
    assert resumed.wait().status == 0, resumed.err
    assert joined.wait().status == 0, joined.err
    assert stage.codes("P") == dict.fromkeys(range(4), 0)
    assert stage.read("twice") == ""
    assert len(began(stage)[on_joined]) == 1
    stage.is_empty_soon()


@pytest.mark.needs("namespaces")
def test_nothing_is_started_before_an_engine_elsewhere_has_said_what_it_runs(stage, wire):
    stage.write("Tasks", *[waits_for("go")] * 3)
    live = listening(stage, "-j", "1")
    laid = wire()
    joined = laid.engine("-n", "1", through=ELSEWHERE)
    until(lambda: len(began(stage)) == 2, "both slots are busy")
    before = began(stage)
    (away,) = [id for id, ranks in before.items() if ranks == [1]]
    laid.cut(dead=True)
    live.signal(signal.SIGKILL)
    live.wait()
    stage.path("P_join").unlink()
    resumed = stage.start(overnight("resume", "P", "-j", "2"))
    stage.appears("P_join")
    resumed.says("has not been heard of for")
    # One that gives up waiting leaves the note of it for the next.
    resumed.signal(signal.SIGTERM)
    resumed.says("Once more ends them")
    resumed.signal(signal.SIGTERM)
    assert resumed.wait().status == 3
    resumed = stage.start(overnight("resume", "P", "-j", "2"))
    stage.appears("P_join")
    resumed.says("has not been heard of for")
    assert began(stage) == before
    assert "overnight pool forget" in resumed.err and "elsewhere" in resumed.err
    assert began(stage) == before
    laid.follow()
    laid.mend()
    log_says(stage, "tasks running")
    stage.write("go")
    assert resumed.wait().status == 0, resumed.err
    assert joined.wait().status == 0, joined.err
    rows = [row for row in stage.rows("P") if not row.is_cut]
    assert {row.id: row.code for row in rows} == dict.fromkeys(range(3), 0) and len(rows) == 3
    assert stage.read("twice") == ""
    assert began(stage)[away] == [1]
    stage.is_empty_soon()


@pytest.mark.needs("namespaces")
def test_an_engine_elsewhere_that_left_says_so_in_its_spool(stage, wire):
    """Ended by its launcher while it had no driver: the next one need not be told by the user."""
    stage.write("Tasks", *[waits_for("go")] * 2)
    live = listening(stage, "-j", "1")
    laid = wire()
    joined = laid.engine("-n", "1", through=ELSEWHERE)
    until(lambda: len(began(stage)) == 2, "both slots are busy")
    live.signal(signal.SIGKILL)
    live.wait()
    stage.write("go")
    until(lambda: stage.read("ended").count("\n") == 2, "both tasks end")
    stage.path("P_join").unlink()
    laid.join_file.unlink()
    assert joined.wait(limit_s=90).status == 0, joined.err
    resumed = stage.run(overnight("resume", "P", "-j", "1"))
    assert resumed.status == 0, resumed.err
    ran_once(stage, 2)
