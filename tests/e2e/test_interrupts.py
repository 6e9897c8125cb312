"""Ctrl-C and its relatives: what each signal does, what is said, and what is left."""

from __future__ import annotations

import os
import shlex
import signal

import pytest

from tests.e2e.kit import INTERRUPTS, Ended, Live, Stage, Window, disbatch, run, until
from tests.file_systems import SlowFolder

DEAF = "trap '' TERM; echo > began; while :; do sleep 0.05; done"
LONG = "echo > began; sleep 1000"
BY_TERM = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""How a shell ends by SIGTERM: itself, or because what it waited for has ended by that first."""


def _no_traceback(ended: Ended) -> None:
    assert "Traceback" not in ended.err + ended.out


def _resume_printed_by(err: str) -> str:
    """The command that the run told its user to type."""
    lines = err.splitlines()
    return next(line.strip() for line in lines if line.strip().startswith("overnight resume"))


# -- disBatch: the first signal ends it --------------------------------------------------


@pytest.mark.parametrize("to_group", [False, True], ids=["driver", "group"])
@pytest.mark.parametrize("name", INTERRUPTS)
def test_disbatch_ends_at_the_first_signal_with_a_row_each(
    stage: Stage, name: str, to_group: bool
) -> None:
    stage.write("Tasks", "[ -e again ] || { echo > began; sleep 1000 & sleep 1000; }", "true",
                "true")
    live = stage.start(disbatch("-t", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    (live.signal_group if to_group else live.signal)(INTERRUPTS[name])
    ended = live.wait(20)
    assert ended.status == 128 + INTERRUPTS[name]
    _no_traceback(ended)
    stage.is_empty_soon()
    (row,) = stage.rows("P")
    assert (row.id, row.is_cut) == (0, True)
    assert row.code in BY_TERM
    stage.write("again")
    again = stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks"))
    assert again.status == 0, again.err
    assert sorted((row.id, row.code) for row in stage.rows("P")[1:]) == [(0, 0), (1, 0), (2, 0)]


def test_stop_commands_run_after_the_signal_that_ends_the_tasks(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH PERENGINE STOP echo tidied > tidied", LONG)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGINT)
    assert live.wait(20).status == 130
    assert stage.path("P_status.txt").read_bytes().count(b"   P\t") == 1
    assert stage.path("tidied").exists()


def test_disbatch_kills_what_does_not_end_within_its_grace(stage: Stage) -> None:
    stage.write("Tasks", DEAF)
    live = stage.start(disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGINT)
    assert live.wait(20).status == 130
    stage.is_empty_soon()
    (row,) = stage.rows("P")
    assert (row.is_cut, row.code) == (True, -signal.SIGKILL)


def test_disbatch_started_with_nohup_goes_on_without_its_terminal(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(["env", "--ignore-signal=HUP", *disbatch("-p", "P", "Tasks")])
    stage.appears("began")
    live.signal_group(signal.SIGHUP)
    stage.write("go")
    assert live.wait().status == 0
    assert stage.codes("P") == {0: 0, 1: 0}


# -- overnight run: in stages ------------------------------------------------------------


def _staged(stage: Stage, *lines: str) -> Live:
    stage.write("Tasks", *lines)
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    return live


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_first_signal_lets_what_runs_finish(stage: Stage, name: str) -> None:
    live = _staged(stage, "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live.signal_group(INTERRUPTS[name])
    live.says(f"{name}: nothing new is started; running tasks finish. Once more ends them.")
    stage.write("go")
    ended = live.wait()
    assert ended.status == 3
    _no_traceback(ended)
    assert stage.codes("P") == {0: 0}
    assert "overnight resume" in ended.err


def test_the_second_signal_ends_what_runs(stage: Stage) -> None:
    live = _staged(stage, LONG, "true")
    live.signal(signal.SIGINT)
    live.says("Once more ends them")
    live.signal(signal.SIGINT)
    live.says("ending the running tasks. Once more kills them at once")
    assert live.wait(20).status == 3
    stage.is_empty_soon()
    (row,) = stage.rows("P")
    assert row.is_cut
    assert row.code in BY_TERM


def test_the_third_signal_kills_what_runs(stage: Stage) -> None:
    stage.write("Tasks", DEAF)
    live = stage.start(run("--kill-after", "1000", "-p", "P", "Tasks"))
    stage.appears("began")
    for words in ("Once more ends them", "Once more kills them", "killing what is left"):
        live.signal(signal.SIGTERM)
        live.says(words)
    assert live.wait(20).status == 3
    stage.is_empty_soon()


def test_hangup_is_ignored(stage: Stage) -> None:
    live = _staged(stage, "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live.signal_group(signal.SIGHUP)
    stage.write("go")
    assert live.wait().status == 0
    assert stage.codes("P") == {0: 0, 1: 0}


def test_a_run_goes_on_when_its_terminal_is_closed(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "false", "true")
    window = Window(stage, run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    window.shows("running")
    window.close()
    stage.write("go")
    assert window.live.wait().status == 1
    assert stage.codes("P") == {0: 0, 1: 1, 2: 0}
    stage.is_empty_soon()


def test_ctrl_c_on_a_terminal_says_what_the_next_one_does(stage: Stage) -> None:
    stage.write("Tasks", LONG, "true")
    window = Window(stage, run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    window.shows("running")
    window.press(b"\x03")
    window.shows("Once more ends them")
    window.press(b"\x03")
    window.shows("Once more kills them at once")
    window.shows("overnight resume")
    assert window.live.wait(20).status == 3
    assert "Traceback" not in window.text
    stage.is_empty_soon()


def test_disbatch_on_a_closed_terminal_ends_with_its_tasks(stage: Stage) -> None:
    stage.write("Tasks", LONG)
    window = Window(stage, disbatch("-p", "P", "Tasks"))
    stage.appears("began")
    window.close()
    assert window.live.wait(20).status == 129
    stage.is_empty_soon()
    assert [row.is_cut for row in stage.rows("P")] == [True]


# -- at any moment -----------------------------------------------------------------------


@pytest.mark.parametrize("command", ["disBatch", "overnight run"])
@pytest.mark.parametrize("moment", ["lock", "engine", "last row"])
def test_a_signal_at_any_moment_ends_the_run_in_order(
    stage: Stage, command: str, moment: str
) -> None:
    stage.write("Tasks", *["true"] * 20)
    is_ours = command == "overnight run"
    live = stage.start(run("-p", "P", "Tasks") if is_ours else disbatch("-p", "P", "Tasks"))
    if moment == "lock":
        stage.appears("P_lock")
    elif moment == "engine":
        stage.appears("P_engines.json")
    else:
        until(lambda: stage.read("P_status.txt").count("\n") == 20, "the last row")
    live.signal(signal.SIGINT)
    ended = live.wait(20)
    _no_traceback(ended)
    done = stage.codes("P")
    if len(done) < 20:
        assert ended.status == (3 if is_ours else 130)
        assert "overnight resume" in ended.err
    else:
        assert ended.status in (0, 3 if is_ours else 130)
    stage.is_empty_soon()
    again = stage.run(disbatch("-p", "P", "-r", "P_status.txt", "Tasks"))
    assert again.status == 0
    assert stage.codes("P") == dict.fromkeys(range(20), 0)


@pytest.mark.needs("fuse")
def test_a_signal_while_the_list_is_looked_through_leaves_nothing(
    stage: Stage, slow_folder: SlowFolder
) -> None:
    slow_folder.path.joinpath("Tasks").write_text("true\n")
    slow_folder.slow_down(1.0, "read")
    live = stage.start(run("-p", "P", slow_folder.path / "Tasks"))
    until(lambda: _has_open(live.pid, str(slow_folder.path / "Tasks")), "the list is read")
    live.signal(signal.SIGINT)
    ended = live.wait(20)
    assert (ended.status, ended.err) == (3, "SIGINT: nothing was started\n")
    assert not list(stage.folder.iterdir())


def _has_open(pid: int, path: str) -> bool:
    try:
        return path in [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False  # a descriptor was closed in between


# -- the command that goes on ------------------------------------------------------------


def test_the_resume_command_works_when_it_is_copied_into_a_shell(stage: Stage) -> None:
    folder = stage.path("it's a \"fine\" $place")
    folder.mkdir()
    prefix = folder / "night *1*"
    live_lines = ["[ -e again ] || { echo > began; sleep 1000; }", "true"]
    stage.write("Tasks", *live_lines)
    live = stage.start(run("-j", "1", "-p", prefix, "Tasks"))
    stage.appears("began")
    live.signal(signal.SIGTERM)
    live.says("Once more")
    live.signal(signal.SIGTERM)
    command = _resume_printed_by(live.wait(20).err)
    stage.write("again")
    tool = shlex.quote(os.path.dirname(run()[0]))
    ended = stage.run(["bash", "-c", f"PATH={tool}:$PATH; cd /; {command}"])
    assert ended.status == 0, ended.err
    rows = [(row.id, row.is_cut) for row in stage.rows(str(prefix))]
    assert rows == [(0, True), (0, False), (1, False)]


def test_slurms_warning_is_a_soft_stop(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done", "true")
    live = stage.start(disbatch("-t", "1", "-p", "P", "Tasks"), env={"SLURM_JOB_ID": "7"})
    stage.appears("began")
    live.signal(signal.SIGTERM)
    live.says("running tasks finish")
    stage.write("go")
    assert live.wait().status == 143
    assert stage.codes("P") == {0: 0}
