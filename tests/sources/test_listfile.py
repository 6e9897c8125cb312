"""What a list file promises: lazy, whole, and refused where a line is suspicious."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overnight
from overnight.errors import ListRefused, UsageError
from overnight.formats.taskfile import SHOWN_FINDINGS
from overnight.model.task import Task
from overnight.sources.lines import KEPT_WHEN_BEGUN
from overnight.sources.listfile import BLOCK, BLOCKS_AHEAD, ListFile
from tests.sources.kit import LINES, ODD_LINES, items_of, lists, read_all


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my tasks"


class Told(list):
    """What was told, as a list of texts."""

    def open(self, path: Path, *, is_lenient: bool = False) -> ListFile:
        return ListFile(str(path), is_lenient=is_lenient, warn=self.append)


@pytest.fixture
def told() -> Told:
    return Told()


@given(lists([*LINES, *ODD_LINES]), st.integers(1, 7))
def test_a_list_gives_what_its_lines_mean(tmp_path_factory, data, count):
    path = tmp_path_factory.mktemp("lists") / "Tasks"
    path.write_bytes(data)
    source = Told().open(path, is_lenient=True)
    source.scan()
    items = read_all(source, count)
    source.close()
    assert items == items_of(data)
    assert source.total == sum(isinstance(item, Task) for item in items)


@given(lists([*LINES, *ODD_LINES]), st.integers(1, 7), st.lists(st.integers(0, 5), max_size=30))
def test_plain_tasks_can_be_taken_many_at_once(tmp_path_factory, data, count, takes):
    path = tmp_path_factory.mktemp("lists") / "Tasks"
    path.write_bytes(data)
    source = Told().open(path, is_lenient=True)
    items, is_over = [], False
    while not is_over:
        take = takes.pop() if takes else 0
        plain = source.take_plain() if take > 2 else None
        if plain is not None:
            items += map(plain.task, range(len(plain.commands)))
        else:
            some, is_over = source.read(count)
            items += some
    source.close()
    assert items == items_of(data)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing\n", b"\xef\xbb\xbf"])
def test_a_list_without_tasks_is_over_at_once(path, told, data):
    path.write_bytes(data)
    source = told.open(path)
    source.scan()
    assert source.read(10) == ([], True)
    assert source.total == 0


def test_the_end_is_said_with_the_last_item_where_more_were_wanted(path, told):
    path.write_bytes(b"a\nb\n")
    assert told.open(path).read(3)[1] is True


def test_a_list_is_not_over_in_the_middle_of_a_repeat(path, told):
    path.write_bytes(b"#DISBATCH REPEAT 3 r\n")
    source = told.open(path)
    assert source.read(2)[1] is False
    assert [task.id for task in source.read(2)[0]] == [2]


def test_a_list_that_is_not_there_cannot_be_opened(tmp_path, told):
    with pytest.raises(FileNotFoundError):
        told.open(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        told.open(tmp_path)


def test_what_can_be_read_once_is_not_looked_through(tmp_path, told):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="can only be read as a stream"):
        told.open(pipe)


# -- refusing -----------------------------------------------------------------------------


def test_a_scan_refuses_before_anything_is_given(path, told):
    path.write_bytes(b"a\n#DISBATCH BARIER\nb\n")
    source = told.open(path)
    with pytest.raises(ListRefused) as refused:
        source.scan()
    assert f"{path}, line 2" in refused.value.what
    assert "#DISBATCH BARIER" in refused.value.what
    assert refused.value.kept == "no task was started"


def test_a_scan_tells_every_finding_up_to_a_screenful(path, told):
    path.write_bytes(b"#DISBATCH BARIER\n" * 1000)
    with pytest.raises(ListRefused) as refused:
        told.open(path).scan()
    assert refused.value.what.count("\n") == SHOWN_FINDINGS
    assert f"{1000 - SHOWN_FINDINGS} more such lines" in refused.value.what


def test_a_list_beyond_the_limit_is_looked_through_ahead_of_what_is_read(path, told):
    first = b"a\n" * (BLOCKS_AHEAD * BLOCK // 2)
    path.write_bytes(first + b"b\n" * 10 + b"#DISBATCH BARIER\nc\n")
    source = told.open(path)
    source.scan(limit=10)
    assert source.read(1) == ([Task(0, 1, -1, b"a")], False)
    assert source.total is None
    with pytest.raises(ListRefused, match="BARIER") as refused:
        source.read(1)
    assert refused.value.kept == KEPT_WHEN_BEGUN


def test_a_long_list_that_was_looked_through_is_counted(path, told):
    path.write_bytes(b"a\n" * 100)
    source = told.open(path)
    source.scan(limit=10)
    source.read(1)
    assert source.total == 100


def test_a_suspicious_first_line_is_refused_by_the_first_read(path, told):
    path.write_bytes(b"#DISBATCH BARIER\na\n")
    source = told.open(path)
    source.scan(limit=0)
    with pytest.raises(ListRefused):
        source.read(10)


def test_a_suspicious_last_line_does_not_end_the_list_in_silence(path, told):
    path.write_bytes(b"a\n#DISBATCH BARIER")
    source = told.open(path)
    assert source.read(10) == ([Task(0, 1, -1, b"a")], False)
    with pytest.raises(ListRefused):
        source.read(10)


def test_lenient_reading_warns_of_each_suspicious_line_once(path, told):
    path.write_bytes(b"a\n#DISBATCH BARIER\nb\n #DISBATCH BARRIER\n")
    source = told.open(path, is_lenient=True)
    source.scan()
    assert [task.command for task in read_all(source, 1)] == [b"a", b"b"]
    assert [text.split(": ")[0] for text in told] == [f"{path}, line 2", f"{path}, line 4"]


# -- a list that changes under its run ------------------------------------------------------


def test_lines_that_are_added_run_and_the_change_is_told(path, told):
    path.write_bytes(b"a\nb\n")
    source = told.open(path)
    source.read(1)
    with open(path, "ab") as file:
        file.write(b"c\n")
    assert [task.command for task in read_all(source)] == [b"b", b"c"]
    assert len(told) == 1
    assert "was changed while it is being run" in told[0]


def test_many_changes_are_told_once(path, told):
    path.write_bytes(b"a\n" * 50)
    source = told.open(path)
    for _ in range(20):
        with open(path, "ab") as file:
            file.write(b"b\n")
        source.read(1)
    assert len(told) == 1


def test_a_list_that_shrinks_ends_and_is_told(path, told):
    path.write_bytes(b"a\n" * 1_000_000)
    source = told.open(path)
    source.read(1)
    os.truncate(path, 2)
    items = read_all(source, 1000)
    assert len(items) < 999_999
    assert "was changed" in told[0]


def test_a_list_that_was_changed_in_place_is_told(path, told):
    path.write_bytes(b"a\nb\n")
    source = told.open(path)
    source.read(1)
    with open(path, "r+b") as file:
        file.write(b"x\ny\n")
    os.utime(path, ns=(1, 1))  # a clock too coarse to show the difference is not the point
    read_all(source)
    assert "was changed" in told[0]


def test_a_list_that_an_editor_replaced_is_told_and_the_old_one_runs(path, told, tmp_path):
    path.write_bytes(b"a\nb\n")
    source = told.open(path)
    (tmp_path / "new").write_bytes(b"x\ny\nz\n")
    os.replace(tmp_path / "new", path)
    assert [task.command for task in read_all(source)] == [b"a", b"b"]
    (text,) = told
    assert "is another file now" in text


def test_a_list_that_was_removed_runs_on_without_a_word(path, told):
    path.write_bytes(b"a\nb\n")
    source = told.open(path)
    path.unlink()
    assert len(read_all(source)) == 2
    assert told == []


def test_a_list_that_stays_as_it_is_is_read_without_a_word(path, told):
    path.write_bytes(b"a\n" * 1000)
    source = told.open(path)
    source.scan()
    read_all(source, 10)
    assert told == []


# -- memory -------------------------------------------------------------------------------

LINE = b"true # one of very many".ljust(99) + b"\n"


def test_a_list_is_read_lazily(path, told):
    path.write_bytes(LINE * 200_000)
    source = told.open(path)
    source.scan()
    tracemalloc.start()
    try:
        for _ in range(100):
            source.read(1000)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


HUGE = """
import sys
from overnight.sources.listfile import ListFile

def peak():  # not getrusage: that counts what the parent had when it forked
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0])

source = ListFile(sys.argv[1], is_lenient=False, warn=print)
source.scan()
before = peak()
count, is_over = 0, False
while count < 300_000 and not is_over:
    items, is_over = source.read(4096)
    count += len(items)
print(source.total, before, peak())
"""


@pytest.mark.slow
def test_two_million_lines_cost_no_memory(path):
    with open(path, "wb") as file:
        for _ in range(200):
            file.write(LINE * 10_000)
    answer = subprocess.run(
        [sys.executable, "-c", HUGE, str(path)], capture_output=True, text=True, timeout=120,
        check=True, env={**os.environ, "PYTHONPATH": str(Path(overnight.__file__).parents[1])},
    ).stdout.split()
    total, scanned_kib, read_kib = map(int, answer)
    assert total == 2_000_000
    assert scanned_kib < 40_000
    assert read_kib < 40_000


def test_half_a_line_that_is_being_written_is_not_read(path, told):
    path.write_bytes(b"first\n")
    source = told.open(path)
    assert [item.command for item in source.read(10)[0]] == [b"first"]
    with open(path, "ab", buffering=0) as file:
        file.write(b"rm -rf /data/")
        assert source.read(10) == ([], False)
        file.write(b"old\nlast")
        items, is_over = source.read(10)
        assert ([item.command for item in items], is_over) == ([b"rm -rf /data/old"], False)
    os.utime(path, (1, 1))  # nobody has written to it for long
    items, is_over = source.read(10)
    assert ([item.command for item in items], is_over) == ([b"last"], True)
    source.close()
