"""Options of the conformance tests alone."""

import pytest

collect_ignore_glob = ["cases/*", "mends/*", "bugs/*"]  # data: what looks like Python is a task's


@pytest.fixture
def plays_original(request: pytest.FixtureRequest) -> bool:
    """Whether the command under test is disBatch itself, which has no options of ours."""
    return bool(request.config.getoption("--original"))
