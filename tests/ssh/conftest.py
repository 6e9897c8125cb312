"""Hosts that ssh reaches, for all tests of this folder; and a stage that they see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kit import Stage
from tests.ssh_lab import Hosts


@pytest.fixture(scope="session")
def hosts_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Three hosts, for as long as the session lasts."""
    hosts = Hosts(tmp_path_factory.getbasetemp())
    hosts.up()
    yield hosts
    hosts.down()


@pytest.fixture
def hosts(hosts_up: Hosts) -> Iterator[Hosts]:
    """The same, with every fault undone after the test."""
    yield hosts_up
    hosts_up.fault("undo", "all")
    hosts_up.up()
    hosts_up.end_all()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty folder that all hosts see; what commands leave running here is ended."""
    folder, kept = tmp_path / "work", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    made = Stage(folder, kept)
    yield made
    made.close()
