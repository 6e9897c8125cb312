"""disBatch 3.0's recorded behaviour, case by case, against the command under test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.harness import Case, default_command, play, read_cases
from tests.conformance.kit import command_for, must_be_empty, parameters
from tests.conformance.waiting import CASES


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(read_cases("cases"), CASES))
def test_comes_out_as_recorded(case: Case, tmp_path: Path, plays_original: bool) -> None:
    command = command_for(case, default_command(), plays_original)
    must_be_empty(play(case, command, tmp_path), case.title)
