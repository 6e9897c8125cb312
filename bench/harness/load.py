"""What a contestant is given to do: one line, so many times, in so many slots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Load:
    """A list that holds one line ``count`` times."""

    line: str
    count: int
    slots: int

    def write_list(self, path: Path) -> Path:
        """Write the list and give back its path."""
        path.write_text(f"{self.line}\n" * self.count)
        return path

    @property
    def limit_s(self) -> float:
        """When a run of it is given up: far beyond what the slowest peer needs."""
        return 60 + 0.02 * self.count

    def __str__(self) -> str:
        return f"`{self.line}`, {self.slots} slots, N = {self.count:,}"
