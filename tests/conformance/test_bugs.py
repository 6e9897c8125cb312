"""Promises from public bug reports about programs of this kind, against the command under test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.harness import default_command
from tests.conformance.harness_story import NoEngine, Story, read_stories
from tests.conformance.kit import must_be_empty, parameter
from tests.conformance.test_units import must_be_as_recorded
from tests.conformance.waiting import BUG_AREAS

STORIES = [
    parameter(story, story["id"], BUG_AREAS.get(story["area"])) for story in read_stories()
]


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_keeps_the_promise(
    story: dict[str, Any], tmp_path: Path, plays_original: bool,
    record_property: Callable[[str, object], None],
) -> None:
    if story["kind"] == "pure":
        must_be_as_recorded(story)
        return
    if story["kind"] != "cli":
        pytest.skip(f"later: cases of kind {story['kind']} have no player yet")
    played = Story(story, default_command(), tmp_path)
    try:
        failures = played.play()
    except NoEngine:
        assert plays_original, "the command has no engine to send the signal to"
        pytest.skip("the original has no engine to send this signal to")
    for wish in played.evidence.unmet_wishes:
        record_property("unmet wish", f"{story['id']}: {wish}")
    must_be_empty(failures, story["title"])
