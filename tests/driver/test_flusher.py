"""What the flushing thread promises."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import pytest

from overnight.driver.flusher import Flusher
from tests.conformance.harness_processes import wait_until

ROOT = Path(__file__).parents[2]
WITHIN_S = 30


@pytest.fixture
def results():
    return SimpleQueue()


@pytest.fixture
def flusher(results):
    flusher = Flusher(lambda *result: results.put(result))
    yield flusher
    flusher.close()


def test_the_numbers_of_a_request_come_back_when_it_is_done(flusher, results, tmp_path):
    with open(tmp_path / "rows", "wb", buffering=0) as file:
        for end in (10, 20):
            flusher.flush(file.fileno(), end, end + 1)
            assert results.get(timeout=WITHIN_S) == (end, end + 1, None)


@pytest.fixture
def unflushable():
    """A descriptor that fdatasync refuses: that of a pipe."""
    reading, writing = os.pipe()
    yield writing
    os.close(reading)
    os.close(writing)


def test_a_fault_comes_back_with_its_request(flusher, results, unflushable):
    flusher.flush(unflushable, 10, 11)
    end, number, fault = results.get(timeout=WITHIN_S)
    assert (end, number, fault.errno) == (10, 11, errno.EINVAL)


def test_it_goes_on_after_a_fault(flusher, results, unflushable, tmp_path):
    flusher.flush(unflushable, 1, 1)
    assert results.get(timeout=WITHIN_S)[2] is not None
    with open(tmp_path / "rows", "wb", buffering=0) as file:
        flusher.flush(file.fileno(), 2, 2)
        assert results.get(timeout=WITHIN_S) == (2, 2, None)


IN_A_PROCESS_OF_ITS_OWN = """
from tests.driver.test_flusher import *

def open_things():
    return len(os.listdir("/proc/self/task")) + len(os.listdir("/proc/self/fd"))

before = open_things()
flusher = Flusher(lambda *result: None)
assert open_things() == before + 3  # the thread, and two ends of its bell
flusher.close()
assert wait_until(lambda: open_things() == before, WITHIN_S)
"""


def test_closing_leaves_no_thread_and_no_descriptor():
    # Here threads of tests before this one may be about to end, and would be counted.
    subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN], cwd=ROOT, check=True, timeout=60
    )


@pytest.mark.needs("fuse")
def test_a_flush_that_ends_after_closing_says_nothing(slow_folder, results):
    flusher = Flusher(lambda *result: results.put(result))
    path = slow_folder.path / "rows"
    with open(path, "wb", buffering=0) as file:
        slow_folder.slow_down(0.5, "fsync")
        threads = len(os.listdir("/proc/self/task"))
        flusher.flush(file.fileno(), 1, 1)
        flusher.close()
        assert wait_until(lambda: len(os.listdir("/proc/self/task")) < threads, WITHIN_S)
    slow_folder.recover()
    assert results.empty()
