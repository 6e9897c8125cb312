"""What a record promises on the bad days of its file system."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from overnight.driver.record import MOST_UNDURABLE, Flushed
from tests.driver.record_kit import RecordBench, ended, row_of, rows_of

LONG = b"true " + b"x" * 1000


@pytest.fixture
def bench(tmp_path: Path):
    bench = RecordBench(tmp_path)
    yield bench
    bench.close()


def failed(result: Flushed, number: int = errno.EIO) -> Flushed:
    """A flush as it would have been on a file system that failed it."""
    return Flushed(result.end, result.number, OSError(number, os.strerror(number)))


# -- a disk that is full ------------------------------------------------------------------


@pytest.mark.needs("mounts")
def test_a_full_disk_is_told_once_and_tried_every_five_seconds(full_folder):
    bench = RecordBench(full_folder.path)
    full_folder.fill(leave_kib=4)
    bench.write(*(ended(id, command=LONG) for id in range(30)))
    assert bench.turn() == [("RecordFailed", "No space left on device")]
    assert bench.record.fault == "No space left on device"
    assert bench.record.next_turn_at() == bench.now + 5.0
    assert bench.turn(after_s=4.9) == []
    assert bench.turn(after_s=0.1) == []
    assert bench.record.next_turn_at() == bench.now + 5.0
    bench.close()


@pytest.mark.needs("mounts")
def test_a_torn_row_is_finished_when_there_is_room_again(full_folder):
    bench = RecordBench(full_folder.path)
    entries = [ended(id, command=LONG) for id in range(30)]
    full_folder.fill(leave_kib=8)
    bench.write(*entries)
    bench.turn()
    torn = bench.status()
    assert rows_of(entries).startswith(torn)
    assert not torn.endswith(b"\n"), "no row was torn"
    bench.write(ended(30))
    full_folder.relieve()
    assert bench.turn(after_s=4.9) == []
    assert bench.status() == torn
    assert bench.turn(after_s=0.1) == []
    assert bench.take_flush() == [("RowsDurable", 31), ("RecordMended",)]
    assert bench.status() == rows_of([*entries, ended(30)])
    bench.close()


@pytest.mark.needs("mounts")
def test_a_flush_that_succeeds_while_the_disk_is_full_still_counts(full_folder):
    bench = RecordBench(full_folder.path)
    bench.write(ended(0))
    bench.turn()
    full_folder.fill()
    bench.write(*(ended(id, command=LONG) for id in range(1, 30)))
    assert bench.turn() == [("RecordFailed", "No space left on device")]
    assert bench.take_flush() == [("RowsDurable", 1)]
    assert bench.record.fault
    bench.close()


@pytest.mark.needs("mounts")
def test_the_task_log_may_be_removed_to_make_room(full_folder):
    bench = RecordBench(full_folder.path)
    bench.write(ended(0))
    bench.turn()
    bench.take_flush()
    full_folder.fill()
    bench.write(*(ended(id, command=LONG) for id in range(1, 30)))
    bench.turn()
    os.unlink(bench.files.tasks)
    full_folder.relieve()
    bench.turn(after_s=5.0)
    assert bench.take_flush() == [("RowsDurable", 30), ("RecordMended",)]
    assert bench.task_log().count(b"\n") == 29
    bench.close()


# -- a flush that fails -------------------------------------------------------------------


def test_after_a_failed_flush_rows_are_written_again_from_the_durable_end(bench):
    bench.write(ended(0))
    bench.turn()
    bench.take_flush()
    durable = len(bench.status())
    bench.write(ended(1))
    bench.turn(after_s=1.0)
    result = bench.result()
    bench.write(ended(2))
    bench.turn()
    assert bench.take(failed(result)) == [("RecordFailed", "Input/output error")]
    os.truncate(bench.files.status, durable + 3)  # the kernel dropped the pages
    assert bench.turn(after_s=5.0) == []
    assert bench.status() == rows_of([ended(0), ended(1), ended(2)])
    assert bench.take_flush() == [("RowsDurable", 3), ("RecordMended",)]


def test_what_a_failed_flush_was_asked_for_is_not_durable(bench):
    bench.write(ended(0))
    bench.turn()
    bench.take(failed(bench.result()))
    assert bench.turn(after_s=1.0) == []
    bench.turn(after_s=4.0)
    assert bench.take(failed(bench.result())) == [("RecordFailed", "Input/output error")]


def test_the_fault_is_not_over_before_a_flush_has_succeeded(bench):
    bench.write(ended(0))
    bench.turn()
    bench.take(failed(bench.result()))
    for _ in range(3):
        assert bench.turn(after_s=5.0) == []
        assert bench.record.fault
        assert bench.take(failed(bench.result())) == [("RecordFailed", "Input/output error")]
    bench.turn(after_s=5.0)
    assert bench.take_flush() == [("RowsDurable", 1), ("RecordMended",)]
    assert bench.record.fault == ""


def test_a_second_flush_is_not_asked_for_before_the_first_ones_result_is_known(bench):
    """The kernel reports a failed write back once: the second flush would succeed."""
    bench.write(ended(0))
    bench.turn()
    first = bench.result()
    bench.write(ended(1))
    bench.record.hasten()
    bench.turn(after_s=1.0)
    bench.take(failed(first))
    bench.turn(after_s=1.0)
    assert bench.results.empty()


def test_a_status_file_that_became_shorter_is_not_written_behind_its_hole(bench):
    bench.write(ended(0), ended(1))
    bench.turn()
    bench.take_flush()
    bench.write(ended(2))
    bench.turn(after_s=1.0)
    bench.take(failed(bench.result()))
    os.truncate(bench.files.status, len(row_of(ended(0))))
    bench.turn(after_s=5.0)
    bench.take_flush()
    assert bench.status() == rows_of([ended(0), ended(2)])
    assert bench.record.loss


@pytest.mark.needs("fuse")
def test_a_real_flush_that_fails_is_mended(slow_folder):
    bench = RecordBench(slow_folder.path)
    slow_folder.fail("EIO", "fsync")
    bench.write(ended(0))
    bench.turn()
    assert bench.take_flush() == [("RecordFailed", "Input/output error")]
    slow_folder.recover()
    bench.turn(after_s=5.0)
    assert bench.take_flush() == [("RowsDurable", 1), ("RecordMended",)]
    assert bench.status() == row_of(ended(0))
    bench.close()


# -- a file system that is away -----------------------------------------------------------


@pytest.mark.needs("fuse")
@pytest.mark.parametrize("error", ["EROFS", "ESTALE", "EDQUOT"])
def test_the_run_goes_on_when_the_file_system_is_back(slow_folder, error):
    bench = RecordBench(slow_folder.path)
    words = os.strerror(getattr(errno, error))
    slow_folder.fail(error, "write", "open", "create")
    bench.write(ended(0))
    assert bench.turn() == [("RecordFailed", words)]
    assert bench.turn(after_s=5.0) == []
    assert bench.record.fault == words
    slow_folder.recover()
    bench.turn(after_s=5.0)
    assert bench.take_flush() == [("RowsDurable", 1), ("RecordMended",)]
    assert bench.status() == row_of(ended(0))
    bench.close()


@pytest.mark.needs("fuse")
def test_trying_again_leaves_no_descriptor_behind(slow_folder):
    bench = RecordBench(slow_folder.path)
    slow_folder.fail("EIO", "write", "flush")
    bench.write(ended(0))
    bench.turn()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(4):
        bench.turn(after_s=5.0)
    assert len(os.listdir("/proc/self/fd")) == before
    slow_folder.recover()
    bench.close()


# -- somebody else's hands ----------------------------------------------------------------


def cut(bench):
    os.truncate(bench.files.status, 10)
    return b"    \t0\t1\t-" + b"\n"


def emptied(bench):
    os.truncate(bench.files.status, 0)
    return b""


def replaced_by(text):
    def replace(bench):
        os.rename(bench.files.status, f"{bench.files.status}.theirs")
        with open(bench.files.status, "wb") as file:
            file.write(text)
        return text
    return replace


@pytest.mark.parametrize("change", [
    cut, emptied, replaced_by(b"short\n"), replaced_by(b"a note\n" * 100), replaced_by(b""),
], ids=["cut", "emptied", "shorter", "longer", "empty"])  # fmt: skip
def test_a_status_file_that_somebody_has_changed_is_gone_on_with_behind_what_is_there(
    bench, change
):
    for id in range(3):
        bench.write(ended(id))
        bench.turn(after_s=1.0)
        bench.take_flush()
    gone = len(bench.status())
    theirs = change(bench)
    bench.write(ended(3))
    events = bench.turn(after_s=1.0) or bench.take_flush()
    assert [name for name, _ in events] == ["RecordFailed"]
    bench.write(ended(4))
    bench.turn(after_s=5.0)
    assert bench.take_flush()[-1] == ("RecordMended",)
    # Into a file that was moved away row 3 was written before that was seen.
    first = 3 if change in (cut, emptied) else 4
    assert bench.status() == theirs + rows_of(map(ended, range(first, 5)))
    assert bench.record.loss >= gone


# -- a flush that does not end ------------------------------------------------------------

MUCH = b"x" * (1 << 20)


def overfill(bench: RecordBench) -> list[tuple]:
    """Ask for a flush whose result is kept back, and record more than may wait for it."""
    bench.write(ended(0))
    bench.turn()
    assert not bench.record.is_behind
    for id in range(1, MOST_UNDURABLE // len(MUCH) + 1):
        bench.write(ended(id, command=MUCH))
    return bench.turn()


def test_a_flush_that_does_not_end_is_a_fault_once_much_waits_for_it(bench):
    assert overfill(bench) == [
        ("RecordFailed", "the file system does not finish what it was given")
    ]


def test_that_fault_ends_by_itself_when_the_flush_returns(bench):
    overfill(bench)
    assert bench.turn(after_s=5.0) == []
    assert bench.take_flush() == [("RowsDurable", 1), ("RecordMended",)]
    bench.write(ended(99))
    bench.turn(after_s=1.0)
    assert bench.take_flush() == [("RowsDurable", 66)]
    assert bench.record.fault == ""
    assert bench.status().endswith(row_of(ended(99)))


def test_that_fault_stays_when_the_flush_fails(bench):
    overfill(bench)
    assert bench.take(failed(bench.result())) == [("RecordFailed", "Input/output error")]
    bench.turn(after_s=5.0)
    assert bench.take_flush() == [("RowsDurable", 65), ("RecordMended",)]
