"""What the tests of the data share: parameters, the command of each case, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.harness import OPTIONS_BY_NEED, Case


def parameter(case: Any, name: str, reason: str | None, *marks: pytest.MarkDecorator) -> Any:
    """A parameter for one case, marked when there is a reason for it to wait."""
    waits = [pytest.mark.later(reason)] if reason else []
    return pytest.param(case, id=name, marks=[*waits, *marks])


def _calls_ps(case: Case) -> bool:
    """Whether a script or a file of the case asks ps: not every small Debian has it."""
    scripts = [step.script or "" for step in case.steps]
    files = [path.read_text(errors="replace") for path in case.files.rglob("*") if path.is_file()]
    return any("ps -" in text for text in [*scripts, *files])


def parameters(cases: Iterable[Case], waiting: Mapping[str, str]) -> list[Any]:
    """A parameter for each case, with marks for what it needs and for what it waits."""
    return [
        parameter(
            case,
            case.id,
            waiting.get(case.id),
            *([pytest.mark.needs("ps")] if _calls_ps(case) else []),
        )
        for case in cases
    ]


def command_for(case: Case, command: str, plays_original: bool) -> str:
    """The command with the option of ours that a case needs, unless it is disBatch itself."""
    if case.need is None or plays_original:
        return command
    return f"{command} {OPTIONS_BY_NEED[case.need]}"


def must_be_empty(differences: Sequence[str], promise: str) -> None:
    """Fail with every difference in full, below the promise that is not kept."""
    if differences:
        pytest.fail("\n- ".join([promise, *differences]), pytrace=False)
