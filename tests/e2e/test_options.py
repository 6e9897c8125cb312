"""Every option does what it says: each test here fails without its option."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.kit import Stage, disbatch, overnight, run, until

ALONE = "set -C; echo > alone || exit 1; sleep 0.05; rm alone"
"""A task that fails when another one of its kind runs beside it."""


def together(count: int) -> str:
    """A task that ends only when so many of its kind run at the same time."""
    return (
        f"echo > here$DISBATCH_TASKID; for i in $(seq 500); do"
        f" [ $(ls here* | wc -l) -ge {count} ] && exit 0; sleep 0.02; done; exit 1"
    )


# -- slots -------------------------------------------------------------------------------


def test_jobs_is_how_many_run_at_once(stage: Stage) -> None:
    stage.write("Three", *[together(3)] * 3)
    assert stage.run(run("-j", "3", "-p", "three", "Three")).status == 0
    stage.write("One", *[ALONE] * 6)
    assert stage.run(run("--jobs", "1", "-p", "one", "One")).status == 0


def test_without_jobs_every_core_has_a_slot(stage: Stage) -> None:
    cores = len(os.sched_getaffinity(0))
    stage.write("Tasks", *[together(cores)] * cores)
    assert stage.run(run("-p", "P", "Tasks")).status == 0


def test_tasks_per_node_limits_slots(stage: Stage) -> None:
    stage.write("Tasks", *[ALONE] * 6)
    assert stage.run(disbatch("-e", "-t", "1", "-p", "P", "Tasks")).status == 0


def test_cpus_per_task_divides_the_cores(stage: Stage) -> None:
    stage.write("Tasks", "echo $DISBATCH_CORES_PER_TASK; " + ALONE, ALONE)
    assert stage.run(disbatch("-e", "-c", "2", "-p", "P", "Tasks")).status == 0
    assert next(row.out for row in stage.rows("P") if row.id == 0) == "'2\\n'"


def test_a_fraction_of_a_cpu_per_task_makes_more_slots(stage: Stage) -> None:
    stage.write("Tasks", *[together(4)] * 4)
    assert stage.run(disbatch("-e", "-c", "0.5", "-p", "P", "Tasks")).status == 0


def test_hosts_may_be_named_by_the_environment(stage: Stage) -> None:
    stage.write("Tasks", *[together(3)] * 3)
    command = [disbatch()[0], "-e", "-p", "P", "Tasks"]
    assert stage.run(command, env={"DISBATCH_SSH_NODELIST": "localhost:3"}).status == 0


def test_gpu_gives_each_slot_a_device(stage: Stage) -> None:
    stage.write("Tasks", *["echo $CUDA_VISIBLE_DEVICES $GPU_DEVICE_ORDINAL; " + together(2)] * 2)
    devices = {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "GPU_DEVICE_ORDINAL": "4,5"}
    assert stage.run(disbatch("-e", "-g", "-p", "P", "Tasks"), env=devices).status == 0
    assert sorted(row.out for row in stage.rows("P")) == ["'GPU-a 4\\n'", "'GPU-b 5\\n'"]


def test_env_resource_gives_each_slot_a_value_and_lowers_slots_to_the_values(
    stage: Stage,
) -> None:
    stage.write("Tasks", *["echo $LICENCE; " + ALONE] * 3)
    ended = stage.run(disbatch("-e", "-E", "LICENCE", "-p", "P", "Tasks"), env={"LICENCE": "x"})
    assert ended.status == 0
    assert {row.out for row in stage.rows("P")} == {"'x\\n'"}


def test_the_label_is_in_the_name_of_the_engine_log(stage: Stage) -> None:
    stage.write("Tasks", "true")
    assert stage.run(disbatch("-l", "desk", "-p", "P", "Tasks")).status == 0
    assert list(stage.folder.glob("P_desk_*_engine_0.log"))


def test_a_context_leaves_after_its_limit_of_tasks(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 5)
    ended = stage.run(disbatch("-C", "3", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert "Tasks are left. Go on with:\n  overnight resume" in ended.err
    assert len(stage.codes("P")) == 3


# -- trying again, giving up --------------------------------------------------------------


def test_retries_are_made_after_a_growing_pause_and_only_the_last_has_a_row(
    stage: Stage,
) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 3 ] || exit 7")
    ended = stage.run(run("--retries", "5", "-p", "P", "Tasks"))
    assert ended.status == 0
    assert stage.codes("P") == {0: 0}
    attempts = stage.attempts("P")
    assert [(one["attempt"], one["code"]) for one in attempts] == [(1, 7), (2, 7), (3, 0)]
    starts = [one["start"] for one in attempts]
    assert starts[1] - starts[0] > 0.99
    assert starts[2] - starts[1] > 1.99


def test_a_task_that_fails_every_attempt_has_one_failed_row(stage: Stage) -> None:
    stage.write("Tasks", "exit 7")
    assert stage.run(run("--retries", "1", "-p", "P", "Tasks")).status == 1
    assert stage.codes("P") == {0: 7}
    assert len(stage.attempts("P")) == 2


def test_timeout_ends_the_attempt_and_its_tree(stage: Stage) -> None:
    stage.write("Tasks", "setsid sleep 1000 & sleep 1000")
    ended = stage.run(run("--timeout", "0.3", "-p", "P", "Tasks"))
    assert ended.status == 1
    stage.is_empty_soon()
    (attempt,) = stage.attempts("P")
    assert attempt["words"] == "over its time limit of 0.3 s"
    assert "over its time limit" in ended.err


def test_kill_after_is_how_long_a_deaf_task_has(stage: Stage) -> None:
    stage.write("Tasks", "trap '' TERM; while :; do sleep 0.05; done")
    ended = stage.run(run("--timeout", "0.2", "--kill-after", "1.5", "-p", "P", "Tasks"))
    assert ended.status == 1
    (row,) = stage.rows("P")
    assert row.code == -signal.SIGKILL
    assert 1.6 < row.elapsed_s < 10


def test_max_failures_ends_the_run(stage: Stage) -> None:
    stage.write("Tasks", "false", "true", "false", "true")
    ended = stage.run(run("-j", "1", "--max-failures", "2", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert stage.codes("P") == {0: 1, 1: 0, 2: 1}
    assert "--max-failures was reached" in ended.err


def test_fail_fast_ends_what_runs(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; sleep 1000",
                "until [ -e began ]; do sleep 0.02; done; exit 5", "true")
    ended = stage.run(disbatch("-f", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert "Quitting early due to task failure with --fail-fast" in ended.err
    stage.is_empty_soon()
    rows = {row.id: row for row in stage.rows("P")}
    assert set(rows) == {0, 1}
    assert rows[0].is_cut
    assert rows[1].code == 5


def test_exit_code_makes_a_failed_task_the_status(stage: Stage) -> None:
    stage.write("Tasks", "false")
    assert stage.run(disbatch("-p", "P", "Tasks")).status == 0
    ended = stage.run(disbatch("-e", "-p", "Q", "Tasks"))
    assert ended.status == 1
    assert "Some tasks failed with non-zero exit codes -- please check the logs" in ended.err


def test_crash_limit_is_how_often_a_task_may_take_its_runner_down(stage: Stage) -> None:
    stage.write("Tasks", "echo >> tries; kill -9 $PPID; sleep 1000")
    ended = stage.run(run("--crash-limit", "2", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert stage.read("tries") == "\n\n"
    assert stage.codes("P") == {0: -100}
    stage.is_empty_soon()


# -- when tasks start ---------------------------------------------------------------------


def test_delay_is_the_least_time_between_starts(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 4)
    assert stage.run(run("-j", "4", "--delay", "0.3", "-p", "P", "Tasks")).status == 0
    starts = sorted(row.started_at for row in stage.rows("P"))
    # Given to the engine 0.3 s apart; it starts each within a few milliseconds, give or take.
    assert all(later - earlier > 0.2 for earlier, later in zip(starts, starts[1:], strict=False))


@pytest.mark.parametrize("option", ["--load=-1", "--memfree=1000T"])
def test_load_and_memfree_hold_back_starts(stage: Stage, option: str) -> None:
    stage.write("Tasks", "true")
    live = stage.start(run(option, "-p", "P", "Tasks"))
    until(lambda: "has joined" in stage.read("P_driver.log"), "the engine is there")
    live.signal(signal.SIGINT)
    assert live.wait().status == 3
    assert stage.codes("P") == {}


@pytest.mark.parametrize("option", ["--load=1e9", "--memfree=1K"])
def test_load_and_memfree_let_tasks_start_where_there_is_room(stage: Stage, option: str) -> None:
    stage.write("Tasks", "true")
    assert stage.run(run(option, "-p", "P", "Tasks")).status == 0


def _order(stage: Stage, prefix: str) -> list[int]:
    return [row.id for row in stage.rows(prefix)]


def test_shuffle_starts_tasks_in_another_order_within_barriers(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 30, "#DISBATCH BARRIER", *["true"] * 30)
    for prefix in ("one", "two"):
        assert stage.run(run("-j", "1", "--shuffle=7", "-p", prefix, "Tasks")).status == 0
    first = _order(stage, "one")
    assert sorted(first) == list(range(61))
    assert first != sorted(first)
    assert sorted(first[:30]) == list(range(30))
    assert first[30] == 30
    assert _order(stage, "two") == first


def test_shuffle_without_a_seed_differs_from_run_to_run(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 50)
    for prefix in ("one", "two"):
        assert stage.run(run("-j", "1", "-p", prefix, "Tasks", "--shuffle")).status == 0
    assert _order(stage, "one") != _order(stage, "two")


# -- how tasks are run --------------------------------------------------------------------


def _page_faults(stage: Stage, *options: str) -> int:
    """Of a task without shell syntax; what ran in its process before it is counted too."""
    ended = stage.run(run("--print", "-q", *options, "Tasks"))
    return int(ended.out.rpartition(")")[2].split()[7])


def test_always_shell_starts_plain_lines_through_bash_too(stage: Stage) -> None:
    # The first few lines of a list go through bash in any case: what for is not worth asking.
    stage.write("Tasks", "#DISBATCH REPEAT 40 /bin/true", "/bin/cat /proc/self/stat")
    faults = _page_faults(stage)
    assert faults + 50 < _page_faults(stage, "--always-shell")


def test_late_output_is_waited_for_and_counted(stage: Stage) -> None:
    stage.write("Tasks", "{ until [ -e go ]; do sleep 0.02; done; echo late; } & sleep 0.1",
                "echo > go")
    command = ["-j", "2", "--leave-children", "-p"]
    assert stage.run(run(*command, "P", "--late-output", "30", "Tasks")).status == 0
    assert [row.out for row in stage.rows("P") if row.id == 0] == ["'late\\n'"]


def test_without_late_output_the_slot_is_free_at_once(stage: Stage) -> None:
    stage.write("Tasks", "sleep 1000 & true", "true")
    ended = stage.run(run("-j", "1", "--leave-children", "--late-output", "0", "-p", "P", "Tasks"))
    assert ended.status == 0
    first, second = stage.rows("P")
    assert second.started_at - first.finished_at < 2


def test_children_left_behind_end_before_the_row_of_their_task(stage: Stage) -> None:
    stage.write("Tasks", "sleep 1000 >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & true",
                "ps -eo args | grep -c '[s]leep 1000' || true")
    assert stage.run(run("-j", "1", "-p", "P", "Tasks")).status == 0
    left = [process for process in stage.left() if process.command == "sleep 1000"]
    assert not left


def test_leave_children_lets_them_live_on_and_counts_them(stage: Stage) -> None:
    stage.write("Tasks", "sleep 1000 >/dev/null 2>&1 & true")
    ended = stage.run(run("--leave-children", "-p", "P", "Tasks"))
    assert ended.status == 0
    assert [process.command for process in stage.left()] == ["sleep 1000"]
    assert "1 processes were left running" in ended.err


def test_disbatch_lets_children_live_on(stage: Stage) -> None:
    stage.write("Tasks", "sleep 1000 >/dev/null 2>&1 & true")
    assert stage.run(disbatch("-p", "P", "Tasks")).status == 0
    assert [process.command for process in stage.left()] == ["sleep 1000"]


# -- output -------------------------------------------------------------------------------


def test_output_keeps_each_stream_of_each_task_and_no_empty_ones(stage: Stage) -> None:
    stage.write("Tasks", "echo out", "echo err >&2", "true",
                "#DISBATCH REPEAT 2 start 1 echo $DISBATCH_REPEAT_INDEX")
    assert stage.run(run("--output", "kept", "-p", "P", "Tasks")).status == 0
    kept = {str(path.relative_to(stage.path("kept"))): path.read_text()
            for path in stage.path("kept").rglob("*") if path.is_file()}
    assert kept == {"0/0.out": "out\n", "0/1.err": "err\n", "0/3.out": "1\n", "0/4.out": "2\n"}
    assert {row.id: row.out_count for row in stage.rows("P")} == {0: 4, 1: 0, 2: 0, 3: 2, 4: 2}


def test_a_thousand_tasks_share_a_folder_of_outputs(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 1002 [ $DISBATCH_TASKID -lt 998 ] || echo x")
    assert stage.run(run("--output", "kept", "-p", "P", "Tasks"), limit_s=120).status == 0
    kept = sorted(str(path.relative_to(stage.path("kept"))) for path in
                  stage.path("kept").rglob("*.out"))
    assert kept == ["0/998.out", "0/999.out", "1/1000.out", "1/1001.out"]


def test_print_shows_each_tasks_output_whole(stage: Stage) -> None:
    stage.write("Tasks", *["for i in 1 2 3; do echo $DISBATCH_TASKID; sleep 0.02; done"] * 4,
                "echo oops >&2")
    ended = stage.run(run("-j", "4", "--print", "-q", "-p", "P", "Tasks"))
    assert ended.status == 0
    lines = ended.out.split()
    assert sorted(lines) == sorted("0 1 2 3".split() * 3)
    assert [lines[at] for at in (0, 3, 6, 9)] == [lines[at + 2] for at in (0, 3, 6, 9)]
    assert ended.err == "oops\n"
    assert not list(stage.folder.glob("P_print*")), "nobody asked for files"


def test_keep_order_prints_in_the_order_of_the_list(stage: Stage) -> None:
    stage.write("Tasks", "until [ -e go ]; do sleep 0.02; done; echo first", "echo second",
                "echo third; echo > go")
    ended = stage.run(run("-j", "3", "--print", "--keep-order", "-p", "P", "Tasks"))
    assert ended.out.split() == ["first", "second", "third"]


def test_without_keep_order_prints_in_order_of_completion(stage: Stage) -> None:
    stage.write("Tasks", "until [ -e go ]; do sleep 0.02; done; echo first",
                "echo second; until [ -s P_status.txt ]; do sleep 0.02; done; echo > go",
                "echo third")
    ended = stage.run(run("-j", "3", "--print", "-p", "P", "Tasks"))
    assert ended.out.split()[0] == "third"


def test_tag_puts_the_id_before_each_line(stage: Stage) -> None:
    stage.write("Tasks", "echo a; echo b", "printf c")
    ended = stage.run(run("-j", "1", "--print", "--tag", "-p", "P", "Tasks"))
    assert ended.out == "0\ta\n0\tb\n1\tc\n"


def test_dry_run_shows_every_task_and_makes_nothing(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH PREFIX cd /x &&", "#DISBATCH PREFIX cd x; ",
                "#DISBATCH REPEAT 2 start 5 echo $DISBATCH_REPEAT_INDEX", "#DISBATCH BARRIER",
                "echo > ran")
    ended = stage.run(run("--dry-run", "Tasks"))
    assert ended.status == 0
    assert "task 1, line 3, repeat index 6\n" in ended.out
    assert "DISBATCH_REPEAT_INDEX=6 DISBATCH_REPEAT_INDEX_ZP=000006" in ended.out
    assert "barrier 2, line 4\n" in ended.out
    assert "task 3, line 5\n" in ended.out
    assert "  cd x; echo > ran\n" in ended.out
    assert [path.name for path in stage.folder.iterdir()] == ["Tasks"]


def test_quiet_says_nothing_of_a_run_that_went_well(stage: Stage) -> None:
    stage.write("Tasks", "true", "false")
    ended = stage.run(run("-q", "-p", "P", "Tasks"))
    assert (ended.out, ended.err) == ("", "")
    assert "2 tasks: 1 done, 1 failed" in stage.run(run("-p", "Q", "Tasks")).err


def test_quiet_still_says_what_goes_wrong(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER check")
    ended = stage.run(run("-q", "--directives", "lenient", "-p", "P", "Tasks"))
    assert "line 2" in ended.err


def test_json_is_an_object_a_line_and_the_last_has_the_summary(stage: Stage) -> None:
    stage.write("Tasks", "echo hi", "exit 3", "#DISBATCH BARRIER", "true")
    ended = stage.run(run("--json", "-p", "P", "Tasks"))
    assert ended.status == 1
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert events[0]["event"] == "started"
    assert events[0]["total"] == 4
    kinds = {event["event"] for event in events}
    assert {"assigned", "attempt", "barrier", "finished"} <= kinds
    last = events[-1]
    assert (last["event"], last["done"], last["failed"]) == ("finished", 2, 1)
    assert last["rerun"] == f"overnight resume -R {stage.path('P')}"


def test_json_stays_whole_when_its_reader_leaves(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 50)
    command = " ".join(run("--json", "-q", "-p", "P", "Tasks"))
    ended = stage.run(["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"])
    assert (ended.status, ended.err) == (0, "")
    assert len(stage.codes("P")) == 50


# -- detached -----------------------------------------------------------------------------


def test_a_detached_run_goes_on_and_attach_shows_it(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "false")
    ended = stage.run(run("--detach", "-j", "1", "-p", "P", "Tasks"))
    assert ended.status == 0
    assert f"overnight attach {stage.path('P')}" in ended.out
    stage.appears("began")
    watcher = stage.start(overnight("attach", "P"))
    until(lambda: "running" in watcher.err or "0 of 2" in watcher.err, "progress")
    stage.write("go")
    ended = watcher.wait()
    assert ended.status == 1
    assert "1 done, 1 failed" in ended.out
    assert f"overnight resume -R {stage.path('P')}" in ended.out
    stage.is_empty_soon()


def test_whoever_watches_a_detached_run_may_leave_it(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done")
    stage.run(run("--detach", "-p", "P", "Tasks"))
    stage.appears("began")
    watcher = stage.start(overnight("attach"))
    until(lambda: "0 of 1" in watcher.err, "progress")
    watcher.signal(signal.SIGINT)
    assert watcher.wait().status == 130
    assert "Traceback" not in watcher.err
    stage.write("go")
    until(lambda: not stage.left(), "the run ends")
    assert stage.codes("P") == {0: 0}


def test_a_detached_run_that_cannot_start_says_why(stage: Stage) -> None:
    stage.write("Tasks", "true")
    stage.write("P_status.txt")
    ended = stage.run(run("--detach", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert "P_status.txt" in ended.err


def test_attach_finds_a_run_that_has_ended(stage: Stage) -> None:
    stage.write("Tasks", "true")
    stage.run(run("-p", "P", "Tasks"))
    ended = stage.run(overnight("attach", "P"))
    assert ended.status == 0
    assert "1 done, 0 failed" in ended.out


# -- records ------------------------------------------------------------------------------


def test_status_header_names_the_columns(stage: Stage) -> None:
    stage.write("Tasks", "true")
    stage.run(disbatch("--status-header", "-p", "P", "Tasks"))
    stage.run(disbatch("-p", "Q", "Tasks"))
    assert stage.read("P_status.txt").startswith("ROE[ PSZ]\tTaskID\tLineNum\tRepeatIndex\t")
    assert stage.read("Q_status.txt").startswith("    \t0\t")


def test_logfile_is_where_the_driver_log_goes(stage: Stage) -> None:
    stage.write("Tasks", "false")
    stage.run(disbatch("--logfile", "here.log", "-p", "P", "Tasks"))
    assert "exit code 1" in stage.read("here.log")
    assert not stage.path("P_driver.log").exists()


@pytest.mark.parametrize(("level", "has_failures", "has_assignments"), [
    ("DEBUG", True, True), ("INFO", True, False), ("ERROR", False, False),
])
def test_loglevel_is_what_the_driver_log_keeps(
    stage: Stage, level: str, has_failures: bool, has_assignments: bool
) -> None:
    stage.write("Tasks", "false")
    stage.run(disbatch("--loglevel", level, "-p", "P", "Tasks"))
    log = stage.read("P_driver.log")
    assert ("exit code 1" in log) == has_failures
    assert ("gets tasks" in log) == has_assignments


def test_a_prefix_may_be_a_folder_or_the_whole_beginning_of_names(stage: Stage) -> None:
    stage.write("My.Tasks", "true")
    for folder in ("one", "two"):
        stage.path(folder).mkdir()
    assert stage.run(disbatch("-p", "one", "My.Tasks")).status == 0
    assert stage.run(disbatch("-p", "two/", "My.Tasks")).status == 0
    assert stage.run(disbatch("-p", "two/P", "My.Tasks")).status == 0
    assert stage.run(disbatch("My.Tasks")).status == 0
    default = re.compile(r"My\.Tasks_disBatch_\d{12}_\d{3}_status\.txt")
    assert [bool(default.fullmatch(path.name)) for path in stage.path("one").glob("*_status.txt")
            ] == [True]
    assert [bool(default.fullmatch(path.name)) for path in stage.folder.glob("*_status.txt")
            ] == [True]
    assert stage.path("two/P_status.txt").exists()


@pytest.mark.parametrize("prefix", ["missing/P", "missing/"])
def test_a_prefix_in_a_missing_folder_is_refused(stage: Stage, prefix: str) -> None:
    stage.write("Tasks", "true")
    ended = stage.run(disbatch("-p", prefix, "Tasks"))
    assert ended.status == 1
    assert f"Directory {stage.path('missing')} does not exist." in ended.err


def test_a_suspicious_directive_is_refused_or_read_leniently(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARIER", "true")
    ended = stage.run(disbatch("-p", "P", "Tasks"))
    assert ended.status == 1
    assert "line 2" in ended.err
    assert "BARIER" in ended.err
    assert [path.name for path in stage.folder.iterdir()] == ["Tasks"]
    ended = stage.run(disbatch("--directives", "lenient", "-p", "P", "Tasks"))
    assert ended.status == 0
    assert "line 2" in ended.err
    assert len(stage.codes("P")) == 2


# -- what is not there ---------------------------------------------------------------------


@pytest.mark.parametrize("option", [
    ["-w"], ["-S"], ["--taskserver"], ["--taskcommand", "x"], ["--kvsserver", "h:1"],
    ["--status-server"],
])
def test_what_is_not_there_yet_says_so(stage: Stage, option: list[str]) -> None:
    stage.write("Tasks", "echo > ran")
    command = [disbatch()[0], *option, *([] if option[0].startswith("--task") else ["Tasks"])]
    ended = stage.run(command)
    assert ended.status == 2
    assert "is not there yet" in ended.err
    assert not stage.path("ran").exists()


@pytest.mark.parametrize("verb", ["check", "monitor", "web", "pool", "join", "queue", "explain"])
def test_verbs_that_are_not_there_yet_say_so(stage: Stage, verb: str) -> None:
    ended = stage.run(overnight(verb))
    assert ended.status == 2
    assert "is not there yet" in ended.err


def test_the_commands_are_on_the_path_of_their_environment() -> None:
    for command in ("overnight", "disBatch", "disbatch"):
        assert Path(run()[0]).with_name(command).exists()
