"""What a stream promises: a line that arrives is an item at once, whatever it arrives on."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import socket
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import ListRefused
from overnight.model.task import Task
from overnight.sources.stream import Stream, open_stream
from tests.sources.kit import LINES, ODD_LINES, items_of, lists, read_all


def stream_of(fd: int, told: list[str] | None = None) -> Stream:
    return Stream(fd, "standard input", is_lenient=told is not None,
                  warn=(told if told is not None else []).append)


def commands(items) -> list[bytes]:
    return [task.command for task in items]


class Pipe:
    """A pipe: ``write`` at one end, a stream at the other."""

    def __init__(self) -> None:
        self.fd, self._writing = os.pipe()
        self.stream = stream_of(self.fd)

    def write(self, data: bytes) -> None:
        assert os.write(self._writing, data) == len(data)

    def end(self) -> None:
        os.close(self._writing)
        self._writing = -1

    def close(self) -> None:
        os.close(self.fd)
        if self._writing >= 0:
            self.end()


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


# -- lines as they arrive -----------------------------------------------------------------


def test_a_line_that_arrived_is_an_item_at_once(pipe):
    for id in range(3):
        pipe.write(b"task %d\n" % id)
        assert pipe.stream.read(10) == ([Task(id, id + 1, -1, b"task %d" % id)], False)


def test_nothing_is_waited_for(pipe):
    assert pipe.stream.read(10) == ([], False)


def test_an_unfinished_line_is_no_item_yet(pipe):
    pipe.write(b"echo he")
    assert pipe.stream.read(10) == ([], False)
    pipe.write(b"llo\n")
    assert commands(pipe.stream.read(10)[0]) == [b"echo hello"]


def test_a_last_line_without_line_feed_counts_at_the_end(pipe):
    pipe.write(b"a\nb")
    assert commands(pipe.stream.read(10)[0]) == [b"a"]
    pipe.end()
    items, is_over = pipe.stream.read(10)
    assert (commands(items), is_over) == ([b"b"], True)


def test_the_end_makes_no_empty_line(pipe):
    pipe.write(b"a\n")
    pipe.end()
    items, is_over = pipe.stream.read(10)
    assert (commands(items), is_over) == ([b"a"], True)


def test_what_was_not_wanted_yet_is_kept(pipe):
    pipe.write(b"a\nb\nc\n")
    pipe.end()
    assert commands(pipe.stream.read(2)[0]) == [b"a", b"b"]
    items, is_over = pipe.stream.read(2)
    assert (commands(items), is_over) == ([b"c"], True)


def test_lines_written_byte_by_byte_are_whole(pipe):
    for byte in b"one\n#DISBATCH REPEAT 2 r\nthree":
        pipe.write(bytes([byte]))
        pipe.stream.read(0)
    pipe.end()
    assert commands(read_all(pipe.stream)) == [b"one", b"r", b"r", b"three"]


def test_a_line_of_ten_million_bytes_arrives_whole(pipe):
    line = b"echo " + b"x" * 10_000_000
    stream, items = pipe.stream, []
    unwritten = memoryview(line + b"\n")
    fcntl.fcntl(pipe._writing, fcntl.F_SETFL, os.O_NONBLOCK)
    while unwritten or not items:
        if unwritten and select.select([], [pipe._writing], [], 0)[1]:
            unwritten = unwritten[os.write(pipe._writing, unwritten):]
        items += stream.read(10)[0]
    assert commands(items) == [line]


def test_no_more_is_taken_from_a_flood_than_is_wanted(pipe):
    size = fcntl.fcntl(pipe.fd, fcntl.F_SETPIPE_SZ, 1 << 20)
    pipe.write(b"x\n" * (size // 2))
    pipe.stream.read(1)
    left = fcntl.ioctl(pipe.fd, termios.FIONREAD, bytes(4))
    assert int.from_bytes(left, sys.byteorder) > size // 2


@given(lists([*LINES, *ODD_LINES]), st.lists(st.integers(1, 40), min_size=1), st.integers(1, 5))
def test_however_bytes_arrive_the_items_are_those_of_the_list(data, sizes, count):
    pipe, told = Pipe(), []
    stream, items = stream_of(pipe.fd, told), []
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        pipe.write(data[at:at + size])
        at += size
        items += stream.read(count)[0]
    pipe.end()
    items += read_all(stream, count)
    pipe.close()
    assert items == items_of(data)


# -- suspicious lines ---------------------------------------------------------------------


def test_a_suspicious_line_is_refused_at_once(pipe):
    pipe.write(b"#DISBATCH BARIER\n")
    with pytest.raises(ListRefused, match="standard input, line 1"):
        pipe.stream.read(10)


def test_a_suspicious_line_comes_after_what_is_before_it(pipe):
    pipe.write(b"a\n#DISBATCH BARIER\nb\n")
    assert commands(pipe.stream.read(10)[0]) == [b"a"]
    with pytest.raises(ListRefused):
        pipe.stream.read(10)


def test_a_suspicious_last_line_does_not_end_the_stream_in_silence(pipe):
    pipe.write(b"a\n#DISBATCH BARIER")
    pipe.end()
    assert pipe.stream.read(10)[1] is False
    with pytest.raises(ListRefused):
        pipe.stream.read(10)


# -- whatever it is -----------------------------------------------------------------------


def is_nonblocking(fd: int) -> bool:
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)


def test_the_descriptor_is_left_as_it_is(pipe):
    pipe.write(b"a\n")
    pipe.stream.read(10)
    assert not is_nonblocking(pipe.fd)
    pipe.stream.close()
    os.fstat(pipe.fd)  # still open


def test_a_descriptor_somebody_made_non_blocking_works_too(pipe):
    os.set_blocking(pipe.fd, False)
    assert pipe.stream.read(10) == ([], False)
    pipe.write(b"a\n")
    assert commands(pipe.stream.read(10)[0]) == [b"a"]


def test_a_regular_file_is_read_to_its_end(tmp_path):
    (tmp_path / "Tasks").write_bytes(b"a\nb")
    fd = os.open(tmp_path / "Tasks", os.O_RDONLY)
    assert commands(read_all(stream_of(fd))) == [b"a", b"b"]
    os.close(fd)


def test_nothing_at_all_is_an_empty_list():
    fd = os.open(os.devnull, os.O_RDONLY)
    assert stream_of(fd).read(10) == ([], True)
    os.close(fd)


def test_a_socket_is_a_stream():
    ours, theirs = socket.socketpair()
    stream = stream_of(ours.fileno())
    theirs.sendall(b"a\nb")
    assert commands(stream.read(10)[0]) == [b"a"]
    theirs.close()
    items, is_over = stream.read(10)
    assert (commands(items), is_over) == ([b"b"], True)
    ours.close()


def read_when_ready(stream: Stream) -> tuple[list[bytes], bool]:
    """A terminal hands on what was typed a moment later."""
    assert select.select([stream.fileno()], [], [], 30)[0], "nothing arrives"
    items, is_over = stream.read(10)
    return commands(items), is_over


def test_a_terminal_gives_each_line_when_it_is_typed_and_ends_with_control_d():
    keyboard, terminal = pty.openpty()
    stream = stream_of(terminal)
    os.write(keyboard, b"echo 1\n")
    assert read_when_ready(stream) == ([b"echo 1"], False)
    os.write(keyboard, b"echo 2\n\x04")
    got, is_over = read_when_ready(stream)
    while not is_over:
        more, is_over = read_when_ready(stream)
        got += more
    assert got == [b"echo 2"]
    assert not is_nonblocking(terminal)
    os.close(keyboard)
    os.close(terminal)


def test_a_terminal_that_goes_away_ends_the_list():
    keyboard, terminal = pty.openpty()
    stream = stream_of(terminal)
    os.write(keyboard, b"echo 1\n")
    assert read_when_ready(stream) == ([b"echo 1"], False)
    os.close(keyboard)
    assert read_when_ready(stream) == ([], True)
    os.close(terminal)


def test_a_descriptor_that_is_closed_is_an_error():
    fd = os.open(os.devnull, os.O_RDONLY)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        stream_of(fd).read(10)


def test_a_named_pipe_can_be_opened_as_a_list(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writing = os.open(path, os.O_RDWR)
    stream = open_stream(str(path), is_lenient=False, warn=print)
    os.write(writing, b"a\nb")
    assert commands(stream.read(10)[0]) == [b"a"]
    os.close(writing)
    items, is_over = stream.read(10)
    assert (commands(items), is_over) == ([b"b"], True)
    fd = stream.fileno()
    stream.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
