"""What a shuffled list promises: the list's items, each once, and none beyond its barrier."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overnight.errors import ListRefused
from overnight.model.task import Barrier, PerEngine, Task
from overnight.sources.listfile import ListFile
from overnight.sources.shuffled import Shuffled
from tests.sources.kit import LINES, ODD_LINES, items_of, lists, read_all

SEED = 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my tasks"


def shuffle(path: Path, seed: int = SEED, *, told: list[str] | None = None) -> Shuffled:
    """The list in another order; leniently where somebody is told."""
    is_lenient, warn = told is not None, (told if told is not None else []).append
    source = ListFile(str(path), is_lenient=is_lenient, warn=warn)
    return Shuffled(source, seed, is_lenient=is_lenient, warn=warn)


def parts(items: list) -> list[tuple[list, list]]:
    """Between barriers: tasks in the order of the list, and everything else as it came."""
    found: list[tuple[list, list]] = [([], [])]
    for item in items:
        tasks, others = found[-1]
        (tasks if isinstance(item, Task) else others).append(item)
        if isinstance(item, Barrier):
            found.append(([], []))
    return [(sorted(tasks, key=lambda task: task.id), others) for tasks, others in found]


@given(lists([*LINES, *ODD_LINES]), st.integers(0, 5), st.integers(1, 7))
@example(b"\xef\xbb\xbffirst\nsecond\n", SEED, 3)
@example(b"a\r#DISBATCH BARRIER\rb\nc", SEED, 3)
@example(b"#DISBATCH REPEAT 3 r\rb\n", SEED, 3)
@example(b"\ra\nb\r# no task\n", SEED, 3)
def test_a_part_has_the_tasks_it_has_in_the_list(tmp_path_factory, data, seed, count):
    path = tmp_path_factory.mktemp("lists") / "Tasks"
    path.write_bytes(data)
    source = shuffle(path, seed, told=[])
    items = read_all(source, count)
    source.close()
    assert parts(items) == parts(items_of(data))


def test_the_order_is_another_one(path):
    path.write_bytes(b"".join(b"task %d\n" % id for id in range(100)))
    ids = [task.id for task in read_all(shuffle(path))]
    assert sorted(ids) == list(range(100))
    assert ids != sorted(ids)


def test_the_same_seed_gives_the_same_order_and_another_one_another(path):
    path.write_bytes(b"#DISBATCH REPEAT 30 r\na\nb\n#DISBATCH BARRIER\n" + b"c\n" * 30)
    first, again, other = (read_all(shuffle(path, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_parts_of_one_length_have_orders_of_their_own(path):
    part = b"c\n" * 30
    path.write_bytes(part + b"#DISBATCH BARRIER\n" + part)
    ids = [item.id for item in read_all(shuffle(path))]
    assert ids[:30] != [id - 31 for id in ids[31:]]


def test_a_seed_that_was_chosen_is_told_and_gives_the_same_again(path):
    path.write_bytes(b"c\n" * 30)
    told: list[str] = []
    items = read_all(shuffle(path, -1, told=told))
    (text,) = told
    seed = int(text.split("--shuffle=")[1].split()[0])
    assert read_all(shuffle(path, seed)) == items


def test_per_engine_commands_come_first(path):
    path.write_bytes(b"#DISBATCH PERENGINE START a\n#DISBATCH PERENGINE STOP b\n" + b"c\n" * 9)
    items = read_all(shuffle(path))
    assert items[:2] == [PerEngine(True, 0, 1, b"a"), PerEngine(False, 0, 2, b"b")]


def test_a_line_longer_than_what_is_read_at_once_is_whole(path):
    lines = [b"echo " + letter * size for letter, size in ((b"a", 4096), (b"b", 200_000))]
    path.write_bytes(b"\n".join(lines))
    assert sorted(task.command for task in read_all(shuffle(path))) == lines


def test_the_total_is_that_of_the_list(path):
    path.write_bytes(b"a\n#DISBATCH BARRIER\nb\n")
    source = ListFile(str(path), is_lenient=False, warn=print)
    source.scan()
    assert Shuffled(source, 1, is_lenient=False, warn=print).total == 2


# -- refusing -----------------------------------------------------------------------------


def test_a_suspicious_line_is_refused_before_anything_of_its_part(path):
    path.write_bytes(b"a\n#DISBATCH BARRIER\nb\n#DISBATCH BARIER\nc\n")
    source = shuffle(path)
    items, is_over = source.read(10)
    assert (items[0], items[1].id, len(items)) == (Task(0, 1, -1, b"a"), 1, 2)
    assert not is_over
    for _ in range(2):
        with pytest.raises(ListRefused, match="line 4") as refused:
            source.read(10)
    assert refused.value.kept.startswith("what was started goes on")


def test_a_suspicious_line_in_the_first_part_is_refused_at_once(path):
    path.write_bytes(b"a\nb\n#DISBATCH BARIER\n")
    with pytest.raises(ListRefused) as refused:
        shuffle(path).read(10)
    assert refused.value.kept == "no task was started"


def test_lenient_reading_warns_of_each_suspicious_line_once(path):
    path.write_bytes(b"a\n#DISBATCH BARIER\nb\n#DISBATCHX\n")
    told: list[str] = []
    assert len(read_all(shuffle(path, told=told))) == 3
    assert [text.split(": ")[0] for text in told] == [f"{path}, line 2", f"{path}, line 4"]


# -- a list that changes under its run ------------------------------------------------------


def test_a_line_that_is_not_where_it_was_is_not_run(path):
    path.write_bytes(b"".join(b"rm scratch/%03d\n" % id for id in range(100)))
    source = shuffle(path)
    before = source.read(10)[0]
    path.write_bytes(b"# edited\n" + b"".join(b"rm scratch/%03d\n" % id for id in range(100)))
    with pytest.raises(ListRefused, match="is not where it was") as refused:
        read_all(source)
    assert refused.value.where == str(path)
    assert refused.value.kept.startswith("what was started goes on")
    assert len(before) == 10


def test_a_list_that_shrinks_is_not_run_any_further(path):
    path.write_bytes(b"a\n" * 100)
    source = shuffle(path)
    source.read(10)
    os.truncate(path, 0)
    with pytest.raises(ListRefused, match="the list was changed"):
        read_all(source)


def test_lines_added_behind_a_barrier_run_and_the_change_is_told(path):
    path.write_bytes(b"a\n#DISBATCH BARRIER\nb\n")
    told: list[str] = []
    source = shuffle(path, told=told)
    source.read(1)
    with open(path, "ab") as file:
        file.write(b"c\n")
    assert {task.command for task in read_all(source) if isinstance(task, Task)} == {b"b", b"c"}
    assert "was changed while it is being run" in told[0]


# -- memory -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"mytool --input data/0000.fits\n", id="tasks"),
        pytest.param(b"# about the next one\nmytool --input data/0000.fits\n", id="comments"),
        pytest.param(b"mytool --input data/0000.fits\r\n", id="CRLF"),
    ],
)
def test_a_line_costs_eight_bytes(path, line):
    count = 100_000
    path.write_bytes(line * count)
    source = shuffle(path)
    tracemalloc.start()
    try:
        source.read(1)
        bytes_a_line = tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()
    source.close()
    assert bytes_a_line < 10


def test_a_repeat_costs_the_same_whatever_its_length(path):
    path.write_bytes(b"#DISBATCH REPEAT 1000000000000 r\n")
    ids = {task.id for task in shuffle(path).read(5)[0]}
    assert len(ids) == 5
