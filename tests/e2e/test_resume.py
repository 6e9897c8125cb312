"""Going on with a run: what runs again, what does not, and what is refused."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from overnight.errors import PrefixTaken
from overnight.model.options import RunOptions
from overnight.wiring import Plan, Run
from tests.e2e.kit import Stage, disbatch, overnight, run, until
from tests.e2e.options_kit import empties
from tests.file_systems import frozen_folder

RAN = "echo $DISBATCH_TASKID >> ran"


def ran(stage: Stage) -> list[int]:
    """Ids of tasks in the order in which they ran."""
    return [int(word) for word in stage.read("ran").split()]


@pytest.fixture
def half_run(stage: Stage) -> Stage:
    """A run P of three tasks: one done, one failed, one not run."""
    stage.write("Tasks", RAN, f"{RAN}; [ -e mended ]", RAN)
    stage.run(run("-j", "1", "--max-failures", "1", "-p", "P", "Tasks"))
    assert stage.codes("P") == {0: 0, 1: 1}
    stage.path("ran").unlink()
    return stage


def test_resume_needs_nothing_but_the_folder(half_run: Stage) -> None:
    ended = half_run.run(overnight("resume"))
    assert ended.status == 1, "a task had failed, and that stands"
    assert ran(half_run) == [2]
    assert half_run.codes("P") == {0: 0, 1: 1, 2: 0}


def test_resume_with_retry_runs_what_failed_too(half_run: Stage) -> None:
    half_run.write("mended")
    ended = half_run.run(overnight("resume", "-R", "P"))
    assert ended.status == 0
    assert ran(half_run) == [1, 2]
    assert [(row.id, row.code) for row in half_run.rows("P")] == [(0, 0), (1, 1), (1, 0), (2, 0)]


def test_a_run_that_is_resumed_under_another_prefix_is_owned_meanwhile(half_run: Stage) -> None:
    half_run.write("Tasks", RAN, f"{RAN}; [ -e mended ]",
                   f"{RAN}; : > began; until [ -e go ]; do sleep 0.02; done")
    goes_on = ("-r", "P_status.txt", "--force-resume")
    other = half_run.start(run("-j", "1", "-p", "Q", *goes_on, "Tasks"))
    half_run.appears("began")
    for command in (overnight("resume", "P"), run("-p", "R", "-r", "P_status.txt", "Tasks")):
        refused = half_run.run(command)
        assert refused.status == 1
        assert f"process {other.process.pid}" in refused.err
        assert not half_run.path("R_status.txt").exists()
    half_run.write("go")
    assert other.wait().status == 1
    assert ran(half_run) == [2]
    assert not list(half_run.folder.glob("*_lock"))


def test_rows_that_are_added_while_the_list_is_compared_refuse_the_resume(
    half_run: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(half_run.folder)
    options = RunOptions(task_file="Tasks", prefix="Q", resume_from=("P_status.txt",))
    plan = Plan(options)
    row = half_run.path("P_status.txt").read_bytes().splitlines(keepends=True)[0]
    with half_run.path("P_status.txt").open("ab") as file:
        file.write(row.replace(b"\t0\t1\t", b"\t2\t3\t", 1))
    with pytest.raises(PrefixTaken, match="added rows"):
        Run(plan)
    assert not [path for path in half_run.folder.glob("*") if path.name.startswith("Q")]
    assert not list(half_run.folder.glob("*_lock"))


@pytest.mark.needs("mounts")
def test_a_status_file_in_a_folder_that_we_may_only_read_is_resumed_from(half_run: Stage) -> None:
    with frozen_folder(half_run.folder / "old") as old:
        (old.path / "P_status.txt").write_bytes(half_run.path("P_status.txt").read_bytes())
        old.freeze()
        ended = half_run.run(run("-p", "Q", "-r", "old/P_status.txt", "Tasks"))
        old.thaw()
    assert ended.status == 1, ended.err
    assert ran(half_run) == [2]


def test_resume_may_have_other_slots(half_run: Stage) -> None:
    assert half_run.run(overnight("resume", "P", "-j", "3", "-q")).err == ""
    assert ran(half_run) == [2]


def test_resume_of_a_finished_run_says_that_nothing_is_left(stage: Stage) -> None:
    stage.write("Tasks", RAN, RAN)
    stage.run(run("-p", "P", "Tasks"))
    before = stage.read("P_status.txt")
    for command in (overnight("resume"), overnight("resume", "P"),
                    disbatch("-p", "P", "-r", "P_status.txt", "Tasks")):
        ended = stage.run(command)
        assert ended.status == 0
        assert "Nothing is left to run: all 2 tasks had been done before." in ended.err
    assert stage.read("P_status.txt") == before


def test_resume_of_a_run_that_finished_with_failures_names_the_command_for_them(
    stage: Stage,
) -> None:
    stage.write("Tasks", "true", "false")
    stage.run(run("-p", "P", "Tasks"))
    ended = stage.run(overnight("resume", "P"))
    assert ended.status == 0
    assert "Nothing is left to run" in ended.err
    assert f"overnight resume -R {stage.path('P')}" in ended.err


def test_a_list_may_be_gone_on_with_in_one_file_any_number_of_times(stage: Stage) -> None:
    stage.write("Tasks", *[RAN] * 6)
    command = disbatch("-C", "2", "-t", "1", "-p", "P")
    empties(stage, [*command, "Tasks"])
    empties(stage, [*command, "-r", "P_status.txt", "Tasks"])
    for _ in range(2):
        assert stage.run([*command, "-r", "P_status.txt", "Tasks"]).status == 0
    assert stage.codes("P") == dict.fromkeys(range(6), 0)
    assert ran(stage) == list(range(6))
    assert not [row for row in stage.rows("P") if row.flags[3] == "S"]


def test_skipped_tasks_have_rows_in_another_file(half_run: Stage) -> None:
    half_run.run(disbatch("-p", "Q", "-r", "P_status.txt", "Tasks"))
    flags = {row.id: row.flags for row in half_run.rows("Q")}
    assert flags == {0: "   S", 1: "R  S", 2: "    "}
    half_run.run(disbatch("-p", "third", "-r", "Q_status.txt", "Tasks"))
    assert ran(half_run) == [2], "a resume of a resume runs nothing again"


def test_several_earlier_runs_count_together(stage: Stage) -> None:
    stage.write("Tasks", *[RAN] * 3)
    empties(stage, disbatch("-t", "1", "-C", "1", "-p", "one", "Tasks"))
    empties(stage, disbatch("-t", "1", "-C", "1", "-p", "two", "-r", "one_status.txt", "Tasks"))
    stage.path("ran").unlink()
    stage.run(disbatch("-p", "P", "-r", "one_status.txt", "-r", "two_status.txt", "Tasks"))
    assert ran(stage) == [2]


def test_files_of_earlier_runs_count_on_when_a_run_is_resumed(stage: Stage) -> None:
    stage.write("Tasks", RAN, "[ -e again ] || { echo > began; sleep 1000; }", RAN)
    empties(stage, disbatch("-p", "one", "-C", "1", "-t", "1", "Tasks"))
    live = stage.start(run("-j", "1", "-p", "two", "-r", "one_status.txt", "Tasks"))
    stage.appears("began")
    for _ in range(2):
        live.signal(signal.SIGINT)
        live.says("SIGINT again" if _ else "SIGINT")
    live.wait()
    stage.write("again")
    assert stage.run(overnight("resume", "two")).status == 0
    assert ran(stage) == [0, 2]


def test_a_changed_command_is_refused_with_both_texts(stage: Stage) -> None:
    stage.write("Tasks", "echo one", "echo two")
    stage.run(disbatch("-p", "P", "-t", "1", "Tasks"))
    stage.write("Tasks", "echo one", f"echo changed; {RAN}")
    ended = stage.run(disbatch("-p", "Q", "-r", "P_status.txt", "Tasks"))
    assert ended.status == 1
    for text in ('"echo two"', f'"echo changed; {RAN}"', "P_status.txt, line 2", "--force-resume"):
        assert text in ended.err
    assert ran(stage) == []
    assert not stage.path("Q_status.txt").exists()


def test_force_resume_goes_by_number_alone(stage: Stage) -> None:
    stage.write("Tasks", "echo one", "echo two")
    stage.run(disbatch("-p", "P", "Tasks"))
    stage.write("Tasks", RAN, RAN, RAN)
    command = disbatch("-p", "Q", "-r", "P_status.txt", "--force-resume", "Tasks")
    assert stage.run(command).status == 0
    assert ran(stage) == [2]


def test_by_text_follows_lines_that_moved(stage: Stage) -> None:
    stage.write("Tasks", f"{RAN}; echo one", f"{RAN}; echo two")
    stage.run(disbatch("-p", "P", "Tasks"))
    stage.path("ran").unlink()
    stage.write("Tasks", f"{RAN}; echo new", f"{RAN}; echo two", f"{RAN}; echo one")
    ended = stage.run(disbatch("-p", "Q", "-r", "P_status.txt", "--by-text", "Tasks"))
    assert ended.status == 0
    assert ran(stage) == [0]
    assert "by text: 2 tasks were done before, 1 of them under another number" in ended.err


def test_comments_may_be_added(stage: Stage) -> None:
    stage.write("Tasks", RAN, RAN)
    stage.run(disbatch("-p", "P", "Tasks"))
    stage.write("Tasks", "# a comment", RAN, "", RAN, RAN)
    assert stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks")).status == 0
    assert sorted(ran(stage)) == [0, 1, 2]


def test_a_resume_while_the_run_lives_is_refused(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(run("-p", "P", "Tasks"))
    stage.appears("began")
    for command in (overnight("resume", "P"), disbatch("-p", "P", "-r", "P_status.txt", "Tasks"),
                    disbatch("-p", "Q", "-r", "P_status.txt", "Tasks")):
        ended = stage.run(command, limit_s=10)
        assert ended.status == 1
        assert f"process {live.pid}" in ended.err
    assert not stage.path("Q_status.txt").exists()
    stage.write("go")
    assert live.wait().status == 0
    assert stage.codes("P") == {0: 0, 1: 0}


def test_an_engine_of_another_host_is_not_passed_over(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", RAN)
    live = stage.start(disbatch("-p", "P", "-t", "1", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGKILL)
    live.wait()
    noted = json.loads(stage.read("P_engines.json"))
    stage.write("P_engines.json", json.dumps({**noted, "host": "elsewhere", "node": "elsewhere"}))
    ended = stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks"))
    assert ended.status == 1
    assert "an engine of this run was on elsewhere" in ended.err
    assert ran(stage) == []


@pytest.mark.parametrize("has_opened", [False, True])
def test_an_engine_that_does_not_answer_stops_a_resume_and_is_kept_for_the_next(
    stage: Stage, has_opened: bool,
) -> None:
    """Whether its door is still shut, or connects and nothing is said behind it."""
    stage.write("Tasks", f"{RAN}; until [ -e go ]; do sleep 0.02; done", RAN)
    live = stage.start(disbatch("-p", "P", "-s", "localhost:1", "Tasks"))
    stage.appears("ran")
    live.signal(signal.SIGKILL)
    live.wait()
    noted = json.loads(stage.read("P_engines.json"))
    engine = noted["pid"]
    if has_opened:
        until(lambda: os.path.exists(noted["attach"]), "the door of the engine")
    os.kill(engine, signal.SIGSTOP)
    try:
        refused = stage.run(overnight("resume", "P"), limit_s=150)
    finally:
        os.kill(engine, signal.SIGCONT)
    assert refused.status == 1
    assert stage.path("P_engines.json").exists(), refused.err
    stage.write("go")
    assert stage.run(overnight("resume", "P")).status == 0
    assert sorted(ran(stage)) == [0, 1]
    assert stage.codes("P") == {0: 0, 1: 0}


def test_resume_says_what_it_misses(stage: Stage) -> None:
    assert "no run was started in this folder" in stage.run(overnight("resume")).err
    assert "there is no run of this name" in stage.run(overnight("resume", "nosuch")).err
    stage.write("Tasks", "true")
    stage.write("old_status.txt")
    ended = stage.run(overnight("resume", "old"))
    assert (ended.status, "overnight run -r" in ended.err) == (1, True)


def test_a_stream_cannot_be_resumed_by_itself_but_by_feeding_it_again(stage: Stage) -> None:
    with stage.write("Tasks", RAN, f"{RAN}; false").open() as lines:
        stage.run(run("-p", "P", "-"), stdin=lines)
    ended = stage.run(overnight("resume", "P"))
    assert ended.status == 1
    assert "standard input" in ended.err
    with stage.write("Tasks", RAN, f"{RAN}; false", RAN).open() as lines:
        stage.run(run("-p", "P", "-r", "P_status.txt", "-"), stdin=lines)
    assert sorted(ran(stage)) == [0, 1, 2]


def test_resume_in_a_folder_that_is_gone_says_so(stage: Stage) -> None:
    inner = stage.path("inner")
    inner.mkdir()
    tasks = stage.write("Tasks", "true")
    stage.run(run("-p", stage.path("P"), tasks), cwd=inner)
    inner.rmdir()
    ended = stage.run(overnight("resume", "P"))
    assert ended.status == 1
    assert str(inner) in ended.err
    assert "Traceback" not in ended.err


# -- two at once ---------------------------------------------------------------------------


def test_two_runs_in_one_folder_do_not_disturb_each_other(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 100)
    lives = [stage.start(disbatch("Tasks")) for _ in range(2)]
    assert [live.wait().status for live in lives] == [0, 0]
    found = sorted(path.name.removesuffix("_status.txt") for path in
                   stage.folder.glob("*_status.txt"))
    assert [len(stage.codes(prefix)) for prefix in found] == [100, 100]


def test_of_two_runs_with_one_prefix_one_is_refused(stage: Stage) -> None:
    stage.write("Tasks", *[RAN] * 20, "until [ -e go ]; do sleep 0.02; done")
    lives = [stage.start(disbatch("-p", "P", "Tasks")) for _ in range(4)]
    until(lambda: sum(live.is_over for live in lives) == 3, "three are refused")
    stage.write("go")
    assert sorted(live.wait().status for live in lives) == [0, 1, 1, 1]
    assert stage.codes("P") == dict.fromkeys(range(21), 0)
    assert sorted(ran(stage)) == list(range(20))
    refused = [live.err for live in lives if live.wait().status]
    assert all("P_" in err and "Traceback" not in err for err in refused)


def test_of_resumes_at_the_same_moment_one_runs_what_is_left(stage: Stage) -> None:
    stage.write("Tasks", *[RAN] * 30)
    empties(stage, disbatch("-C", "10", "-p", "P", "Tasks"))
    command = disbatch("-p", "P", "-r", "P_status.txt", "Tasks")
    with ThreadPoolExecutor(6) as pool:
        ended = list(pool.map(lambda _: stage.start(command).wait(), range(6)))
    assert 0 in {one.status for one in ended}
    assert all("Traceback" not in one.err for one in ended)
    assert sorted(ran(stage)) == list(range(30))
    assert stage.codes("P") == dict.fromkeys(range(30), 0)
