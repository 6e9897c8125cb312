"""What the tests of the data share: parameters, the command of each case, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.harness import OPTIONS_BY_NEED, Case


def parameter(case: Any, name: str, reason: str | None) -> Any:
    """A parameter for one case, marked when there is a reason for it to wait."""
    marks = [pytest.mark.later(reason)] if reason else []
    return pytest.param(case, id=name, marks=marks)


def parameters(cases: Iterable[Case], waiting: Mapping[str, str]) -> list[Any]:
    """A parameter for each case, those that wait for a later part marked so."""
    return [parameter(case, case.id, waiting.get(case.id)) for case in cases]


def command_for(case: Case, command: str, plays_original: bool) -> str:
    """The command with the option of ours that a case needs, unless it is disBatch itself."""
    if case.need is None or plays_original:
        return command
    return f"{command} {OPTIONS_BY_NEED[case.need]}"


def must_be_empty(differences: Sequence[str], promise: str) -> None:
    """Fail with every difference in full, below the promise that is not kept."""
    if differences:
        pytest.fail("\n- ".join([promise, *differences]), pytrace=False)
