"""What --print promises: each task's output, whole, in order, and nothing of it lost."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.model.report import Leak
from overnight.observers.printer import PrintObserver, output_path
from tests.conformance.harness_processes import wait_until
from tests.observers import entries
from tests.observers.entries import barrier_met, skipped

WITHIN_S = 30


def ended(id: int, **chosen):
    """An attempt that has written something."""
    entry = entries.ended(id, **chosen)
    entry.report.out = Leak(1, b"x")
    return entry


class Printing:
    """A printer whose two streams are files, and outputs of tasks for it."""

    def __init__(self, folder: Path, **chosen: bool) -> None:
        self.directory = folder / "run_print"
        self.out_path, self.err_path = folder / "stdout", folder / "stderr"
        paths = (self.out_path, self.err_path)
        self.fds = [os.open(path, os.O_CREAT | os.O_RDWR) for path in paths]
        options = {"keeps_order": False, "tags": False, "removes": True, **chosen}
        self.printer = PrintObserver(str(self.directory), *self.fds, **options)

    def keep(self, id: int, out: bytes = b"", err: bytes = b"", attempt: int = 1) -> None:
        """Put output where an engine puts it: a file a stream that is not empty."""
        for ending, data in (("out", out), ("err", err)):
            path = self.path(id, ending, attempt)
            path.parent.mkdir(parents=True, exist_ok=True)
            if data:
                path.write_bytes(data)

    def path(self, id: int, ending: str = "out", attempt: int = 1) -> Path:
        return Path(output_path(str(self.directory), id, attempt, ending))

    def end(self, *entries) -> None:
        self.printer.recorded(entries)

    def close(self) -> tuple[bytes, bytes]:
        """End the printer; what it had printed on its two streams."""
        self.printer.close()
        for fd in self.fds:
            os.close(fd)
        return self.out_path.read_bytes(), self.err_path.read_bytes()


@pytest.fixture
def printing(tmp_path: Path):
    """Make a printing with these choices."""
    return lambda **chosen: Printing(tmp_path, **chosen)


def test_both_streams_of_a_task_are_printed_whole(printing):
    made = printing()
    big = os.urandom(1 << 20)
    made.keep(0, out=big, err=b"oh\n")
    made.end(ended(0))
    assert made.close() == (big, b"oh\n")


def test_a_task_without_output_prints_nothing(printing):
    made = printing()
    made.keep(0)
    made.end(entries.ended(0))
    assert made.close() == (b"", b"")


def test_tasks_are_printed_in_order_of_completion(printing):
    made = printing()
    for id in (2, 0, 1):
        made.keep(id, b"%d\n" % id)
        made.end(ended(id))
    assert made.close()[0] == b"2\n0\n1\n"


def test_output_of_a_failed_task_is_printed_too(printing):
    made = printing()
    made.keep(0, b"almost\n")
    made.end(ended(0, code=3))
    assert made.close()[0] == b"almost\n"


# -- in the order of the list -------------------------------------------------------------


def test_in_the_order_of_the_list_a_task_waits_for_those_before_it(printing):
    made = printing(keeps_order=True, removes=False)
    for id in (2, 1):
        made.keep(id, b"%d\n" % id)
        made.end(ended(id))
    assert made.out_path.read_bytes() == b""
    made.keep(0, b"0\n")
    made.end(ended(0))
    assert wait_until(lambda: made.out_path.read_bytes() == b"0\n1\n2\n", WITHIN_S)
    made.close()


def test_barriers_and_tasks_done_before_hold_nothing_up(printing):
    made = printing(keeps_order=True)
    made.keep(2, b"2\n")
    made.end(skipped(0), barrier_met(1), ended(2))
    assert wait_until(lambda: made.out_path.read_bytes() == b"2\n", WITHIN_S)
    made.close()


def test_tasks_done_before_in_a_row_hold_nothing_up(printing):
    made = printing(keeps_order=True)
    made.keep(5, b"5\n")
    made.end(ended(5), skipped(1, count=4))
    assert made.out_path.read_bytes() == b""
    made.end(skipped(0))
    assert wait_until(lambda: made.out_path.read_bytes() == b"5\n", WITHIN_S)
    made.close()


def test_what_still_waits_at_the_end_is_printed_then(printing):
    made = printing(keeps_order=True)
    for id in (5, 3):
        made.keep(id, b"%d\n" % id)
        made.end(ended(id))
    assert made.close()[0] == b"3\n5\n"


def test_a_late_report_of_a_task_passed_already_holds_nothing_up(printing):
    made = printing(keeps_order=True)
    made.end(ended(0), ended(1), ended(2))
    made.keep(0, b"late\n")
    made.keep(3, b"3\n")
    made.end(ended(0))
    made.end(ended(3))
    assert wait_until(lambda: made.out_path.read_bytes() == b"late\n3\n", WITHIN_S)
    made.close()


@given(st.permutations(range(12)), st.booleans())
def test_whatever_the_order_of_ending_every_output_is_printed_once(tmp_path_factory, ids, ordered):
    made = Printing(tmp_path_factory.mktemp("print"), keeps_order=ordered)
    for id in ids:
        made.keep(id, b"%d\n" % id)
        made.end(ended(id))
    expected = sorted(ids) if ordered else ids
    assert made.close()[0] == b"".join(b"%d\n" % id for id in expected)
    assert not made.directory.exists()


# -- tags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        (b"one\ntwo\n", b"7\tone\n7\ttwo\n"),
        (b"no end", b"7\tno end\n"),
        (b"\n\n", b"7\t\n7\t\n"),
        (b"a\r\xff\0b\n", b"7\ta\r\xff\0b\n"),
    ],
)
def test_a_tag_stands_before_each_line(printing, output, printed):
    made = printing(tags=True)
    made.keep(7, output, output)
    made.end(ended(7))
    assert made.close() == (printed, printed)


# -- files --------------------------------------------------------------------------------


def test_files_that_nobody_asked_for_are_gone_at_the_end(printing):
    made = printing()
    for id in (0, 1, 1000):
        made.keep(id, b"x\n")
        made.end(ended(id))
    made.close()
    assert not made.directory.exists()


def test_files_that_were_asked_for_stay(printing):
    made = printing(removes=False)
    made.keep(0, b"x\n")
    made.end(ended(0))
    made.close()
    assert made.path(0).read_bytes() == b"x\n"


def test_of_a_task_that_was_tried_again_the_last_attempt_is_printed(printing):
    made = printing()
    made.keep(0, b"first\n", attempt=1)
    made.end(ended(0, code=1, attempt=1, settles=False))
    made.keep(0, b"second\n", attempt=2)
    made.end(ended(0, attempt=2))
    assert made.close()[0] == b"second\n"
    assert not made.directory.exists()


def test_earlier_attempts_stay_where_files_were_asked_for(printing):
    made = printing(removes=False)
    made.keep(0, b"first\n", attempt=1)
    made.end(ended(0, code=1, attempt=1, settles=False))
    made.close()
    assert made.path(0, attempt=1).exists()


def test_output_of_an_earlier_run_is_not_printed_in_the_place_of_this_ones(printing):
    made = printing(removes=False)
    made.keep(0, b"of an earlier run\n")
    os.utime(made.path(0), (1.0, 1.0))
    made.keep(0, b"of this one\n", attempt=2)
    made.end(ended(0))
    assert made.close()[0] == b"of this one\n"
    assert made.path(0).read_bytes() == b"of an earlier run\n"


def test_an_attempt_that_wrote_nothing_prints_nothing_of_an_earlier_run(printing):
    made = printing(removes=False)
    made.keep(0, b"of an earlier run\n")
    made.end(entries.ended(0))
    assert made.close()[0] == b""


def test_what_a_killed_run_left_unprinted_is_gone_when_its_task_is_settled(printing):
    made = printing()
    made.keep(0, b"cut in the mid")
    os.utime(made.path(0), (1.0, 1.0))
    made.keep(0, b"whole\n", attempt=2)
    made.end(ended(0))
    assert made.close()[0] == b"whole\n"
    assert not made.directory.exists()


def test_output_that_was_not_printed_stays_and_keeps_no_other_folder(printing):
    made = printing()
    made.keep(0, b"of a task that was never settled\n")
    made.keep(1000, b"x\n")
    made.end(ended(1000))
    made.close()
    assert made.path(0).exists()
    assert not made.path(1000).parent.exists()


def test_a_run_that_kept_nothing_has_nothing_to_tidy(printing):
    assert printing().close() == (b"", b"")


# -- readers with other plans -------------------------------------------------------------


class Reader:
    """A pipe in the place of a printer's standard output."""

    def __init__(self, made: Printing) -> None:
        self.fd, writing = os.pipe()
        os.dup2(writing, made.fds[0])
        os.close(writing)

    def hang_up(self) -> None:
        os.close(self.fd)

    def read_all(self) -> bytes:
        blocks = list(iter(lambda: os.read(self.fd, 1 << 16), b""))
        os.close(self.fd)
        return b"".join(blocks)


def test_nothing_is_lost_when_the_reader_hangs_up(printing):
    made = printing()
    Reader(made).hang_up()
    for id in (0, 1):
        made.keep(id, b"out %d\n" % id, b"err %d\n" % id)
        made.end(ended(id))
    assert made.close() == (b"", b"err 0\nerr 1\n")
    assert [made.path(id).read_bytes() for id in (0, 1)] == [b"out 0\n", b"out 1\n"]
    assert not made.path(0, "err").exists()


def test_a_reader_that_is_held_up_holds_up_no_run(printing):
    made = printing()
    reader = Reader(made)
    big = os.urandom(1 << 20)
    for id in range(3):
        made.keep(id, big)
        made.end(ended(id))  # returns, though a pipe holds 64 KiB and nobody reads
    got: list[bytes] = []
    reading = threading.Thread(target=lambda: got.append(reader.read_all()))
    reading.start()
    made.close()
    reading.join(WITHIN_S)
    assert got == [3 * big]


def test_a_stream_somebody_made_non_blocking_loses_nothing(printing):
    made = printing()
    reader = Reader(made)
    os.set_blocking(made.fds[0], False)
    big = os.urandom(1 << 20)
    made.keep(0, big)
    made.end(ended(0))
    assert select.select([reader.fd], [], [], WITHIN_S)[0]
    got: list[bytes] = []
    reading = threading.Thread(target=lambda: got.append(reader.read_all()))
    reading.start()
    made.close()
    reading.join(WITHIN_S)
    assert got == [big]


def test_very_many_outputs_wait_for_a_reader_without_a_word(printing):
    made = printing(removes=False)
    reader = Reader(made)
    made.keep(0, b"x" * (1 << 20))
    made.end(ended(0))
    for id in range(1, 40_000):  # more than the bell of the copying thread holds
        made.end(ended(id))
    reader.hang_up()
    made.close()
