"""What a permutation promises: every number once, in an order the seed decides alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.core.permute import Permutation


def order(count: int, seed: int) -> list[int]:
    return [Permutation(count, seed)[i] for i in range(count)]


@given(st.integers(0, 300), st.integers(-(1 << 70), 1 << 70))
def test_every_number_stands_in_it_once(count, seed):
    assert sorted(order(count, seed)) == list(range(count))


@given(st.integers(1, 10**15), st.integers(0, 1 << 64), st.data())
def test_different_places_have_different_numbers_however_many_there_are(count, seed, data):
    first = data.draw(st.integers(0, count - 1))
    second = data.draw(st.integers(0, count - 1))
    numbers = Permutation(count, seed)
    assert 0 <= numbers[first] < count
    assert (numbers[first] == numbers[second]) == (first == second)


@given(st.integers(0, 100), st.integers())
def test_the_same_seed_gives_the_same_order(count, seed):
    assert order(count, seed) == order(count, seed)


def test_different_seeds_give_different_orders():
    orders = {tuple(order(20, seed)) for seed in range(200)}
    assert len(orders) == 200


@pytest.mark.parametrize("index", [-1, 5, 6])
def test_there_is_nothing_outside(index):
    with pytest.raises(IndexError):
        Permutation(5, 1)[index]


def test_every_order_of_a_few_numbers_comes_up():
    seen = Counter(tuple(order(4, seed)) for seed in range(2400))
    assert len(seen) == 24
    assert min(seen.values()) > 50  # a hundred each on average


def test_every_number_comes_first_about_equally_often():
    count, seeds = 50, 5000
    firsts = Counter(Permutation(count, seed)[0] for seed in range(seeds))
    expected = seeds / count
    unevenness = sum((firsts[n] - expected) ** 2 / expected for n in range(count))
    assert unevenness < 90  # chi-square with 49 degrees of freedom: one in a thousand is above


def test_neighbours_are_torn_apart():
    numbers = order(10_000, 3)
    near = sum(abs(a - b) == 1 for a, b in pairwise(numbers))
    assert near < 20  # two on average
