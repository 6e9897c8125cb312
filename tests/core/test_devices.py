"""What dividing devices promises: a device goes to one slot, and the user is told of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.core.devices import GPU_VARIABLES, divide

ELEMENT = st.text("0123456789abcGPU-", min_size=1, max_size=6)


def test_each_slot_gets_one_element_in_order():
    division = divide(["GPU"], {"GPU": "3,5"}, slots=2)
    assert list(division.values) == [{"GPU": "3"}, {"GPU": "5"}]
    assert not division.notes


def test_fewer_elements_lower_the_slots_and_the_user_is_told():
    division = divide(["GPU"], {"GPU": "g5"}, slots=3)
    assert (division.slots, list(division.values)) == (1, [{"GPU": "g5"}])
    assert division.notes == ["GPU has 1 value for 3 slots: the slots are lowered to 1"]


def test_further_elements_stay_unused_and_are_named():
    division = divide(["GPU"], {"GPU": "0,1,2,3"}, slots=2)
    assert division.slots == 2
    assert division.notes == ["GPU has 4 values for 2 slots: 2,3 stays unused"]


def test_several_variables_are_divided_in_step():
    division = divide(GPU_VARIABLES, dict.fromkeys(GPU_VARIABLES, "7,8"), slots=2)
    assert list(division.values) == [dict.fromkeys(GPU_VARIABLES, x) for x in ("7", "8")]


def test_the_shortest_of_several_variables_decides():
    division = divide(["A", "B"], {"A": "1,2,3", "B": "x,y"}, slots=3)
    assert list(division.values) == [{"A": "1", "B": "x"}, {"A": "2", "B": "y"}]


def test_a_variable_that_is_not_set_divides_nothing_and_is_told():
    division = divide(["GPU"], {}, slots=2)
    assert (division.slots, list(division.values)) == (2, [{}, {}])
    assert division.notes == ["GPU is not set: nothing of it is divided among the slots"]


@pytest.mark.parametrize("value", ["", ",", " , "])
def test_a_variable_without_elements_leaves_no_slot(value):
    assert divide(["GPU"], {"GPU": value}, slots=2).slots == 0


def test_blanks_and_empty_elements_are_no_devices():
    division = divide(["GPU"], {"GPU": " 0 ,, 1,"}, slots=2)
    assert list(division.values) == [{"GPU": "0"}, {"GPU": "1"}]


def test_a_variable_named_twice_counts_once():
    assert divide(["GPU", "GPU"], {"GPU": "0"}, slots=2).notes == [
        "GPU has 1 value for 2 slots: the slots are lowered to 1"
    ]


@given(st.lists(ELEMENT, unique=True, max_size=12), st.integers(1, 12))
def test_no_element_goes_to_two_slots(elements, slots):
    division = divide(["V"], {"V": ",".join(elements)}, slots)
    given_out = [share["V"] for share in division.values]
    assert division.slots == len(given_out) == min(slots, len(elements))
    assert given_out == elements[: division.slots]
    assert bool(division.notes) == (slots != len(elements))
