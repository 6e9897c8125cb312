"""Gather the results of the sweep into one table, with a bar for each r.

    python3 demo/collect.py demo-run > demo-run/table.txt
"""

import sys
from pathlib import Path

WIDTH = 24  # of the bar on either side
STRONGEST = 1.2  # exponent that fills a side


def bar(exponent: float) -> str:
    """The exponent as a bar: to the left of the middle for order, to the right for chaos."""
    length = min(WIDTH, round(abs(exponent) / STRONGEST * WIDTH))
    left = "-" * length if exponent < 0 else ""
    right = "+" * length if exponent > 0 else ""
    return f"{left:>{WIDTH}}|{right:<{WIDTH}}"


def line_of(result: Path) -> str:
    r, exponent, place_count = result.read_text().split()
    return f"{r}  {exponent:>9}  {bar(float(exponent))}  {place_count:>3}"


def main() -> int:
    print(f"{'r':4}  {'exponent':>9}  {'order':<{WIDTH}}|{'chaos':>{WIDTH}}  places")
    for result in sorted(Path(sys.argv[1]).glob("r*.txt")):
        print(line_of(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
