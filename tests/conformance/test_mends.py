"""What a user wants where disBatch is at fault, against the command under test.

A mend without ``expect`` in its steps is judged by reading; playing it proves that it ends.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.harness import Case, default_command, play, read_cases
from tests.conformance.kit import command_for, must_be_empty, parameters
from tests.conformance.waiting import MENDS


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(read_cases("mends"), MENDS))
def test_is_mended(case: Case, tmp_path: Path, plays_original: bool) -> None:
    command = command_for(case, default_command(), plays_original)
    must_be_empty(play(case, command, tmp_path), case.want)
