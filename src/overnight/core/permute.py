"""A random order of many things in constant memory."""

from __future__ import annotations

ROUNDS = 4
MASK = (1 << 64) - 1


class Permutation:
    """All numbers below ``count``, each once, in an order that only the seed decides.

    A Feistel network over the next even number of bits; what falls outside is sent
    through again until it falls inside (cycle walking), less than four times on average.

    >>> sorted(Permutation(10, seed=7)[i] for i in range(10))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._half = max(1, ((count - 1).bit_length() + 1) // 2)
        self._low = (1 << self._half) - 1
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
        left, right = number >> self._half, number & self._low
        for key in self._keys:
            left, right = right, left ^ (_mix(right ^ key) & self._low)
        return left << self._half | right


def _mix(number: int) -> int:
    """Spread a number's bits over 64 (the finaliser of splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & MASK
    return number ^ number >> 31
