"""Ending a set of processes: once politely, then for good, until nothing is found."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from overnight.guard import leftovers
from overnight.guard.leftovers import is_same_process
from overnight.guard.processes import Process, read_process
from overnight.guard.sweep import GIVE_UP_S, Sweep
from tests.engine.kit import wait_until


def start(command: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for child in started:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def alive(children: list[subprocess.Popen[bytes]]) -> list[Process]:
    found = [read_process(child.pid) for child in children]
    return [each for each in found if each is not None and not each.is_dead]


def test_the_first_signal_comes_once_and_the_last_until_nothing_is_left(
    children: list[subprocess.Popen[bytes]],
) -> None:
    children.append(start("trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done"))
    sweep = Sweep(lambda: alive(children), kill_after_s=2.0, now=100.0)
    stdout = children[0].stdout
    assert stdout is not None
    sweep.look(100.0)
    assert stdout.readline() == b"term\n"
    sweep.look(101.9)
    sweep.look(102.0)
    assert children[0].wait(timeout=20) == -signal.SIGKILL
    assert stdout.read() == b""
    sweep.look(102.1)
    assert sweep.is_over
    assert len(sweep.seen) == 1


def test_what_is_found_later_gets_the_first_signal_then(
    children: list[subprocess.Popen[bytes]],
) -> None:
    sweep = Sweep(lambda: alive(children), kill_after_s=2.0, now=0.0)
    children.append(start("trap '' TERM; echo ready; while :; do sleep 0.02; done"))
    sweep.look(0.0)
    children.append(start("echo ready; sleep 600"))
    sweep.look(1.0)
    assert children[1].wait(timeout=20) == -signal.SIGTERM
    wait_until(lambda: len(alive(children)) == 1, "the first one is alone")


def test_nothing_found_is_over_at_once() -> None:
    sweep = Sweep(list, kill_after_s=2.0, now=0.0)
    sweep.look(0.0)
    assert sweep.is_over
    assert not sweep.seen


def test_what_survives_every_kill_is_given_up() -> None:
    hung = [Process(2**22 + 5, 1, 1, 1, 1, False)]  # no such process: no signal reaches it
    sweep = Sweep(lambda: hung, kill_after_s=1.0, now=0.0)
    sweep.look(1.0 + GIVE_UP_S - 0.1)
    assert not sweep.is_over
    sweep.look(1.0 + GIVE_UP_S)
    assert sweep.is_over


def test_a_process_is_the_same_only_with_its_start_time(
    children: list[subprocess.Popen[bytes]],
) -> None:
    children.append(start("echo ready; sleep 600"))
    process = read_process(children[0].pid)
    assert process is not None
    assert is_same_process(*process.identity)
    assert not is_same_process(process.pid, process.start + 1)
    children[0].kill()
    wait_until(lambda: not is_same_process(*process.identity), "it has ended")


def test_runners_of_an_engine_are_not_sought_under_a_number_that_is_anothers_now() -> None:
    others = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", "another_engine.pyz"],
        start_new_session=True,
    )
    try:
        elder = leftovers.GoneEngine("run", 0, others.pid, 1, ["/"])
        wait_until(lambda: leftovers._is_engine_or_runner(others.pid), "it has its arguments")
        assert leftovers._runners_of(elder) == []
    finally:
        others.kill()
        others.wait()
