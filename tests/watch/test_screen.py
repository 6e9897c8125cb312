"""What stands on the screen while a run goes on."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import termios
import threading
from typing import TYPE_CHECKING

import pytest

from overnight.model.progress import Progress
from overnight.watch.screen import (
    LiveScreen,
    PlainScreen,
    notice,
    open_screen,
    progress_line,
    rate_text,
)
from tests.watch.kit import NIGHT
from tests.watch.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


def progress(
    done: int = 120, failed: int = 0, total: int | None = 1000, after_s: float = 60.0,
    skipped: int = 0, barrier_line: int | None = None, last_failure: str = "",
    range_text: str = "", rate: float = 2.0,
) -> Progress:
    return Progress(
        total, done, failed, skipped, 8, NIGHT, NIGHT + after_s, rate, 8, barrier_line,
        last_failure, range_text,
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    yield terminal
    terminal.close()


# -------------------------------------------------------------------------- a live block


def test_the_block_tells_how_far_the_run_is(terminal: Terminal) -> None:
    LiveScreen(terminal.stream).show(progress(
        failed=5, skipped=30, barrier_line=17, last_failure="task 12: exit code 1: no such row",
        range_text="6 to 8 min",
    ))
    bar, counts, barrier, failure = terminal.lines()
    assert bar == "━" * 6 + "─" * 34 + "  155 of 1,000 tasks, 1 min"
    assert counts == (
        "120 done  5 failed  30 done before  8 running on 8 slots  2/s  6 to 8 min left"
    )
    assert barrier == "waiting at the barrier in line 17"
    assert failure == "last failure: task 12: exit code 1: no such row"


def test_a_run_without_an_end_has_no_bar_and_no_range(terminal: Terminal) -> None:
    LiveScreen(terminal.stream).show(progress(total=None))
    assert terminal.lines() == [
        "120 tasks, 1 min", "120 done  8 running on 8 slots  2/s",
    ]


def test_one_failure_among_a_million_is_seen_in_the_bar(terminal: Terminal) -> None:
    LiveScreen(terminal.stream).show(progress(done=600_000, failed=1, total=1_000_000))
    terminal.lines()
    assert b"\x1b[1;31m\xe2\x94\x81\x1b[0m" in terminal.raw


def test_each_look_is_drawn_over_the_one_before(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress(done=1, barrier_line=3))
    screen.show(progress(done=2))
    lines = terminal.lines()
    assert len(lines) == 2
    assert lines[1].startswith("2 done")


def test_a_notice_goes_above_the_block_and_stays(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress(done=1))
    screen.say("engine 3 is silent\n  kept: its tasks")
    assert terminal.lines()[:2] == ["engine 3 is silent", "  kept: its tasks"]
    assert terminal.lines()[3].startswith("1 done")
    screen.show(progress(done=2))
    assert terminal.lines()[0] == "engine 3 is silent"
    assert terminal.lines()[3].startswith("2 done")
    assert len(terminal.lines()) == 4


def test_after_closing_only_the_notices_are_left(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress())
    screen.say("stopping: no more tasks are started")
    screen.close()
    screen.close()
    assert terminal.lines() == ["stopping: no more tasks are started"]


def test_what_a_task_wrote_is_never_obeyed(terminal: Terminal) -> None:
    LiveScreen(terminal.stream).show(progress(last_failure="\x1b[2J\x1b]0;owned\x07[red]x[/red]"))
    assert terminal.lines()[2] == (
        "last failure: \\x1b[2J\\x1b]0;owned\\x07[red]x[/red]"
    )


def test_no_line_is_wider_than_the_terminal(terminal: Terminal) -> None:
    terminal.resize(30, 24)
    LiveScreen(terminal.stream).show(progress(last_failure="日本語 " * 20, range_text="1 to 2 h"))
    lines = terminal.lines()
    assert lines[0] == "120 of 1,000 tasks, 1 min"
    assert lines[1] == "120 done  8 running on 8 slo…"
    assert len(lines) == 3


def test_the_block_keeps_to_a_low_terminal(terminal: Terminal) -> None:
    terminal.resize(80, 3)
    LiveScreen(terminal.stream).show(progress(barrier_line=3, last_failure="x"))
    assert len(terminal.lines()) == 2


def test_a_block_that_a_narrower_terminal_has_wrapped_is_erased_whole(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress())
    widths = [len(line) for line in terminal.lines()]
    terminal.resize(20, 24)
    screen.close()
    terminal.lines()
    rows = sum(-(-width // 20) for width in widths)
    assert terminal.raw.endswith(b"\r\x1b[%dA\x1b[J" % rows)


def test_nothing_of_the_process_or_the_terminal_is_changed(terminal: Terminal) -> None:
    def state() -> tuple[object, ...]:
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        return handlers, threading.active_count(), termios.tcgetattr(terminal.stream.fileno())

    before = state()
    screen = LiveScreen(terminal.stream)
    screen.show(progress())
    assert state() == before
    screen.close()
    terminal.lines()
    assert b"\x1b[?" not in terminal.raw  # no mode is set, the cursor is not hidden


def test_a_stopped_terminal_does_not_stop_the_run(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress(done=1))
    terminal.stop()
    screen.show(progress(done=2))  # would never return if it waited
    screen.say("held back")
    assert terminal.lines()[1].startswith("1 done")
    terminal.go_on()
    screen.show(progress(done=3))
    assert terminal.lines()[0] == "held back"
    assert terminal.lines()[2].startswith("3 done")


def test_a_terminal_that_went_away_does_not_end_the_run(terminal: Terminal) -> None:
    screen = LiveScreen(terminal.stream)
    screen.show(progress())
    terminal.hang_up()
    screen.show(progress())
    screen.say("nobody reads this")
    screen.close()


# --------------------------------------------------------------------------- plain lines


def lines_of(screen: PlainScreen, stream: io.StringIO, looks: list[Progress]) -> list[float]:
    """After how many seconds of the run a line was written."""
    written = []
    for look in looks:
        before = len(stream.getvalue())
        screen.show(look)
        if len(stream.getvalue()) > before:
            written.append(look.now - NIGHT)
    return written


def test_plain_lines_come_at_doubling_intervals_up_to_a_minute() -> None:
    stream = io.StringIO()
    looks = [progress(after_s=n / 4) for n in range(4 * 260)]
    assert lines_of(PlainScreen(stream), stream, looks) == [1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_a_run_shorter_than_a_second_gets_no_line() -> None:
    stream = io.StringIO()
    screen = PlainScreen(stream)
    screen.show(progress(after_s=0.9))
    screen.close()
    assert stream.getvalue() == ""


def test_plain_lines_go_on_after_the_clock_was_set_back() -> None:
    stream = io.StringIO()
    looks = [progress(after_s=n) for n in (1, -3600, -3599, -3598, -3597)]
    assert lines_of(PlainScreen(stream), stream, looks) == [1, -3598]


def test_a_plain_screen_tells_each_failure_once() -> None:
    stream = io.StringIO()
    screen = PlainScreen(stream)
    for after_s, words in ((1, ""), (3, "task 1: no\x1b"), (7, "task 1: no\x1b")):
        screen.show(progress(done=0, failed=1, after_s=after_s, last_failure=words))
    assert stream.getvalue() == (
        "1 of 1,000 tasks, 1 failed, 8 running, 2/s\n"
        "1 of 1,000 tasks, 1 failed, 8 running, 2/s\n"
        "  last failure: task 1: no\\x1b\n"
        "1 of 1,000 tasks, 1 failed, 8 running, 2/s\n"
    )


def test_a_notice_is_written_at_once() -> None:
    stream = io.StringIO()
    PlainScreen(stream).say("no space left\n  kept: everything")
    assert stream.getvalue() == "no space left\n  kept: everything\n"


def test_a_pipe_that_nobody_reads_does_not_stop_the_run() -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_fd, b"x" * 4096)
    os.set_blocking(write_fd, True)
    with os.fdopen(read_fd, "rb", buffering=0) as reader, os.fdopen(write_fd, "w") as stream:
        screen = PlainScreen(stream)
        screen.show(progress())  # would never return if it waited
        screen.say("held back")
        assert set(reader.read(1 << 20)) == {ord("x")}
        screen.close()
        assert reader.read(1 << 20) == b"held back\n"


def test_a_pipe_whose_reader_left_does_not_end_the_run() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    with os.fdopen(write_fd, "w") as stream:
        screen = PlainScreen(stream)
        screen.show(progress())
        screen.say("nobody reads this")
        screen.close()


# ------------------------------------------------------------------------- which of them


def test_a_terminal_gets_the_block(terminal: Terminal) -> None:
    assert isinstance(open_screen(terminal.stream), LiveScreen)


def test_a_file_or_pipe_gets_plain_lines() -> None:
    assert isinstance(open_screen(io.StringIO()), PlainScreen)


def test_a_dumb_terminal_gets_plain_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_screen(terminal.stream), PlainScreen)


def test_without_rich_a_terminal_gets_plain_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert isinstance(open_screen(terminal.stream), PlainScreen)


def test_rich_is_not_imported_before_something_is_drawn() -> None:
    code = (
        "import sys\n"
        "from overnight.watch.screen import LiveScreen\n"
        "LiveScreen(sys.stderr).close()\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'rich'])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


# ---------------------------------------------------------------------------------- words


def test_a_line_leaves_out_what_there_is_nothing_to_say_of() -> None:
    assert progress_line(progress(total=None, rate=0.0)) == "120 tasks, 8 running"
    assert progress_line(progress(failed=1, skipped=2, barrier_line=9, range_text="1 to 2 h")) == (
        "123 of 1,000 tasks, 1 failed, 2 done before, 8 running, 2/s, 1 to 2 h left, "
        "waiting at the barrier in line 9"
    )


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (12345.6, "12,346/s"), (9.96, "10/s"), (1.0, "1/s"), (0.5, "30/min"), (1 / 60, "1/min"),
        (0.01, "36/h"), (0.0001, "0.36/h"),
    ],
)
def test_a_rate_is_said_in_a_unit_that_can_be_grasped(rate: float, text: str) -> None:
    assert rate_text(rate) == text


def test_a_notice_keeps_its_lines_and_nothing_a_terminal_would_obey() -> None:
    assert notice("a\x1b[2J\nb") == "a\\x1b[2J\nb\n"


# ------------------------------------------------------- what a watcher from outside knows


def test_a_task_that_waits_to_be_tried_again_is_shown():
    waits = progress()
    waits.retry_count = 2
    assert "8 running, 2 wait for a retry" in progress_line(waits)


def test_slots_that_are_not_known_are_not_shown(terminal: Terminal) -> None:
    seen = progress()
    seen.running = None
    LiveScreen(terminal.stream).show(seen)
    assert "running" not in progress_line(seen)
    assert "running" not in "".join(terminal.lines())
