"""Random rows, held against a dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overnight.core.resume import NO_PLACE, RowsById, RowsByText

ids = st.one_of(st.integers(0, 40), st.sampled_from([2**17 - 1, 2**17, 10**7, 10**12]))
rows = st.lists(st.tuples(ids, st.integers(0, 2**40)), max_size=40)


@given(rows)
def test_the_lesser_place_stays_for_each_id(noted: list[tuple[int, int]]) -> None:
    table = RowsById()
    least: dict[int, int] = {}
    for task_id, place in noted:
        table.note(task_id, place, 0)
        least[task_id] = min(place, least.get(task_id, place))
    assert {task_id: table.find(task_id) for task_id in least} == least
    assert len(table) == len(least)
    assert all(table.find(task_id) == NO_PLACE for task_id in range(60) if task_id not in least)


small = st.tuples(st.integers(0, 6), st.integers(0, 2))  # task id, text


@given(
    st.dictionaries(small, st.none(), max_size=10),
    st.lists(st.integers(0, 2), max_size=8),
    st.booleans(),
)
def test_by_text_as_many_tasks_are_found_as_there_are_rows_for_them(
    old: dict[tuple[int, int], None], texts: list[int], whole_list_is_seen: bool
) -> None:
    """Every row goes to one task with its text, and none is left while such a task is."""
    table = RowsByText()
    text_at = {}
    for place, (task_id, text) in enumerate(old):
        table.note(task_id, place, text)
        text_at[place] = text
    table.sort()

    def is_row_of(text: int):  # type: ignore[no-untyped-def]  # a closure of the test
        return lambda place: text_at[place] == text

    if whole_list_is_seen:
        for task_id, text in enumerate(texts):
            table.claim(task_id, text, is_row_of(text))
        expected = table.expected()
    places = [table.take(task_id, text, is_row_of(text)) for task_id, text in enumerate(texts)]
    found = [place for place in places if place != NO_PLACE]
    assert len(set(found)) == len(found)
    assert all(
        place == NO_PLACE or text_at[place] == text
        for place, text in zip(places, texts, strict=True)
    )
    for text in range(3):
        rows_of_text = sum(one == text for one in text_at.values())
        assert sum(place != NO_PLACE and text_at[place] == text for place in places) == min(
            rows_of_text, texts.count(text)
        )
    if whole_list_is_seen:
        assert expected == (table.kept, table.moved)
        assert table.kept == sum((task_id, text) in old for task_id, text in enumerate(texts))
