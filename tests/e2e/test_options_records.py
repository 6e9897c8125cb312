"""Options about records and resuming: each test fails where its option has no effect."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.e2e.kit import Stage, disbatch, overnight, run
from tests.e2e.options_kit import empties, ends, flags, ids, log_of, logs, new_files, tasks_of

HEADER = (
    "ROE[ PSZ]\tTaskID\tLineNum\tRepeatIndex\tNode\tPID\tReturnCode\tElapsed\tStart\tFinish\t"
    "BytesOfLeakedOutput\tOutputSnippet\tBytesOfLeakedError\tErrorSnippet\tCommand"
)
DEFAULT_NAME = re.compile(r"Tasks_disBatch_\d{12}_\d{3}_status\.txt")


# -- where records lie -------------------------------------------------------------------


def _status_files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*_status.txt")]


@pytest.mark.parametrize("prefix", ["", "sub"])
def test_a_prefix_that_is_a_folder_gets_the_default_name(stage: Stage, prefix: str) -> None:
    stage.path("sub").mkdir()
    stage.write("Tasks", "echo $DISBATCH_JOBID > id")
    ends(stage, disbatch(*(["-p", prefix] if prefix else []), "Tasks"))
    (name,) = _status_files(stage.path(prefix))
    assert DEFAULT_NAME.fullmatch(name)
    assert stage.read("id") == name.removesuffix("_status.txt") + "\n"


def test_any_other_prefix_begins_every_name(stage: Stage) -> None:
    stage.path("two words").mkdir()
    stage.write("Tasks", "true")
    ends(stage, disbatch("--prefix", "two words/night 1", "Tasks"))
    names = {path.name for path in stage.path("two words").iterdir()}
    assert "night 1_status.txt" in names
    assert all(name.startswith("night 1_") for name in names)
    assert new_files(stage, "Tasks", "two words") == set()


@pytest.mark.parametrize("prefix", ["missing/P", "missing/"])
def test_a_prefix_in_a_missing_folder_is_refused(stage: Stage, prefix: str) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, disbatch("-p", prefix, "Tasks"), status=1)
    assert ended.err == f"Directory {stage.path('missing')} does not exist.\n"
    assert new_files(stage, "Tasks") == set()


def test_a_prefix_that_is_taken_is_refused_and_left_alone(stage: Stage) -> None:
    stage.write("Tasks", "echo >> ran")
    ends(stage, disbatch("-p", "P", "Tasks"))
    before = stage.read("P_status.txt")
    ended = ends(stage, disbatch("-p", "P", "Tasks"), status=1)
    assert "the status file of an earlier run lies there" in ended.err
    assert (stage.read("P_status.txt"), stage.read("ran")) == (before, "\n")


# -- what stands in them -----------------------------------------------------------------


def test_a_status_header_names_the_columns_once(stage: Stage) -> None:
    stage.write("Tasks", "true", "true")
    empties(stage, disbatch("-C", "1", "--status-header", "-p", "P", "Tasks"))
    ends(stage, disbatch("--status-header", "-p", "P", "-r", "P_status.txt", "Tasks"))
    lines = stage.read("P_status.txt").splitlines()
    assert lines[0] == HEADER
    assert lines.count(HEADER) == 1
    assert stage.codes("P") == {0: 0, 1: 0}


def test_without_a_status_header_the_first_line_is_a_row(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, disbatch("-p", "P", "Tasks"))
    assert stage.read("P_status.txt").startswith("    \t0\t1\t")


def test_a_logfile_is_the_drivers_log_instead(stage: Stage) -> None:
    stage.path("logs").mkdir()
    stage.write("Tasks", "true")
    ends(stage, disbatch("--logfile", "logs/my log", "-p", "P", "Tasks"))
    assert "engine 0" in stage.read("logs/my log")
    assert not stage.path("P_driver.log").exists()


@pytest.mark.parametrize("name", ["Tasks", "hard link", "P_status.txt", "P_run.json"])
def test_a_logfile_is_no_file_that_the_run_needs(stage: Stage, name: str) -> None:
    stage.write("Tasks", "true")
    os.link(stage.path("Tasks"), stage.path("hard link"))
    ended = ends(stage, disbatch("--logfile", name, "-p", "P", "Tasks"), status=2)
    assert f"--logfile {name}" in ended.err
    assert stage.path("Tasks").read_text() == "true\n"
    assert not stage.path("P_status.txt").exists()


@pytest.mark.parametrize("ending", [
    "status.txt", "tasks.jsonl", "driver.log", "run.json", "engines.json", "engine.pyz",
    "dbUtil.sh",
])  # fmt: skip
def test_a_list_is_no_file_that_the_run_writes(stage: Stage, ending: str) -> None:
    stage.write(f"P_{ending}", "true")
    ended = stage.run(disbatch("-p", "P", f"P_{ending}"))
    assert ended.status != 0
    assert f"P_{ending}" in ended.err
    assert [path.name for path in stage.folder.glob("P_*")] == [f"P_{ending}"]
    assert stage.read(f"P_{ending}") == "true\n"


def test_a_logfile_that_cannot_be_made_stops_the_run(stage: Stage) -> None:
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, disbatch("--logfile", "missing/log", "-p", "P", "Tasks"), status=1)
    assert "missing/log" in ended.err
    assert "nothing was started" in ended.err
    assert new_files(stage, "Tasks") == set()


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("DEBUG", {"DEBUG", "INFO", "WARNING"}),
        ("INFO", {"INFO", "WARNING"}),
        ("WARNING", {"WARNING"}),
        ("ERROR", set()),
        ("CRITICAL", set()),
    ],
)
def test_the_log_keeps_what_its_level_says(stage: Stage, level: str, kept: set[str]) -> None:
    stage.write("Tasks", "true", "false")
    ends(stage, disbatch("-E", "NOT_SET", "--loglevel", level, "-p", "P", "Tasks"))
    assert {line.split()[2] for line in log_of(stage, "P").splitlines()} == kept


# -- resuming ----------------------------------------------------------------------------


def _first_run(stage: Stage, *lines: str, prefix: str = "P", status: int = 0) -> None:
    stage.write("Tasks", *lines)
    ends(stage, disbatch("-e", "-p", prefix, "Tasks"), status)


def test_what_an_earlier_run_completed_is_skipped(stage: Stage) -> None:
    _first_run(stage, "echo >> ran", "echo >> ran; false", status=1)
    stage.write("Tasks", "# a comment more", "echo >> ran", "echo >> ran; false", "true")
    ends(stage, disbatch("-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert flags(stage, "Q") == {0: "   S", 1: "R  S", 2: "    "}
    assert stage.read("ran") == "\n\n"


def test_several_earlier_runs_count_together(stage: Stage) -> None:
    for name, limit in (("P", "1"), ("Q", "2")):
        stage.write("Tasks", "echo a >> ran", "echo b >> ran", "echo c >> ran")
        empties(stage, disbatch("-t", "1", "-C", limit, "-p", name, "Tasks"))
    stage.write("P_status.txt", *stage.read("P_status.txt").splitlines()[:1])
    stage.write("Q_status.txt", *stage.read("Q_status.txt").splitlines()[1:])
    ends(stage, disbatch("-p", "R", "-r", "P_status.txt", "-r", "Q_status.txt", "Tasks"))
    assert flags(stage, "R") == {0: "   S", 1: "   S", 2: "    "}


def test_a_run_goes_on_in_its_own_file_any_number_of_times(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 3)
    again = ["-r", "P_status.txt"]
    for options, has_left in (([], True), (again, True), (again, False), (again, False)):
        command = disbatch("-C", "1", *options, "-p", "P", "Tasks")
        empties(stage, command) if has_left else ends(stage, command)
    assert ids(stage, "P") == [0, 1, 2]


def test_retry_runs_again_what_failed_and_only_that(stage: Stage) -> None:
    _first_run(stage, "echo 0 >> ran", "echo 1 >> ran; test -e again", status=1)
    stage.write("again")
    ends(stage, disbatch("-R", "-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert flags(stage, "Q") == {0: "   S", 1: "    "}
    assert sorted(stage.read("ran").split()) == ["0", "1", "1"]


def test_retry_without_an_earlier_run_changes_nothing(stage: Stage) -> None:
    stage.write("Tasks", "true")
    ends(stage, disbatch("-R", "-p", "P", "Tasks"))
    assert stage.codes("P") == {0: 0}


def test_a_changed_task_is_refused_with_both_texts(stage: Stage) -> None:
    _first_run(stage, "echo old > side")
    stage.write("Tasks", "echo new > side")
    ended = ends(stage, disbatch("-p", "Q", "-r", "P_status.txt", "Tasks"), status=1)
    assert 'task 0 was "echo old > side", the list now says "echo new > side"' in ended.err
    assert stage.read("side") == "old\n"
    assert not _status_files(stage.folder)[1:]


def test_force_resume_goes_by_the_number_alone(stage: Stage) -> None:
    _first_run(stage, "echo old > side")
    stage.write("Tasks", "echo new > side", "true")
    ends(stage, disbatch("--force-resume", "-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert flags(stage, "Q") == {0: "   S", 1: "    "}
    assert stage.read("side") == "old\n"


def test_by_text_finds_a_task_that_was_moved_and_says_so(stage: Stage) -> None:
    _first_run(stage, "echo a >> ran", "echo b >> ran")
    stage.write("Tasks", "echo new >> ran", "echo b >> ran", "echo a >> ran")
    ended = ends(stage, disbatch("--by-text", "-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert flags(stage, "Q") == {0: " " * 4, 1: "   S", 2: "   S"}
    assert sorted(stage.read("ran").split()) == ["a", "b", "new"]
    assert "by text: 2 tasks were done before" in ended.err


def test_going_by_number_and_going_by_text_exclude_each_other(stage: Stage) -> None:
    _first_run(stage, "true")
    both = ["--force-resume", "--by-text"]
    ended = ends(stage, disbatch(*both, "-p", "Q", "-r", "P_status.txt", "Tasks"), status=2)
    assert "give one" in ended.err


@pytest.mark.parametrize(("limit", "begins"), [("1", False), ("0", True)])
def test_above_the_check_limit_a_list_is_compared_while_it_is_read(
    stage: Stage, limit: str, begins: bool
) -> None:
    _first_run(stage, "true")
    stage.write("Tasks", "false")
    check = ["--resume-check-limit", limit]
    ended = ends(stage, disbatch(*check, "-p", "Q", "-r", "P_status.txt", "Tasks"), status=1)
    assert 'task 0 was "true", the list now says "false"' in ended.err
    assert ("not beforehand" in ended.err) == begins
    assert stage.path("Q_status.txt").exists() == begins


# -- reports that nobody can keep --------------------------------------------------------


def test_an_engine_that_can_keep_its_reports_nowhere_waits_so_long_for_a_driver(
    stage: Stage,
) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done")
    live = stage.start(disbatch("--keep-reports", "0.5s", "-p", "P", "Tasks"))
    stage.appears("began")
    spools = json.loads(stage.read("P_engines.json"))["spools"]
    for spool in spools:
        Path(spool).mkdir()  # so that no report can be written there
    try:
        live.signal(9)
        stage.write("go")
        stage.is_empty_soon()
    finally:
        for spool in spools:
            Path(spool).rmdir()
    assert stage.rows("P") == []


# -- exit statuses -----------------------------------------------------------------------


def test_exit_code_makes_a_failed_task_a_failed_command(stage: Stage) -> None:
    stage.write("Tasks", "false", "true")
    ends(stage, disbatch("-p", "P", "Tasks"), status=0)
    ended = ends(stage, disbatch("-e", "-p", "Q", "Tasks"), status=1)
    assert "Some tasks failed with non-zero exit codes" in ended.err
    assert stage.codes("Q") == {0: 1, 1: 0}


def test_exit_code_counts_an_old_failure_where_nothing_is_left(stage: Stage) -> None:
    _first_run(stage, "false", status=1)
    again = ["-p", "P", "-r", "P_status.txt", "Tasks"]
    ends(stage, run(*again), status=0)
    ends(stage, run("-e", *again), status=1)


def test_fail_fast_ends_the_run_and_what_runs(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; sleep 1000", "until [ -e began ]; do sleep 0.02; done;"
                " exit 7", "echo > ran")
    ended = ends(stage, disbatch("-f", "-p", "P", "Tasks"), status=1)
    assert "Quitting early due to task failure with --fail-fast" in ended.err
    assert {row.id: (row.code, row.is_cut) for row in tasks_of(stage, "P")} == {
        1: (7, False), 0: (-15, True),
    }
    assert not stage.path("ran").exists()
    stage.is_empty_soon()


# -- pairs -------------------------------------------------------------------------------


def test_fail_fast_waits_for_the_last_retry(stage: Stage) -> None:
    stage.write("Tasks", "test $OVERNIGHT_ATTEMPT = 2", "#DISBATCH BARRIER CHECK", "false", "true")
    ended = ends(stage, run("-j", "1", "-f", "--retries", "1", "-p", "P", "Tasks"), status=1)
    assert "--fail-fast" in ended.err
    assert [(row.id, row.code) for row in stage.rows("P")] == [(0, 0), (1, 0), (3, 0), (2, 1)]
    assert [line["attempt"] for line in stage.attempts("P") if line["task"] == 2] == [1, 2]


def test_fail_fast_takes_no_old_failure_for_a_new_one(stage: Stage) -> None:
    _first_run(stage, "false", "test -e again", status=1)
    stage.write("again")
    stage.write("Tasks", "false", "test -e again", "true")
    ends(stage, disbatch("-f", "-p", "P", "-r", "P_status.txt", "Tasks"))
    assert ids(stage, "P")[2:] == [2]


def test_a_shuffled_resume_runs_what_is_left_and_only_that(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH REPEAT 8 echo $DISBATCH_TASKID >> ran")
    stopped = empties(stage, run("-j", "1", "--shuffle=3", "-C", "4", "-p", "P", "Tasks"))
    assert "overnight resume" in stopped.err
    ends(stage, run("-j", "1", "--shuffle=4", "-p", "P", "-r", "P_status.txt", "Tasks"))
    ran = stage.read("ran").split()
    assert sorted(ran) == [str(id) for id in range(8)]
    assert ran[4:] != sorted(ran[4:])


def test_a_log_that_says_nothing_hides_no_message_from_the_screen(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(run("-j", "1", "--logfile", "P_driver.log", "-p", "P", "Tasks"))
    logs(stage, live, "engine 0")
    live.signal(2)
    live.says("Once more ends them")
    stage.write("go")
    assert live.wait().status == 3


def test_a_prefix_that_another_driver_uses_is_refused_by_naming_that_driver(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done")
    live = stage.start(run("-p", "P", "Tasks"))
    stage.appears("began")
    ended = ends(stage, run("-p", "P", "Tasks"), status=1)
    assert f"another driver owns this prefix: process {live.pid} on " in ended.err
    assert "adding -r" not in ended.err, "that driver's run is not one to go on with"
    assert f"watch it:  overnight attach {stage.path('P')}  " in ended.err
    again = stage.run(overnight("resume", "P"))
    assert f"overnight attach {stage.path('P')}  " in again.err
    stage.write("go")
    assert live.wait().status == 0
