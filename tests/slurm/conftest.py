"""One cluster for all tests of this folder; they share one worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.kit import Cluster, Job
from tests.ssh_lab import lab_folder


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.needs("slurm"))
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("lab"))
            # A cluster of daemons on one busy machine: a second try, which is reported.
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Slurm that is up; it is brought up once and taken down at the end."""
    cluster = Cluster(lab_folder())
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def job(cluster: Cluster, tmp_path: Path) -> Iterator[Job]:
    """A job to be submitted; it is cancelled if the test leaves it, and must leave nothing."""
    cluster.up()  # repairs what an earlier test has broken
    job = Job(cluster, tmp_path)
    yield job
    job.cancel()
    assert cluster.processes(job.mark) == []


@pytest.fixture
def new_job(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[[], Job]]:
    """Makes further jobs in the same folder."""
    made: list[Job] = []

    def make() -> Job:
        made.append(Job(cluster, tmp_path))
        return made[-1]

    yield make
    for job in made:
        job.cancel()
