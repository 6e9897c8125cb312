"""What Slurm says of an allocation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.slurm import per_node_counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("4", [4]),
        ("40,8", [40, 8]),
        ("3(x2),1", [3, 3, 1]),
        ("2(x1)", [2]),
        ("40,128(x3)", [40, 128, 128, 128]),
        ("0,2", [0, 2]),
        (" 4(x2)\n", [4, 4]),
    ],
)
def test_a_list_gives_one_number_for_each_node(text: str, counts: list[int]) -> None:
    assert per_node_counts(text) == counts


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ",", "1,", ",1", "1,,2", "x", "-1", "+1", "1.5", "2(3)", "2(x)", "2(x0)", "2(x-1)",
        "2(x3", "2x3", "2(x3)4", "(x3)", "2(x3))", "2((x3)", "2(X3)", "1 2", "1, 2", "²", "2(x²)",
        "1(x65537)", "1(x40000),1(x40000)", "1(x9999999999)", "9" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_such_list_is_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of counts per node: ") as refused:
        per_node_counts(text)
    assert len(str(refused.value)) < 300


@given(st.lists(st.tuples(st.integers(0, 512), st.integers(1, 9)), min_size=1, max_size=5))
def test_a_list_is_read_as_it_is_written(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)
    assert per_node_counts(text) == [count for count, times in runs for _ in range(times)]


@given(st.text(alphabet="12(x), ", max_size=12))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        counts = per_node_counts(text)
    except ValueError:
        return
    assert counts
