"""What a record promises while its file system is well."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from overnight.driver import flusher
from overnight.errors import InvariantBroken, PrefixTaken
from overnight.formats import statusfile
from tests.driver.record_kit import (
    RecordBench,
    barrier_met,
    command_ended,
    ended,
    row_of,
    rows_of,
    skipped,
)


@pytest.fixture
def bench(tmp_path: Path):
    bench = RecordBench(tmp_path)
    yield bench
    bench.close()


def writes() -> int:
    """Write calls of this thread so far."""
    counts = dict(
        line.split(": ") for line in Path("/proc/thread-self/io").read_text().splitlines()
    )
    return int(counts["syscw"])


def test_rows_are_in_the_file_after_the_turn_in_the_order_given(bench):
    entries = [ended(1), ended(0, code=3)]
    bench.write(*entries)
    bench.turn()
    assert bench.status() == rows_of(entries)


def test_all_entries_of_a_turn_are_one_write_a_file(bench):
    bench.write(ended(0))
    bench.turn()
    bench.result()  # kept back: the next turn asks for no flush
    before = writes()
    for id in range(1, 500):
        bench.write(ended(id))
    bench.turn(after_s=1.0)
    assert writes() - before == 2


def test_a_turn_with_nothing_to_write_writes_nothing(bench):
    before = writes()
    bench.turn()
    assert writes() == before


def test_each_kind_of_entry_has_its_row(bench):
    old = b"   S\t3\t4\t-1\tn1\t9\t0\t0.100\t1.000\t1.100\t0\t''\t0\t''\ttrue"
    bench.write(command_ended(0), ended(1), barrier_met(2), skipped(3, old))
    bench.turn()
    rows = list(statusfile.read_rows([bench.status()]))
    assert [(row.kind, row.id) for row in rows] == [("P", 0), ("N", 1), ("B", 2), ("S", 3)]
    assert bench.status().endswith(old + b"\n")


def test_the_row_of_a_barrier_says_when_it_was_reached_and_how_long_it_was_waited_for(bench):
    bench.write(barrier_met(7))
    bench.turn()
    (row,) = statusfile.read_rows([bench.status()])
    assert (row.started_at, row.elapsed_s, row.finished_at) == (1000.0, 2.5, 1002.5)


def test_a_skipped_task_whose_row_stands_already_gets_no_second_one(bench):
    bench.write(skipped(0, None), ended(1))
    bench.turn()
    assert bench.status() == row_of(ended(1))


def test_every_attempt_has_a_line_in_the_task_log_and_only_the_last_one_a_row(bench):
    bench.write(ended(4, code=1, settles=False), ended(4, attempt=2))
    bench.turn()
    lines = [json.loads(line) for line in bench.task_log().splitlines()]
    assert [(line["attempt"], line["settled"]) for line in lines] == [(1, False), (2, True)]
    assert bench.status() == row_of(ended(4, attempt=2))


def test_what_is_no_entry_is_refused(bench):
    with pytest.raises(InvariantBroken, match="not an entry"):
        bench.write("a row")


# -- durable ------------------------------------------------------------------------------


def test_rows_count_as_durable_when_their_flush_is_over(bench):
    bench.write(ended(0), ended(1))
    assert bench.turn() == []
    assert bench.take_flush() == [("RowsDurable", 2)]


def test_rows_written_during_a_flush_wait_for_the_next(bench):
    bench.write(ended(0))
    bench.turn()
    bench.write(ended(1))
    bench.turn(after_s=1.0)
    assert bench.take_flush() == [("RowsDurable", 1)]
    bench.turn(after_s=1.0)
    assert bench.take_flush() == [("RowsDurable", 2)]


def test_a_flush_is_asked_for_every_tenth_of_a_second(bench):
    bench.write(ended(0))
    bench.turn()
    bench.take_flush()
    bench.write(ended(1))
    bench.turn(after_s=0.0625)
    assert bench.record.next_turn_at() == pytest.approx(1000.1)
    bench.turn(after_s=0.0625)
    assert bench.take_flush() == [("RowsDurable", 2)]


def test_somebody_who_waits_has_the_flush_at_once(bench):
    bench.write(ended(0))
    bench.turn()
    bench.take_flush()
    bench.write(ended(1))
    bench.turn()
    bench.record.hasten()
    bench.turn()
    assert bench.take_flush() == [("RowsDurable", 2)]


def test_a_wish_made_during_a_flush_is_met_after_it(bench):
    bench.write(ended(0))
    bench.turn()
    bench.write(ended(1))
    bench.record.hasten()
    bench.turn()
    bench.take_flush()
    bench.turn()
    assert bench.take_flush() == [("RowsDurable", 2)]


def test_entries_without_a_row_are_durable_with_what_came_before(bench):
    bench.write(ended(0))
    bench.turn()
    bench.write(ended(1, code=1, settles=False))
    assert bench.turn() == []
    assert bench.take_flush() == [("RowsDurable", 1)]
    assert bench.turn() == [("RowsDurable", 2)]


def test_what_is_durable_is_said_once(bench):
    bench.write(skipped(0, None))
    assert bench.turn() == [("RowsDurable", 1)]
    assert bench.turn(after_s=1.0) == []


def test_a_record_with_nothing_to_do_asks_for_no_turn(bench):
    bench.write(ended(0))
    bench.turn()
    assert bench.record.next_turn_at() is None
    bench.take_flush()
    assert bench.record.next_turn_at() is None


def test_rows_are_written_while_a_flush_is_under_way(bench, monkeypatch):
    # FUSE, the slow file system at hand, lets writes wait for a flush: only the call is slow.
    goes_on = threading.Event()
    monkeypatch.setattr(flusher, "datasync", lambda fd: goes_on.wait(60))
    bench.write(ended(0))
    bench.turn()
    for id in range(1, 4):
        bench.write(ended(id))
        assert bench.turn(after_s=1.0) == []
        assert bench.status() == rows_of(map(ended, range(id + 1)))
    assert bench.results.empty()
    goes_on.set()
    assert bench.take_flush() == [("RowsDurable", 1)]


def test_a_flush_that_took_long_is_not_asked_for_again_at_once(bench):
    bench.write(ended(0))
    bench.turn()
    bench.now += 1.5
    bench.take_flush()
    bench.write(ended(1))
    bench.turn(after_s=1.0)
    assert bench.record.next_turn_at() == bench.now + 0.5
    bench.record.hasten()
    bench.turn()
    assert bench.take_flush() == [("RowsDurable", 2)]


# -- files --------------------------------------------------------------------------------


def test_a_status_file_that_lies_there_is_refused_and_untouched(tmp_path):
    (tmp_path / "run_status.txt").write_bytes(b"an earlier run's")
    with pytest.raises(PrefixTaken) as refused:
        RecordBench(tmp_path)
    assert refused.value.where == f"{tmp_path}/run_status.txt"
    assert f"-r {tmp_path}/run_status.txt" in refused.value.do
    assert (tmp_path / "run_status.txt").read_bytes() == b"an earlier run's"


def test_a_record_that_cannot_be_made_leaves_no_status_file(tmp_path):
    (tmp_path / "run_tasks.jsonl").mkdir()
    with pytest.raises(IsADirectoryError):
        RecordBench(tmp_path)
    assert not (tmp_path / "run_status.txt").exists()


def test_a_record_that_cannot_be_continued_leaves_the_status_file(tmp_path):
    (tmp_path / "run_tasks.jsonl").mkdir()
    (tmp_path / "run_status.txt").write_bytes(row_of(ended(0)))
    with pytest.raises(IsADirectoryError):
        RecordBench(tmp_path, goes_on=True)
    assert (tmp_path / "run_status.txt").read_bytes() == row_of(ended(0))


@pytest.mark.needs("mounts")
def test_a_read_only_file_system_is_told_before_anything_starts(frozen_folder):
    frozen_folder.freeze()
    with pytest.raises(OSError, match="Read-only file system"):
        RecordBench(frozen_folder.path)


def test_a_header_stands_first_in_a_new_file(tmp_path):
    bench = RecordBench(tmp_path, has_header=True)
    bench.write(ended(0))
    bench.turn()
    assert bench.status() == statusfile.HEADER + row_of(ended(0))
    bench.close()


def test_a_header_is_not_put_into_a_file_that_goes_on(tmp_path):
    (tmp_path / "run_status.txt").write_bytes(row_of(ended(0)))
    bench = RecordBench(tmp_path, has_header=True, goes_on=True)
    bench.write(ended(1))
    bench.turn()
    assert bench.status() == rows_of([ended(0), ended(1)])
    bench.close()


# -- after a crash ------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_goes_on_with_whole_rows(tmp_path):
    before = [ended(0), ended(1, code=2, command=b"a\tb\tc"), ended(2, command=b"x\xff")]
    whole = statusfile.HEADER + rows_of(before)
    status = tmp_path / "run_status.txt"
    for cut in range(len(whole) + 1):
        status.write_bytes(whole[:cut])
        bench = RecordBench(tmp_path, goes_on=True)
        bench.write(ended(3))
        bench.turn()
        bench.close()
        after = bench.status()
        assert after.startswith(whole[:cut]), f"cut at {cut}: something was changed"
        assert after.endswith(b"\n" + row_of(ended(3))) or cut == 0
        uncut = whole[: whole.rfind(b"\n", 0, cut) + 1].count(b"\n") - 1
        ids = [row.id for row in statusfile.read_rows([after])]
        assert ids == [*range(max(uncut, 0)), 3], f"cut at {cut}"


def test_a_task_log_cut_in_a_line_goes_on_in_a_line_of_its_own(tmp_path):
    (tmp_path / "run_tasks.jsonl").write_bytes(b'{"task":0}\n{"tas')
    bench = RecordBench(tmp_path)
    bench.write(ended(1))
    bench.turn()
    bench.close()
    first, torn, last = bench.task_log().splitlines()
    assert (first, torn) == (b'{"task":0}', b'{"tas')
    assert json.loads(last)["task"] == 1


def test_a_torn_line_longer_than_a_block_is_closed(tmp_path):
    torn = b"\t".join([b"   "] + [b"1"] * 13 + [b"x" * 200_000])
    (tmp_path / "run_status.txt").write_bytes(row_of(ended(0)) + torn)
    bench = RecordBench(tmp_path, goes_on=True)
    bench.turn()
    bench.close()
    assert bench.status() == row_of(ended(0)) + torn + statusfile.closing(torn)
