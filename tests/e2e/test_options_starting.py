"""Options about when tasks start: each test fails where its option has no effect."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.kit import Stage, run
from tests.e2e.options_kit import empties, ends, ids, log_of, logs, new_files, tasks_of, write_crowd

DELAY_S = 0.4


# -- apart -------------------------------------------------------------------------------


def _starts_are_apart(stage: Stage, delays: int) -> None:
    """Starts span so many delays, but for most of one: an engine may be late with the first."""
    starts = sorted(row.started_at for row in tasks_of(stage, "P"))
    assert starts[-1] - starts[0] > (delays - 0.9) * DELAY_S


def test_starts_keep_their_distance(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 4)
    ends(stage, run("-j", "4", "--delay", f"{DELAY_S}s", "-p", "P", "Tasks"))
    assert len(stage.codes("P")) == 4
    _starts_are_apart(stage, 3)


def test_tasks_that_started_apart_run_beside_each_other(stage: Stage) -> None:
    write_crowd(stage, 2)
    ends(stage, run("-j", "2", "--delay", f"{DELAY_S}s", "-p", "P", "Tasks"))
    _starts_are_apart(stage, 3)


# -- held back ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "reason"),
    [("--load=-1", "above --load -1"), ("--memfree=1000T", "below --memfree")],
)
def test_nothing_starts_while_the_machine_is_busy_and_the_log_says_so(
    stage: Stage, option: str, reason: str
) -> None:
    stage.write("Tasks", "echo > ran")
    live = stage.start(run(option, "-p", "P", "Tasks"))
    logs(stage, live, "nothing is started for now")
    assert reason in log_of(stage, "P")
    live.signal(signal.SIGINT)
    ended = live.wait(20)
    assert ended.status == 3
    assert "Tasks are left" in ended.err
    assert not stage.path("ran").exists()


def test_tasks_start_where_load_and_memory_allow_it(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, run("--load", "100000", "--memfree", "1K", "-p", "P", "Tasks"))
    assert stage.codes("P") == {0: 0}
    assert "nothing is started" not in log_of(stage, "P")


# -- in random order ---------------------------------------------------------------------


def test_the_order_is_shuffled_within_barriers_and_ids_stay(stage: Stage) -> None:
    echo = "echo $DISBATCH_TASKID $DISBATCH_STREAM_INDEX >> ran"
    stage.write("Tasks", *[echo] * 9, "#DISBATCH BARRIER", *[echo] * 9)
    ends(stage, run("-j", "1", "--shuffle=5", "-p", "P", "Tasks"))
    ran = [tuple(map(int, line.split())) for line in stage.read("ran").splitlines()]
    first, second = ran[:9], ran[9:]
    assert sorted(first) == [(id, id + 1) for id in range(9)] != first
    assert sorted(second) == [(id, id + 1) for id in range(10, 19)] != second


def test_one_seed_is_one_order(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 12 true")
    for prefix, seed in (("P", "5"), ("Q", "5"), ("R", "6")):
        ends(stage, run("-q", "-j", "1", f"--shuffle={seed}", "-p", prefix, "Tasks"))
    assert ids(stage, "P") == ids(stage, "Q") != ids(stage, "R")


def test_without_a_seed_the_run_says_which_it_took(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 12 true")
    ended = ends(stage, run("-j", "1", "-p", "P", "--shuffle", "Tasks"))
    # It is a warning, and so is said once more in the closing summary.
    (told,) = {word for word in ended.err.split() if word.startswith("--shuffle=")}
    ends(stage, run("-j", "1", told, "-p", "Q", "Tasks"))
    assert ids(stage, "P") == ids(stage, "Q")


def test_a_stream_cannot_be_shuffled(stage: Stage) -> None:
    ended = stage.run(run("--shuffle", "-"))
    assert ended.status == 2
    assert "--shuffle" in ended.err


# -- not at all --------------------------------------------------------------------------


def test_a_dry_run_shows_every_task_and_runs_none(stage: Stage) -> None:
    stage.write(
        "Tasks", "#DISBATCH PERENGINE START echo begin", "#DISBATCH PREFIX echo ",
        "a > ran", "#DISBATCH BARRIER CHECK", "#DISBATCH REPEAT 2 start 5 step 3 b",
    )
    ended = ends(stage, run("--dry-run", "-p", "P", "Tasks"))
    assert ended.out == """\
at the start of each engine, line 1
  echo begin
task 0, line 3
  DISBATCH_TASKID=0 DISBATCH_TASKID_ZP=000000 DISBATCH_STREAM_INDEX=3 \
DISBATCH_STREAM_INDEX_ZP=000003 DISBATCH_REPEAT_INDEX=-1 DISBATCH_REPEAT_INDEX_ZP=-00001
  echo a > ran
barrier with check 1, line 4
task 2, line 5, repeat index 5
  DISBATCH_TASKID=2 DISBATCH_TASKID_ZP=000002 DISBATCH_STREAM_INDEX=5 \
DISBATCH_STREAM_INDEX_ZP=000005 DISBATCH_REPEAT_INDEX=5 DISBATCH_REPEAT_INDEX_ZP=000005
  echo b
task 3, line 5, repeat index 8
  DISBATCH_TASKID=3 DISBATCH_TASKID_ZP=000003 DISBATCH_STREAM_INDEX=5 \
DISBATCH_STREAM_INDEX_ZP=000005 DISBATCH_REPEAT_INDEX=8 DISBATCH_REPEAT_INDEX_ZP=000008
  echo b
"""
    assert new_files(stage, "Tasks") == set()


def test_a_dry_run_of_a_resume_shows_what_was_done_too(stage: Stage) -> None:
    stage.write("Tasks", "# head", *["true"] * 5, "false", "true")
    stage.run(run("-q", "-p", "P", "Tasks"))
    out = ends(stage, run("--dry-run", "-R", "-r", "P_status.txt", "-p", "Q", "Tasks")).out
    done = [f"task {id}, line {id + 2}: done before, exit code 0" for id in (0, 1, 2, 3, 4, 6)]
    assert [line for line in out.splitlines() if "done before" in line] == done
    assert "task 5, line 7\n" in out


def test_a_dry_run_refuses_what_a_run_would_refuse(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARIER")
    ended = ends(stage, run("--dry-run", "Tasks"), status=1)
    assert "line 2" in ended.err


# -- pairs -------------------------------------------------------------------------------


def test_a_dry_resume_says_what_was_done_before(stage: Stage) -> None:
    stage.write("Tasks", "true", "false")
    empties(stage, run("-j", "1", "-C", "1", "-p", "P", "Tasks"))
    ended = ends(stage, run("--dry-run", "-p", "P", "-r", "P_status.txt", "Tasks"))
    assert ended.out.splitlines()[:2] == [
        "task 0, line 1: done before, exit code 0", "task 1, line 2",
    ]
    assert ids(stage, "P") == [0]


def test_a_dry_run_shows_the_order_of_a_shuffle(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 8 true")
    order = ["-j", "1", "--shuffle=5", "-p", "P", "Tasks"]
    shown = ends(stage, run("--dry-run", *order)).out.splitlines()
    ends(stage, run(*order))
    shown_ids = [int(line.split()[1].rstrip(",")) for line in shown if line.startswith("task")]
    assert shown_ids == ids(stage, "P")
