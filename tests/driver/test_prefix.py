"""What the names of a run's files promise."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from overnight.driver.prefix import name_tasks, new_files
from overnight.errors import OvernightError
from overnight.model.run import RunFiles, prefix_of_status

DEFAULT_NAME = r"Tasks_disBatch_\d{12}_\d{3}"


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


@pytest.mark.parametrize("given", [".", "", "sub", "sub/", "./sub/../sub"])
def test_a_directory_gets_the_default_name_inside_it(here, given):
    (here / "sub").mkdir()
    files = new_files(given, "lists/Tasks")
    folder, name = os.path.split(files.prefix)
    assert folder == str(here / "sub" if "sub" in given else here)
    assert re.fullmatch(DEFAULT_NAME, name)


def test_the_default_name_has_the_moment_of_the_start(here):
    earliest = time.strftime("%y%m%d%H%M%S")
    stamp = new_files(".", "Tasks").run_id.split("_")[2]
    assert earliest <= stamp <= time.strftime("%y%m%d%H%M%S")


def test_anything_else_is_the_whole_prefix(here):
    assert new_files("my run", "Tasks").prefix == str(here / "my run")


def test_a_prefix_is_absolute_and_has_no_links_in_it(here):
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    assert new_files("link/run", "Tasks").prefix == str(here / "real" / "run")


@pytest.mark.parametrize(
    ("given", "missing"), [("no/such/run", "no/such"), ("no/", "no"), ("file/run", "file")]
)
def test_a_directory_that_is_not_there_is_said(here, given, missing):
    (here / "file").touch()
    with pytest.raises(OvernightError) as refused:
        new_files(given, "Tasks")
    # To the letter: scripts around disBatch look for this line.
    assert str(refused.value) == f"Directory {here / missing} does not exist."
    assert refused.value.exit_status == 1


@pytest.fixture
def taken_second(here, monkeypatch) -> Path:
    """A second in which a thousand runs but one of a list have started already."""
    monkeypatch.setattr(time, "strftime", lambda pattern: "240229120000")
    for number in set(range(1000)) - {7}:
        ending = "_lock" if number % 2 else "_status.txt"
        (here / f"Tasks_disBatch_240229120000_{number:03d}{ending}").touch()
    return here


def test_a_default_name_that_is_taken_is_not_given_again(taken_second):
    assert new_files(".", "Tasks").run_id == "Tasks_disBatch_240229120000_007"


def test_when_all_names_are_taken_that_is_said(taken_second):
    (taken_second / "Tasks_disBatch_240229120000_007_lock").touch()
    with pytest.raises(OvernightError, match="choose a prefix with -p") as refused:
        new_files(".", "Tasks")
    assert refused.value.transient


@pytest.mark.parametrize(
    ("task_file", "name"),
    [("Tasks", "Tasks"), ("../a b/My.Tasks", "My.Tasks"), ("-", "stdin"), ("./-", "-")],
)
def test_a_list_is_named_by_its_last_component(task_file, name):
    assert name_tasks(task_file) == name


def test_all_files_of_a_run_begin_with_its_prefix_and_none_is_another():
    files = RunFiles("/data/my run")
    names = [
        files.status, files.tasks, files.driver_log, files.utility_script, files.lock,
        files.engine_file, files.engines, files.description, files.engine_log("SSH0", "n1", 0),
        files.engine_log("SSH0", "n1", 1), files.spool("a"), files.spool("b"),
    ]  # fmt: skip
    assert all(name.startswith("/data/my run_") for name in names)
    assert len(set(names)) == len(names)
    assert files.run_id == "my run"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/data/run_status.txt", "/data/run"), ("run_status.txt", "run"),
        ("a_status.txt_status.txt", "a_status.txt"), ("_status.txt", None), ("status.txt", None),
        ("run_status.txt.gz", None), ("", None),
    ],
)  # fmt: skip
def test_the_prefix_of_a_status_file_is_known_from_its_name(path, found):
    assert prefix_of_status(path) == found
