"""Follow the logistic map x -> r x (1 - x) for one r: its Lyapunov exponent and where it settles.

A negative exponent means that neighbouring orbits come together (the map is orderly there), a
positive one that they part (chaos). For r above 4 the orbit leaves [0, 1] and there is no answer.

    python3 demo/logistic.py 3.57 demo-run/r3.57.txt
"""

import argparse
import math
import sys
from pathlib import Path

BURN_IN = 5_000
STEPS = 220_000
START = 0.3
VISITS = 256  # steps over which places are counted
DIGITS = 4  # of a place: chaos visits a new one at almost every step, order a handful


class OrbitEscaped(ValueError):
    """The orbit left [0, 1]: with this r there is nothing to measure."""


def follow(r: float) -> tuple[float, int]:
    """Lyapunov exponent of the map at ``r``, and how many places its orbit settles on."""
    x = START
    for _ in range(BURN_IN):
        x = r * x * (1.0 - x)
        if not 0.0 <= x <= 1.0:
            raise OrbitEscaped(f"r = {r}: the orbit left [0, 1], choose r between 0 and 4")
    places = set()
    for _ in range(VISITS):
        x = r * x * (1.0 - x)
        places.add(round(x, DIGITS))
    total = 0.0
    for _ in range(STEPS):
        x = r * x * (1.0 - x)
        total += math.log(abs(r * (1.0 - 2.0 * x)) or sys.float_info.min)
    return total / STEPS, len(places)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("r", type=float)
    parser.add_argument("result", type=Path)
    arguments = parser.parse_args()
    try:
        exponent, place_count = follow(arguments.r)
    except OrbitEscaped as error:
        print(error, file=sys.stderr)
        return 3
    arguments.result.write_text(f"{arguments.r:.2f} {exponent:+.6f} {place_count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
