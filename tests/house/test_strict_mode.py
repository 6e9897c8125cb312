"""The rules of our own test runs: what is missing is said, and in strict mode it is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SKIPS = """
    import pytest

    @pytest.mark.needs("the moon")
    def test_that_needs_a_part():
        raise AssertionError("never run")

    def test_that_skips_for_a_reason_of_its_own():
        pytest.skip("no reason")

    @pytest.mark.later("part Z: the moon")
    def test_that_waits():
        raise AssertionError("never run")

    def test_that_passes():
        pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own under our rules, in which one part is known and missing."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("OVERNIGHT_TEST_STRICT", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("""
        from tests import parts
        from tests.conftest import *

        parts.PARTS["the moon"] = lambda: "not up"

        def pytest_configure(config):
            for marker in ("needs", "later"):
                config.addinivalue_line("markers", marker)
    """)
    pytester.makepyfile(SKIPS)
    return pytester


def test_a_missing_part_is_said_at_the_end(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines_random(
        [
            "not tested: the moon (not up): 1 test",
            "not tested: no reason: 1 test",
            "not tested: later: part Z: the moon: 1 test",
        ]
    )


@pytest.mark.parametrize("variable", [("CI", "true"), ("OVERNIGHT_TEST_STRICT", "1")])
def test_in_strict_mode_what_is_missing_counts_as_wrong(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*everything is meant to be here: missing: the moon (not up)*"])


def test_in_strict_mode_a_file_that_skips_itself_is_a_failure(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    suite.makepyfile(test_absent="import pytest; pytest.importorskip('no_such_module_here')")
    result = suite.runpytest_subprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*everything is meant to be here*no_such_module_here*"])


def test_what_waits_is_run_when_asked_for(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--with-later")
    result.assert_outcomes(passed=1, failed=1, skipped=2)
