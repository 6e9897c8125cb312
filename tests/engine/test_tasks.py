"""Tasks as processes of a real engine: how they start, what they see, how they end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from overnight.formats import link as f
from overnight.model import messages as m
from overnight.model.outcome import Exited, NotStarted, Signalled
from overnight.model.report import Report
from overnight.model.task import PerEngine
from tests.engine.kit import Started, attempt, started, wait_until


def text_of(report: Report) -> str:
    """What a task wrote to its standard output, where that is short."""
    return (report.out.head + report.out.tail).decode()


def code_of(report: Report) -> int:
    outcome = report.outcome
    assert isinstance(outcome, Exited), outcome.words()
    return outcome.code


def test_each_task_is_a_bash_in_a_session_of_its_own(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        shell, leader, arguments = engine.driver.run(
            'echo "$0 $-"', '[ "$(ps -o sid= -p $$)" -eq $$ ] && echo leader', 'echo "$#"'
        )
    assert text_of(shell) == "/bin/bash hBc\n"
    assert text_of(leader) == "leader\n"
    assert text_of(arguments) == "0\n"


def test_a_task_runs_in_the_directory_of_the_run_and_reads_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        here, nothing = engine.driver.run("pwd -P > here", "cat; read x; echo $?")
    assert code_of(here) == 0
    assert (tmp_path / "here").read_text() == f"{tmp_path.resolve()}\n"
    assert text_of(nothing) == "1\n"


def test_nothing_runs_where_the_directory_of_the_run_cannot_be_entered(tmp_path: Path) -> None:
    with started(tmp_path, cwd=str(tmp_path / "gone")) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("touch here")
    assert isinstance(report.outcome, NotStarted)
    assert report.outcome.code == 2
    assert "gone" in report.outcome.reason
    assert report.pid == -1


def test_exit_codes_and_signals_are_told(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        three, killed, child = engine.driver.run(
            "exit 3", "kill -9 $$", "bash -c 'kill -9 $$'; exit $?"
        )
    assert code_of(three) == 3
    assert isinstance(killed.outcome, Signalled)
    assert killed.outcome.code == -9
    assert not killed.outcome.by_oom_killer
    assert code_of(child) == 137


def test_a_command_too_long_or_with_a_nul_byte_is_an_outcome(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        long, nul, longest = engine.driver.run(
            "true " + "x" * 131_072, b"echo a\0b", "true " + "x" * 131_000
        )
    assert isinstance(long.outcome, NotStarted)
    assert long.outcome.code == 7
    assert isinstance(nul.outcome, NotStarted)
    assert nul.outcome.code == 200
    assert (long.pid, nul.pid) == (-1, -1)
    assert code_of(longest) == 0


def test_a_report_says_place_times_and_usage(tmp_path: Path) -> None:
    busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $$"
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        (report,) = engine.driver.run(busy)
    assert text_of(report) == f"{report.pid}\n"
    assert report.slot == 0
    assert report.attempt == 1
    assert abs(report.started_at - (tmp_path / "engine.log").stat().st_mtime) < 60
    assert 0 < report.cpu_s <= report.elapsed_s * 1.5 + 0.05
    assert report.max_rss_kib > 1000


@pytest.mark.parametrize("lane", [False, True])
def test_signals_ignored_by_whoever_started_the_run_are_at_their_defaults(
    tmp_path: Path, lane: bool
) -> None:
    ignored = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGTTOU)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        with started(tmp_path, slots=1, always_shell=not lane) as engine:
            engine.driver.open()
            reports = engine.driver.run(*["grep -E Sig(Blk|Ign) /proc/self/status"] * 2,
                                        *["grep Sig /proc/self/status"] * 5)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
        for number, handler in before.items():
            signal.signal(number, handler)
    lines = "".join(text_of(reports[0]).split())
    assert lines == "SigBlk:0000000000000000SigIgn:0000000000000000"[:len(lines)]


def test_a_task_inherits_no_descriptor(tmp_path: Path) -> None:
    left_open = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(left_open, True)
    try:
        with started(tmp_path) as engine:
            engine.driver.open()
            (report,) = engine.driver.run("ls /proc/$$/fd; true")
    finally:
        os.close(left_open)
    assert text_of(report).split() == ["0", "1", "2"]


def test_the_environment_is_the_callers_with_the_variables_of_the_contract(
    tmp_path: Path,
) -> None:
    odd = "a) b\nc=\"d e\""
    caller = {
        "PATH": os.environ["PATH"], "WEIRD": odd, "BASH_FUNC_myfn%%": "() {  echo from fn\n}",
        "DISBATCH_TASKID": "stale", "DISBATCH_KVSSTCP_HOST": "stale:1",
        "DISBATCH_SSH_NODELIST": "localhost:2", "LC_ALL": "C",
    }
    with started(tmp_path, environment=caller, slots=1) as engine:
        engine.driver.open()
        weird, function, _ = engine.driver.run(
            'printf "%s" "$WEIRD"', "myfn", "env -0 > env",
        )
    assert text_of(weird) == odd
    assert text_of(function) == "from fn\n"
    entries = dict(e.split("=", 1) for e in (tmp_path / "env").read_text().rstrip("\0").split("\0"))
    ours = {n: v for n, v in entries.items() if n.startswith(("DISBATCH", "OVERNIGHT"))}
    run = engine.driver.setup.run
    assert ours == {
        "DISBATCH_CORES_PER_TASK": "1", "DISBATCH_CYLINDER_RANK": "0",
        "DISBATCH_ENGINE_RANK": "0", "DISBATCH_JOBID": run, "DISBATCH_NAMETASKS": "Tasks",
        "DISBATCH_REPEAT_INDEX": "-1", "DISBATCH_REPEAT_INDEX_ZP": "-00001",
        "DISBATCH_SSH_NODELIST": "localhost:2", "DISBATCH_STREAM_INDEX": "3",
        "DISBATCH_STREAM_INDEX_ZP": "000003", "DISBATCH_TASKID": "2",
        "DISBATCH_TASKID_ZP": "000002", "OVERNIGHT_ATTEMPT": "1",
    }
    assert set(entries) - set(ours) == {
        "PATH", "WEIRD", "BASH_FUNC_myfn%%", "LC_ALL", "PWD", "SHLVL", "_"
    }


def test_attempts_start_in_order_and_never_more_than_slots(tmp_path: Path) -> None:
    count = 40
    command = "echo s $DISBATCH_TASKID >> log; sleep 0.01; echo e $DISBATCH_TASKID >> log"
    with started(tmp_path, slots=3) as engine:
        engine.driver.open()
        engine.driver.run(*[command] * count)
    running, most, begun = 0, 0, []
    for line in (tmp_path / "log").read_text().splitlines():
        what, id = line.split()
        running += 1 if what == "s" else -1
        most = max(most, running)
        if what == "s":
            begun.append(int(id))
    assert most <= 3
    assert sorted(begun) == list(range(count))


def test_two_hundred_short_tasks_run_exactly_once_with_several_runners(tmp_path: Path) -> None:
    with started(tmp_path, slots=4) as engine:
        engine.driver.open()
        reports = engine.driver.run(*["echo $DISBATCH_TASKID >> log"] * 200)
        engine.driver.wait(lambda: len(engine.runners()) == 2, "a second runner")
    assert {r.outcome.words() for r in reports} == {"done"}
    assert {r.slot for r in reports} == {0, 1, 2, 3}
    assert sorted(map(int, (tmp_path / "log").read_text().split())) == list(range(200))


def test_per_engine_commands_run_one_after_the_other_before_and_after(tmp_path: Path) -> None:
    commands = [
        PerEngine(
            True, 0, 1, b"sleep 0.1; echo start $DISBATCH_TASKID $DISBATCH_CYLINDER_RANK >> log"
        ),
        PerEngine(False, 0, 2, b"echo stop $DISBATCH_TASKID >> log"),
        PerEngine(True, 1, 3, b"echo start $DISBATCH_TASKID >> log; exit 4"),
    ]
    with started(tmp_path) as engine:
        engine.driver.open(commands)
        engine.driver.run("echo task >> log")
        engine.driver.close()
    assert (tmp_path / "log").read_text() == "start 0 -1\nstart 1\ntask\nstop 0\n"
    assert [(at_start, r.task_id, r.outcome.code) for at_start, r in engine.driver.commands] == [
        (True, 0, 0), (True, 1, 4), (False, 0, 0)
    ]


def test_slot_variables_divide_a_list_among_the_slots(tmp_path: Path) -> None:
    slots = [[b"GPU=a"], [b"GPU=b"]]
    with started(tmp_path, slots=2, slot_variables=slots) as engine:
        engine.driver.open()
        reports = engine.driver.run(*["echo $GPU; sleep 0.05"] * 6)
    assert {(r.slot, text_of(r)) for r in reports} == {(0, "a\n"), (1, "b\n")}


def leave_orderly(engine: Started) -> None:
    engine.driver.close()
    wait_until(engine.has_ended, "the engine's process ends")
    assert engine.status == 0


def test_an_engine_leaves_when_it_is_closed_and_acknowledged(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.run("true")
        leave_orderly(engine)


def test_an_engine_stays_until_its_reports_are_acknowledged(tmp_path: Path) -> None:
    with started(tmp_path, acknowledges=False) as engine:
        engine.driver.open()
        engine.driver.run("true")
        engine.driver.send(m.CLOSE, f.encode_control({"run_stop": True}))
        engine.driver.wait(lambda: m.CLOSED in engine.driver.kinds, "closed")
        assert not engine.has_ended()
        engine.driver.acknowledge()
        wait_until(engine.has_ended, "the engine's process ends")


def test_a_recalled_attempt_is_not_run(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        waits = "while [ ! -e go ]; do sleep 0.02; done"
        engine.driver.assign(attempt(0, waits), attempt(1, "touch ran"))
        engine.driver.send(m.RECALL, f.encode_ids([1]))
        engine.driver.wait(lambda: engine.driver.recalled == [1], "recalled")
        (tmp_path / "go").touch()
        assert code_of(engine.driver.report_of(0)) == 0
    assert not (tmp_path / "ran").exists()


def test_a_runner_holds_no_more_descriptors_after_many_tasks_of_all_kinds(tmp_path: Path) -> None:
    kinds = [
        "true", "/bin/true", "echo hi", "echo hi >&2; exit 3", "kill -9 $$", "nosuch", b"a\0b",
        "x" * 200_000, "sleep 0.01 > /dev/null &", "( sleep 0.01; echo late ) & echo early",
        "head -c 100000 /dev/zero", "sleep 0.06; echo late",
    ]
    with started(tmp_path, slots=1, late_output_s=1.0) as engine:
        engine.driver.open()
        engine.driver.run(*kinds)
        (runner,) = engine.runners()
        before = sorted(os.listdir(f"/proc/{runner}/fd"), key=int)
        engine.driver.run(*kinds * 5)
        engine.driver.wait(lambda: not children_of(runner), "all children are reaped")
        assert sorted(os.listdir(f"/proc/{runner}/fd"), key=int) == before


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
