"""A random order of many things in constant memory."""

from __future__ import annotations

from math import isqrt

ROUNDS = 4
MASK = (1 << 64) - 1


class Permutation:
    """All numbers below ``count``, each once, in an order that only the seed decides.

    A Feistel network over pairs of numbers below the root of ``count``, rounded up; what
    falls outside is sent through again until it falls inside (cycle walking), which for
    more than a few numbers hardly ever happens.

    >>> sorted(Permutation(10, seed=7)[i] for i in range(10))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._side = isqrt(max(count - 1, 0)) + 1  # of a square that holds all numbers
        self._keys = [_mix(seed * ROUNDS + round) for round in range(ROUNDS)]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        """The number at this place of the order.

        Raises:
            IndexError: There is no such place.
        """
        if not 0 <= index < self._count:
            raise IndexError(index)
        number = self._encrypt(index)
        while number >= self._count:
            number = self._encrypt(number)
        return number

    def _encrypt(self, number: int) -> int:
        side = self._side
        left, right = divmod(number, side)
        for key in self._keys:
            left, right = right, (left + _mix(right ^ key)) % side
        return left * side + right


def _mix(number: int) -> int:
    """Spread a number's bits over 64 (the finaliser of splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return number ^ number >> 31
