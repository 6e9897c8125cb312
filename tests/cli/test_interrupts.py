"""What each signal does: by the command, by how often it came, and by how far the run is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import overnight
from overnight.cli.interrupts import Interrupts
from overnight.core.events import END, KILL, SOFT
from tests.conformance.harness_processes import wait_until

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOW = {SOFT: "soft", END: "end", KILL: "kill"}


@pytest.fixture(autouse=True)
def handlers():
    """The test runner's own signal handlers, put back afterwards."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class FakeDriver:
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        self.events: list = []

    def post(self, event) -> None:
        self.events.append(event)

    def stops(self) -> list[str]:
        return [HOW[event.how] for event in self.events]


def driving(*, is_compatible: bool, is_in_slurm: bool = False) -> FakeDriver:
    """A driver whose stops signals are from now on."""
    driver = FakeDriver()
    interrupts = Interrupts(
        print, is_compatible=is_compatible, grace_s=2.0, is_in_slurm=is_in_slurm
    )
    interrupts.hold()
    interrupts.drive(driver)
    return driver


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


def test_disbatch_ends_at_the_first_signal_and_kills_at_the_next():
    driver = driving(is_compatible=True)
    send(signal.SIGINT, signal.SIGTERM, signal.SIGINT)
    assert driver.stops() == ["end", "kill", "kill"]


def test_overnight_run_stops_in_stages():
    driver = driving(is_compatible=False)
    send(signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGINT)
    assert driver.stops() == ["soft", "end", "kill", "kill"]


@pytest.mark.parametrize("number", SIGNALS[:2])
def test_a_stop_knows_its_signal_and_says_what_the_next_one_does(number):
    driver = driving(is_compatible=False)
    send(number)
    (event,) = driver.events
    assert event.signal == number
    assert event.reason == f"interrupted by {number.name}"
    assert event.notice.startswith(f"{number.name}: nothing new is started")
    assert "Once more ends them" in event.notice


def test_the_grace_time_is_told():
    driver = driving(is_compatible=True)
    send(signal.SIGINT)
    assert "2 s" in driver.events[0].notice


def test_a_hangup_ends_disbatch():
    driver = driving(is_compatible=True)
    send(signal.SIGHUP)
    assert driver.stops() == ["end"]
    assert driver.events[0].signal == signal.SIGHUP


def test_a_hangup_does_not_end_overnight_run():
    driver = driving(is_compatible=False)
    send(signal.SIGHUP)
    assert driver.events == []


def test_nohup_stands_for_disbatch():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    driver = driving(is_compatible=True)
    send(signal.SIGHUP)
    assert driver.events == []


def test_in_an_allocation_sigterm_is_a_warning_and_sigint_is_not():
    driver = driving(is_compatible=True, is_in_slurm=True)
    send(signal.SIGTERM)
    assert driver.stops() == ["soft"]
    assert driving_after(signal.SIGINT) == ["end"]


def driving_after(number: int) -> list[str]:
    driver = driving(is_compatible=True, is_in_slurm=True)
    send(number)
    return driver.stops()


def test_a_signal_that_comes_while_files_are_made_waits_for_the_driver():
    driver = FakeDriver()
    interrupts = Interrupts(print, is_compatible=False, grace_s=2.0)
    interrupts.hold()
    send(signal.SIGINT, signal.SIGTERM)
    interrupts.drive(driver)
    assert driver.stops() == ["soft", "end"]
    assert [event.signal for event in driver.events] == [signal.SIGINT, signal.SIGTERM]


# -- before and after a run: the process ends ----------------------------------------------

WAITING = """
import os, signal, sys
from overnight.cli.interrupts import Interrupts
say = lambda text: os.write(2, text.encode() + b"\\n")
interrupts = Interrupts(say, is_compatible=sys.argv[1] == "disBatch", grace_s=2.0)
if sys.argv[2] == "over":
    interrupts.hold()
    interrupts.leave(7)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def end_waiting(command: str, stage: str, number: int) -> tuple[int, str]:
    """Exit status and last words of a command that got a signal at this stage."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, command, stage], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(overnight.__file__).parents[1])},
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert wait_until(lambda: process.poll() is not None, 30)
    return process.returncode, process.communicate()[1]


@pytest.mark.parametrize(
    ("command", "number", "status"),
    [
        ("disBatch", signal.SIGINT, 130), ("disBatch", signal.SIGTERM, 143),
        ("disBatch", signal.SIGHUP, 129), ("overnight run", signal.SIGINT, 3),
        ("overnight run", signal.SIGTERM, 3),
    ],
)  # fmt: skip
def test_before_anything_is_made_a_signal_ends_the_command(command, number, status):
    assert end_waiting(command, "nothing", number) == (
        status, f"{number.name}: nothing was started\n"
    )


@pytest.mark.parametrize("command", ["disBatch", "overnight run"])
def test_after_the_run_a_signal_ends_the_command_with_the_status_it_has_earned(command):
    assert end_waiting(command, "over", signal.SIGINT) == (7, "")
