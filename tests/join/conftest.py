"""The stage of the commands, and a wire that can be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.conftest import stage
from tests.e2e.kit import Stage
from tests.join.kit import Wire

__all__ = ["stage"]


@pytest.fixture
def wire(stage: Stage) -> Iterator[Callable[[], Wire]]:
    """Lays a wire to the run that listens."""
    made: list[Wire] = []

    def lay() -> Wire:
        made.append(Wire(stage))
        return made[-1]

    yield lay
    for each in made:
        each.close()
