"""The stage on which each test of the commands plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kit import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty folder for real commands; what they leave running is ended."""
    folder, kept = tmp_path / "work", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    made = Stage(folder, kept)
    yield made
    made.close()
