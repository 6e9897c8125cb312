"""What holds for all tests: real parts they need, strict mode, and what a run says at its end."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import file_systems, parts

collect_ignore = ["slow_file_system.py"]  # a program of its own, importable where FUSE is

# The machine is shared with other tests, at times with much else: slowness is no counterexample.
settings.register_profile("overnight", deadline=None)
settings.load_profile("overnight")

# Under nohup a hang-up is ignored, and with it by every program that a test starts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

LATER = "later: "
MISSING = "missing: "


def is_strict() -> bool:
    """Whether a test that is skipped for want of something is a failure."""
    return os.environ.get("CI") == "true" or os.environ.get("OVERNIGHT_TEST_STRICT") == "1"


@pytest.fixture
def full_folder(tmp_path: Path) -> Iterator[file_systems.FullFolder]:
    """A real file system that can be filled; the test ``needs("mounts")``."""
    with file_systems.full_folder(tmp_path / "full") as folder:
        yield folder


@pytest.fixture
def frozen_folder(tmp_path: Path) -> Iterator[file_systems.FrozenFolder]:
    """A real file system that can become read-only; the test ``needs("mounts")``."""
    with file_systems.frozen_folder(tmp_path / "frozen") as folder:
        yield folder


@pytest.fixture
def slow_folder(tmp_path: Path) -> Iterator[file_systems.SlowFolder]:
    """A real file system that can be slow, or fail; the test ``needs("fuse")``."""
    with file_systems.slow_folder(tmp_path / "slow") as folder:
        yield folder


@pytest.fixture
def must_be_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name below ``tests/golden``."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("overnight")
    group.addoption(
        "--with-later", action="store_true", help="play what waits for a later part as well"
    )
    group.addoption(
        "--bless", action="store_true", help="write golden files anew, to be read before a commit"
    )
    group.addoption(
        "--original",
        action="store_true",
        help="the command in DISBATCH is disBatch itself: it gets no options of ours",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests of a group share what there is once on a machine: they must share a worker."""
    if not session.config.getoption("loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid} is in a group, and this pytest takes no notice of that"
            )


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("later")
    if marker and not item.config.getoption("--with-later"):
        pytest.skip(LATER + marker.args[0])
    for needs in item.iter_markers("needs"):
        for part in needs.args:
            if what := parts.missing(part):
                pytest.skip(f"{MISSING}{part} ({what})")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped, in the words it gave."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)


def _fail_if_strict(report: pytest.TestReport | pytest.CollectReport) -> None:
    is_expected_failure = hasattr(report, "wasxfail")
    if not is_strict() or not report.skipped or is_expected_failure:
        return
    reason = _reason(report)
    if not reason.startswith(LATER):
        report.outcome = "failed"
        report.longrepr = f"skipped, but in strict mode everything is meant to be here: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_strict(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_strict(report)
    return report


def _wishes(reports: dict[str, list[Any]]) -> list[str]:
    return [
        str(value)
        for report in reports.get("passed", [])
        for name, value in report.user_properties
        if name == "unmet wish"
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was not tested here, and for want of what."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in skipped)
    wishes = _wishes(terminalreporter.stats)
    if not reasons and not wishes:
        return
    terminalreporter.section("what was not tested here")
    for reason, count in sorted(reasons.items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.line(f"not tested: {reason.removeprefix(MISSING)}: {tests}")
    for wish in wishes:
        terminalreporter.line(f"wished for, not required: {wish}")
