"""What waiting for descriptors promises, with epoll and without."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

import pytest

from overnight.net.poller import READ, WRITE, Poller


@pytest.fixture(params=["epoll", "poll"])
def poller(request, monkeypatch):
    if request.param == "poll":
        monkeypatch.delattr(select, "epoll")
    poller = Poller()
    yield poller
    poller.close()


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_what_is_ready_comes_back_with_what_for(poller, pipe):
    reading, writing = pipe
    poller.watch(reading, READ)
    poller.watch(writing, WRITE)
    assert poller.wait(0) == [(writing, WRITE)]
    os.write(writing, b"x")
    assert sorted(poller.wait(0)) == sorted([(reading, READ), (writing, WRITE)])


def test_what_is_awaited_can_be_changed(poller, pipe):
    _, writing = pipe
    poller.watch(writing, WRITE)
    poller.watch(writing, READ)
    assert poller.wait(0) == []
    poller.watch(writing, WRITE)
    assert poller.wait(0) == [(writing, WRITE)]


def test_what_was_forgotten_does_not_come_back(poller, pipe):
    _, writing = pipe
    poller.watch(writing, WRITE)
    poller.forget(writing)
    poller.forget(writing)
    assert poller.wait(0) == []
    poller.watch(writing, WRITE)
    assert poller.wait(0) == [(writing, WRITE)]


def test_the_end_of_a_stream_is_something_to_read(poller):
    reading, writing = os.pipe()
    poller.watch(reading, READ)
    os.close(writing)
    ((fd, mask),) = poller.wait(0)
    assert fd == reading
    assert mask & ~WRITE
    os.close(reading)


def test_waiting_ends_at_its_limit_and_not_before(poller):
    before = time.monotonic()
    assert poller.wait(0.05) == []
    assert time.monotonic() - before >= 0.05


def test_a_limit_below_a_millisecond_is_no_busy_loop(poller):
    before = time.monotonic()
    poller.wait(0.0001)
    assert time.monotonic() - before >= 0.0001


def test_waiting_without_a_limit_ends_when_something_is_ready(poller, pipe):
    reading, writing = pipe
    poller.watch(reading, READ)
    writer = threading.Timer(0.05, lambda: os.write(writing, b"x"))
    writer.start()
    assert poller.wait(None) == [(reading, READ)]
    writer.join()


def test_a_signal_whose_handler_rings_a_bell_ends_the_waiting(poller, pipe):
    reading, writing = pipe
    poller.watch(reading, READ)
    before = signal.signal(signal.SIGUSR1, lambda number, frame: os.write(writing, b"x"))
    main = threading.main_thread().ident
    ringer = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    ringer.start()
    assert poller.wait(None) == [(reading, READ)]
    ringer.join()
    signal.signal(signal.SIGUSR1, before)


def test_a_regular_file_cannot_be_waited_for(tmp_path):
    with open(tmp_path / "Tasks", "wb") as file:
        poller = Poller()
        with pytest.raises(PermissionError):
            poller.watch(file.fileno(), READ)
        poller.forget(file.fileno())
        poller.close()


def test_closing_gives_its_descriptor_back():
    before = len(os.listdir("/proc/self/fd"))
    Poller().close()
    assert len(os.listdir("/proc/self/fd")) == before
