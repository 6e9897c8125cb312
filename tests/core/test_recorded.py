"""What rows that stand already say of what an engine still reports, or has left running."""

from __future__ import annotations

import pytest

from overnight.core.recorded import Recorded


@pytest.mark.parametrize(("started_at", "is_released"), [
    (1000.0, True),  # with its shell
    (1004.9, True),  # a moment before its end
    (999.99, True),  # clock ticks are coarse
    (1005.1, False),  # by a later execution
    (-2600.0, False),  # by a later one, after the clock was set back
])  # fmt: skip
def test_what_a_recorded_task_left_running_was_started_while_it_ran(
    started_at: float, is_released: bool
) -> None:
    recorded = Recorded({7: (1000.0, 1005.0)})
    assert recorded.is_released(7, started_at) is is_released
    assert not recorded.is_released(8, started_at)
