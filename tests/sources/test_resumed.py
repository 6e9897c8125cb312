"""What a resumed list promises: tasks done before are known as such, in their place."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest

from overnight.errors import ResumeRefused
from overnight.formats import statusfile, taskfile
from overnight.model.outcome import Exited
from overnight.model.report import Report
from overnight.model.task import Barrier, DoneBefore, Task
from overnight.sources.earlier import Earlier
from overnight.sources.listfile import ListFile
from overnight.sources.resumed import MOST_ROW_BYTES, Resumed
from tests.sources.kit import read_all


def task(id: int, command: bytes = b"true") -> Task:
    return Task(id, id + 1, -1, command)


@pytest.fixture
def resume(tmp_path: Path):
    """Resume a list that an earlier run has recorded these tasks of, with their exit codes."""

    def resume(data: bytes, *done: tuple[Task, int], retry: bool = False) -> Resumed:
        (tmp_path / "Tasks").write_bytes(data)
        status = tmp_path / "run_status.txt"
        status.write_bytes(b"".join(
            statusfile.task_row(task, Report(task.id, 1, Exited(code), 9, 1.0, 0.1), "n1")
            for task, code in done
        ))
        source = ListFile(str(tmp_path / "Tasks"), is_lenient=False, warn=print)
        source.scan()
        return Resumed(source, Earlier([str(status)], retry=retry))

    return resume


def test_what_was_done_stands_in_the_place_of_its_task(resume):
    source = resume(b"true\ntrue\n#DISBATCH BARRIER\ntrue\n", (task(1), 3))
    first, second, third, fourth = read_all(source)
    assert (first, fourth) == (task(0), task(3))
    assert isinstance(third, Barrier)
    assert isinstance(second, DoneBefore)
    assert (second.id, second.line, second.count, second.code) == (1, 2, 1, 3)
    assert second.rows.startswith(b"R  S\t1\t")
    source.close()


def test_what_was_done_in_a_row_is_one_item_and_what_is_left_is_found_between(resume):
    lines = b"# head\n" + b"true\n" * 1_000 + b"#DISBATCH REPEAT 3 true\n"
    left = {0, 500, 501, 999}
    source = resume(
        lines, *((Task(id, id + 2, -1, b"true"), 0) for id in range(1_000) if id not in left)
    )
    items = read_all(source, 3)
    run = [item.id for item in items if isinstance(item, Task)]
    assert run == [*sorted(left), *range(1_000, 1_003)]
    assert [(item.id, item.line, item.count) for item in items if isinstance(item, DoneBefore)] == [
        (1, 3, 1), (2, 4, 1),  # read with the head of the file
        (3, 5, 497), (502, 504, 497),
    ]
    rows = b"".join(item.rows for item in items if isinstance(item, DoneBefore))
    assert rows.count(b"\n") == rows.count(b"   S\t") == 996
    source.close()


def test_one_read_gives_a_bounded_size_of_rows(resume):
    command = b"x" * 1_000
    source = resume(
        b"\n" + (command + b"\n") * 5_000,
        *((Task(id, id + 2, -1, command), 0) for id in range(5_000)),
    )
    sizes, is_over = [], False
    while not is_over:
        items, is_over = source.read(10_000)
        sizes.append(sum(len(item.rows) for item in items))
    assert max(sizes) < 2 * MOST_ROW_BYTES < sum(sizes)
    source.close()


def test_a_line_that_is_changed_during_a_resume_is_not_skipped_as_done(resume, tmp_path):
    text = b"true".ljust(999)
    tasks = [task(id, text) for id in range(3_000)]  # more than is read ahead
    source = resume((text + b"\n") * 3_000, *((each, 0) for each in tasks))
    source._earlier.check(tasks)
    source.read(1)
    with open(tmp_path / "Tasks", "r+b") as file:
        file.seek(2_990_000)
        file.write(b"rm *")
    os.utime(tmp_path / "Tasks", (1, 1))
    with pytest.raises(ResumeRefused, match="task 2990 was"):
        read_all(source)


class Counted(array):
    """An array that counts the elements it is asked for."""

    touched = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        Counted.touched += len(found) if isinstance(key, slice) else 1
        return found


@pytest.mark.parametrize("done", [[], range(0, 6_000, 2), range(3_000)], ids=len)
@pytest.mark.parametrize("count", [1, 64, 4096])
def test_each_task_of_a_resume_is_looked_at_about_once(resume, monkeypatch, done, count):
    lines = []

    def plain_end(them, begin, was=taskfile._plain_end):
        end = was(them, begin)
        lines.append(end - begin)
        return end

    monkeypatch.setattr(taskfile, "_plain_end", plain_end)
    source = resume(b"\n" + b"true\n" * 6_000, *((task(id), 0) for id in (*done, 5_999)))
    rows = source._earlier._by_id
    rows._places = Counted("Q", rows._places)
    Counted.touched = 0
    read_all(source, count)
    assert Counted.touched < 6 * 6_000
    assert sum(lines) < 2 * 6_000
    source.close()


def test_what_failed_is_a_task_again_where_that_is_wanted(resume):
    items = read_all(resume(b"true\ntrue\n", (task(0), 3), (task(1), 0), retry=True))
    assert items[0] == task(0)
    assert isinstance(items[1], DoneBefore)


def test_the_total_counts_what_was_done(resume):
    assert resume(b"true\ntrue\n", (task(0), 0)).total == 2


def test_it_is_waited_for_as_for_its_list(resume):
    assert resume(b"true\n").fileno() is None


def test_what_comes_before_a_task_that_does_not_fit_is_given_first(resume):
    source = resume(b"a\nb\nc\n", (task(1, b"another b"), 0))
    assert source.read(10) == ([task(0, b"a")], False)
    for _ in range(2):
        with pytest.raises(ResumeRefused, match="another b") as refused:
            source.read(10)
    assert refused.value.kept.startswith("what was started goes on")


def test_a_first_task_that_does_not_fit_is_refused_at_once(resume):
    with pytest.raises(ResumeRefused) as refused:
        resume(b"a\nb\n", (task(0, b"another a"), 0)).read(10)
    assert refused.value.kept == "nothing was run"


def test_the_end_of_a_list_is_not_said_in_front_of_a_refusal(resume):
    source = resume(b"a\nb", (task(1, b"another b"), 0))
    assert source.read(10)[1] is False


def test_closing_leaves_no_file_open(resume):

    before = len(os.listdir("/proc/self/fd"))
    resume(b"a\n", (task(0, b"a"), 0)).close()
    assert len(os.listdir("/proc/self/fd")) == before
