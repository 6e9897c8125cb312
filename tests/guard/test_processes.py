"""Processes as /proc shows them, and signals that reach the one that is meant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.guard import processes
from overnight.guard.processes import (
    Process,
    ancestors,
    boot_id,
    carries,
    parse_stat,
    process_identity,
    read_process,
    signal_process,
    survey,
    with_descendants,
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "600"], env={"MARK": "a=b", "OTHER": "c"})
    yield child
    child.kill()
    child.wait()


@given(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=15))
def test_a_name_may_hold_anything(name: str) -> None:
    line = f"77 ({name}) S 5 6 7 0 -1 4 0 0 0 0 1 1 0 0 20 0 1 0 8899 0 0".encode()
    process = parse_stat(line)
    assert (process.pid, process.parent, process.group, process.session) == (77, 5, 6, 7)
    assert process.start == 8899
    assert not process.is_dead


@pytest.mark.parametrize(("state", "is_dead"), [(b"R", 0), (b"T", 0), (b"Z", 1), (b"X", 1)])
def test_what_waits_to_be_reaped_is_dead(state: bytes, is_dead: bool) -> None:
    line = b"1 (a) " + state + b" 0 1 1 0 -1 4 0 0 0 0 1 1 0 0 20 0 1 0 330 0"
    assert parse_stat(line).is_dead == bool(is_dead)


def test_this_process_is_seen_with_its_parent() -> None:
    me = read_process(os.getpid())
    assert me is not None
    assert (me.parent, me.group, me.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert survey()[os.getpid()].identity == me.identity
    assert os.getppid() in ancestors(survey(), os.getpid())


def test_a_process_that_is_gone_has_no_identity() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert process_identity(child.pid) == (0, boot_id())
    assert read_process(child.pid) is None


def test_identity_is_start_time_and_boot(sleeper: subprocess.Popen[bytes]) -> None:
    start, boot = process_identity(sleeper.pid)
    assert start > process_identity(1)[0] >= 0
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert boot == file.read().strip()


AGAIN_AND_AGAIN = "import os, sys; os.execv(sys.executable, sys.orig_argv)"


def test_a_process_in_the_middle_of_an_exec_keeps_its_marks() -> None:
    restless = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", AGAIN_AND_AGAIN], env={"MARK": "a=b"})
        for _ in range(2)
    ]
    try:
        assert all(carries(each.pid, [b"MARK=a=b"]) for _ in range(20_000) for each in restless)
    finally:
        for each in restless:
            each.kill()
            each.wait()


def test_no_environment_is_none_and_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "600"], env={}) as bare:
        try:
            assert processes.read_environment(bare.pid) == set()
            assert not processes._is_in_exec(bare.pid)
        finally:
            bare.kill()


def test_all_marks_have_to_be_there_whole(sleeper: subprocess.Popen[bytes]) -> None:
    assert carries(sleeper.pid, [b"MARK=a=b", b"OTHER=c"])
    assert not carries(sleeper.pid, [b"MARK=a=b", b"OTHER=d"])
    assert not carries(sleeper.pid, [b"MARK=a"])
    assert not carries(2**22 + 1, [])


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_process_that_took_over_the_number_is_not_hit(
    sleeper: subprocess.Popen[bytes], has_pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pidfd:
        monkeypatch.setattr(processes, "_pidfd_open", None)
    now = read_process(sleeper.pid)
    assert now is not None
    earlier = Process(now.pid, now.parent, now.group, now.session, now.start - 1, False)
    assert not signal_process(earlier, signal.SIGKILL)
    assert sleeper.poll() is None
    assert signal_process(now, signal.SIGKILL)
    assert sleeper.wait(timeout=20) == -signal.SIGKILL


def test_a_process_that_is_gone_gets_no_signal() -> None:
    child = subprocess.Popen(["sleep", "600"])
    process = read_process(child.pid)
    child.kill()
    child.wait()
    assert process is not None
    assert not signal_process(process, signal.SIGTERM)


def table(*rows: tuple[int, int]) -> dict[int, Process]:
    return {pid: Process(pid, parent, pid, pid, pid, False) for pid, parent in rows}


def test_descendants_are_found_through_all_generations() -> None:
    family = table((1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20))
    assert with_descendants(family, [10]) == [10, 11, 12]
    assert with_descendants(family, [11, 20, 99]) == [11, 20, 12, 21]


def test_parents_stand_before_their_children_whatever_their_numbers() -> None:
    """A shell that outlived its command by a moment would go on to the next one."""
    wrapped = table((1, 0), (32000, 1), (7, 32000), (9, 7), (8, 9))
    assert with_descendants(wrapped, [8, 7, 32000]) == [32000, 7, 9, 8]


def test_a_table_with_a_loop_is_walked_to_its_end() -> None:
    """Numbers change hands during a walk: a table may show what never was."""
    loop = table((10, 11), (11, 10))
    assert sorted(with_descendants(loop, [10])) == [10, 11]
    assert ancestors(loop, 10) == {10, 11}


def test_signals_need_no_signal_module() -> None:
    """Importing it costs an engine 6 ms of its start."""
    script = "import sys, overnight.guard.processes as p; print('signal' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"],
        check=True, capture_output=True, text=True, timeout=60,
    )
    assert said.stdout.strip() == "False"
