"""The recorded facts about lists, rows, resume and slots, and two functions of one text.

`units/*.jsonl` and `pure/*.yaml` are data and are never changed. `units/kvs.jsonl` is about
the key-value store, which is not built yet; nor are GPU listings read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import adapter
from tests.conformance.waiting import QUEUE

HERE = Path(__file__).parent

Fact = dict[str, Any]


def facts(name: str) -> list[Any]:
    lines = (HERE / "units" / f"{name}.jsonl").read_text().splitlines()
    return [pytest.param(json.loads(line), id=f"{at}") for at, line in enumerate(lines, 1)]


def agree(fact: Fact, told: Callable[[Fact], Fact]) -> None:
    """A fact comes out again when all that it expects is taken from it."""
    got = told({key: value for key, value in fact.items() if key not in EXPECTED})
    assert got == {key: fact[key] for key in EXPECTED if key in fact}


EXPECTED = (
    "tasks", "unknown", "perengine_late", "count", "snippet", "flags", "row", "mismatch",
    "nodes", "slots", "cores_per_task", "error", "warnings", "label",
)  # fmt: skip

@pytest.mark.parametrize("fact", facts("grammar"))
def test_a_list_is_read_as_recorded(fact: Fact) -> None:
    agree(fact, adapter.grammar)


@pytest.mark.parametrize("fact", facts("snippets"))
def test_output_is_shown_as_recorded(fact: Fact) -> None:
    agree(fact, adapter.snippet)


@pytest.mark.parametrize("fact", facts("rows"))
def test_a_row_is_written_as_recorded(fact: Fact) -> None:
    agree(fact, adapter.row)


@pytest.mark.parametrize("fact", facts("resume"))
def test_a_list_is_resumed_as_recorded(fact: Fact) -> None:
    agree(fact, adapter.resume)


@pytest.mark.parametrize("fact", facts("arithmetic"))
def test_slots_are_counted_as_recorded(fact: Fact) -> None:
    agree(fact, adapter.arithmetic)


LATER = {"parse_nvidia_smi": [pytest.mark.later(QUEUE)]}


def pure_cases() -> list[Any]:
    cases = [yaml.safe_load(path.read_text()) for path in sorted((HERE / "pure").glob("*.yaml"))]
    return [pytest.param(case, id=case["id"], marks=LATER.get(case["func"], [])) for case in cases]


@pytest.mark.parametrize("case", pure_cases())
def test_a_text_means_what_was_recorded(case: Fact) -> None:
    must_be_as_recorded(case)


def must_be_as_recorded(case: Fact) -> None:
    """One case of a function of one text."""
    function = getattr(adapter, case["func"])
    for expected in case["expect"]:
        if expected["value"] == {"error": True}:
            with pytest.raises(ValueError, match=r"."):
                function(case["input"])
        else:
            assert function(case["input"]) == expected["value"]
