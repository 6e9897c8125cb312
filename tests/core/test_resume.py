"""Which old rows count, and how they are kept."""

from __future__ import annotations

import pytest

from overnight.core.resume import (
    NO_PLACE,
    RowsById,
    RowsByText,
    base_of,
    file_and_offset,
    is_success,
)


def place(kind: str, code: int, file: int = 0, offset: int = 0) -> int:
    base = base_of(kind, code, file)
    assert base is not None
    return base + offset


def test_a_success_outranks_any_failure() -> None:
    success = place("N", 0, file=9, offset=10**9)
    assert all(success < place("N", code) for code in (-9, -1, 1, 255))


def test_among_failures_the_lowest_code_counts_then_the_earliest() -> None:
    ordered = [
        place("N", -100, 3), place("N", -9, 2), place("N", 1, 0, 5), place("N", 1, 0, 6),
        place("N", 1, 1, 0), place("N", 255, 0),
    ]  # fmt: skip
    assert ordered == sorted(ordered)


def test_among_successes_the_earliest_counts() -> None:
    assert place("N", 0, 0, 7) < place("S", 0, 0, 8) < place("N", 0, 1, 0)


@pytest.mark.parametrize(
    ("kind", "code", "counts"),
    [
        ("N", 0, True), ("N", 3, True), ("S", 0, True), ("S", 3, True),
        ("Z", 0, True), ("Z", -15, False), ("Z", 1, False),
        ("P", 0, False), ("P", 1, False), ("B", 0, False), ("C", 0, False),
    ],
)  # fmt: skip
def test_rows_count_by_their_kind_and_exit_code(kind: str, code: int, counts: bool) -> None:
    assert (base_of(kind, code, 0) is not None) == counts


@pytest.mark.parametrize("code", [-(10**9), -100, -1, 1, 255, 10**9])
def test_a_place_says_where_its_row_is_and_whether_it_was_a_success(code: int) -> None:
    offset = 2**42 - 1
    failed, done = place("N", code, 4_095, offset), place("N", 0, 4_095, offset)
    assert file_and_offset(failed) == file_and_offset(done) == (4_095, offset)
    assert (is_success(failed), is_success(done)) == (False, True)
    assert failed < NO_PLACE


def test_the_row_that_counts_stays_in_whatever_order_they_come() -> None:
    for order in ([5, 9], [9, 5]):
        rows = RowsById()
        for offset in order:
            rows.note(3, offset, offset)
        assert rows.find(3) == 5
        assert len(rows) == 1


def test_an_id_without_a_row_has_no_place() -> None:
    rows = RowsById()
    rows.note(3, 0, 0)
    assert [rows.find(task_id) for task_id in (2, 4, 10**12)] == [NO_PLACE] * 3


def test_a_text_is_known_until_it_is_forgotten() -> None:
    rows = RowsById()
    rows.note(3, 0, hash(b"true"))
    assert rows.has_text(3, b"true")
    assert not rows.has_text(3, b"false")
    assert not rows.has_text(2, b"true")
    assert not rows.has_text(2, b"")
    rows.forget_texts()
    assert not rows.has_text(3, b"true")
    assert rows.find(3) == 0


def test_a_single_great_id_makes_no_great_table() -> None:
    rows = RowsById()
    rows.note(10**15, 1, 0)
    rows.note(10**15, 2, 0)
    assert (rows.find(10**15), len(rows), len(rows._places)) == (1, 1, 0)


def test_many_great_ids_become_a_table() -> None:
    rows = RowsById()
    ids = range(400_000, 470_000)
    for task_id in ids:
        rows.note(task_id, task_id, 0)
    assert len(rows) == len(ids)
    assert [rows.find(task_id) for task_id in ids] == list(ids)
    assert len(rows._far) == 0


def test_a_row_that_was_too_far_is_not_lost_when_the_table_reaches_it() -> None:
    rows = RowsById()
    end = 1 << 17
    for task_id, place_of_row in ((end, 1), (end - 1, 2), (end, 3)):
        rows.note(task_id, place_of_row, 0)
    assert (rows.find(end), rows.find(end - 1)) == (1, 2)


def by_text(*rows: tuple[int, int, int]) -> RowsByText:
    """Rows of (task id, hash of text, place)."""
    table = RowsByText()
    for task_id, text, place_of_row in rows:
        table.note(task_id, place_of_row, text)
    table.sort()
    return table


def always(place_of_row: int) -> bool:
    return True


def test_by_text_a_task_takes_the_row_of_its_own_id_first() -> None:
    table = by_text((0, 7, 100), (1, 7, 200))
    assert table.take(1, 7, always) == 200
    assert table.take(0, 7, always) == 100
    assert (table.kept, table.moved) == (2, 0)


def test_by_text_a_task_takes_the_row_of_another_id() -> None:
    table = by_text((0, 7, 100))
    assert table.take(5, 7, always) == 100
    assert table.moved == 1


def test_by_text_a_row_goes_to_one_task_at_most() -> None:
    table = by_text((0, 7, 100))
    assert table.take(5, 7, always) == 100
    assert table.take(0, 7, always) == NO_PLACE
    assert table.take(6, 7, always) == NO_PLACE


def test_by_text_several_rows_for_one_task_are_one() -> None:
    table = by_text((0, 7, 300), (0, 7, 100), (0, 7, 200))
    assert len(table) == 1
    assert table.take(4, 7, always) == 100
    assert table.take(5, 7, always) == NO_PLACE


def test_by_text_a_claimed_row_is_left_to_its_task() -> None:
    table = by_text((1, 7, 100), (9, 7, 200))
    for task_id in (0, 1, 2):
        table.claim(task_id, 7, always)
    assert table.expected() == (1, 1)
    assert [table.take(task_id, 7, always) for task_id in (0, 1, 2)] == [200, 100, NO_PLACE]
    assert (table.kept, table.moved) == (1, 1)


def test_by_text_a_row_is_read_back_before_it_is_given() -> None:
    """Two texts may share half a hash."""
    table = by_text((0, 7, 100), (1, 7, 200))
    assert table.take(5, 7, lambda place_of_row: place_of_row == 200) == 200
    assert table.take(5, 8, always) == NO_PLACE
    assert table.take(6, 7, lambda place_of_row: place_of_row == 100) == 100
