"""Random histories of a record: rows, turns, disks that fill up, flushes that fail.

A write fault is a real one: a limit on the size of files lets a write end short and the next
one fail. After a flush that failed everything that was not durable is overwritten, as if the
kernel had dropped its pages.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from overnight.driver.record import Flushed
from overnight.formats import statusfile
from tests.driver.record_kit import RecordBench, ended, file_size_limit, row_of, skipped


class RecordHistory(RuleBasedStateMachine):
    """A record on a disk with bad days."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.bench = RecordBench(self.folder)
        self.rows: list[bytes] = []  # of each entry, in the order given; empty where it has none
        self.flushed: Flushed | None = None  # a flush is over, and the record not told
        self.on_disk = b""  # the file as the last flush that succeeded found it
        self.durable = 0
        self.is_faulty = False

    def teardown(self) -> None:
        self.bench.close()
        shutil.rmtree(self.folder)

    # -- what happens ---------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.take_turn()

    @rule(kinds=st.lists(st.sampled_from(["row", "attempt", "skipped", "known"]), max_size=4))
    def write(self, kinds: list[str]) -> None:
        for kind in kinds:
            id = len(self.rows)
            entry, row = {
                "row": (ended(id), row_of(ended(id))),
                "attempt": (ended(id, code=1, settles=False), b""),
                "skipped": (skipped(id, b"   S\t%d" % id), b"   S\t%d\n" % id),
                "known": (skipped(id, None), b""),
            }[kind]
            self.bench.write(entry)
            self.rows.append(row)

    @rule(after_s=st.sampled_from([0.0, 0.05, 0.2, 5.0]))
    def turn(self, after_s: float) -> None:
        self.take_turn(after_s)

    @rule(room=st.integers(0, 120), after_s=st.sampled_from([0.0, 0.2, 5.0]))
    def turn_on_a_full_disk(self, room: int, after_s: float) -> None:
        with file_size_limit(len(self.bench.status()) + room):
            self.take_turn(after_s)

    @rule()
    def somebody_waits(self) -> None:
        self.bench.record.hasten()

    def a_flush_is_under_way(self) -> bool:
        return self.bench.record._is_flushing

    @precondition(a_flush_is_under_way)
    @rule()
    def flush_succeeds(self) -> None:
        result = self.bench.result()
        self.on_disk = self.bench.status()[: result.end]
        self.note(self.bench.take(result))

    @precondition(a_flush_is_under_way)
    @rule()
    def flush_fails(self) -> None:
        result = self.bench.result()
        with open(self.bench.files.status, "r+b") as file:
            file.seek(len(self.on_disk))
            file.write(b"?" * (os.fstat(file.fileno()).st_size - len(self.on_disk)))
        fault = OSError(5, "Input/output error")
        self.note(self.bench.take(Flushed(result.end, result.number, fault)))

    # -- what must hold -------------------------------------------------------------------

    def note(self, events: list[tuple]) -> None:
        for name, *fields in events:
            if name == "RowsDurable":
                self.check_durable(fields[0])
            elif name == "RecordFailed":
                self.is_faulty = True
            elif name == "RecordMended":
                assert self.is_faulty, "mended, and was not broken"
                self.is_faulty = False
        assert self.is_faulty == bool(self.bench.record.fault)

    def take_turn(self, after_s: float = 0.0) -> None:
        self.note(self.bench.turn(after_s))
        if not self.is_faulty:
            assert self.bench.status() == b"".join(self.rows), "not all rows were written"

    def check_durable(self, number: int) -> None:
        assert number > self.durable, "said again, or taken back"
        self.durable = number
        promised = b"".join(self.rows[:number])
        assert self.on_disk.startswith(promised), "rows are called durable that were not flushed"

    def teardown_on_a_good_day(self) -> None:
        for _ in range(4):
            self.take_turn(after_s=5.0)
            if self.a_flush_is_under_way():
                self.flush_succeeds()
        assert self.durable == len(self.rows)
        assert self.bench.status() == b"".join(self.rows)
        assert len(list(statusfile.read_rows([self.bench.status()]))) == sum(
            row.startswith(b"    \t") for row in self.rows
        )


class GoodEnd(RecordHistory):
    """Every history ends on a day when the disk is well."""

    def teardown(self) -> None:
        try:
            self.teardown_on_a_good_day()
        finally:
            super().teardown()


TestRecordHistories = GoodEnd.TestCase
TestRecordHistories.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, print_blob=True
)
