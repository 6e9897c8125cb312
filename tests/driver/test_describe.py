"""What a run's description promises: what was asked for comes back, or a message."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.core.verdict import STOPPED, Verdict
from overnight.driver.describe import Description, read_description
from overnight.errors import ResumeRefused
from overnight.model.options import RunOptions
from overnight.model.run import RunFiles

paths = st.text(st.characters(exclude_characters="\0", exclude_categories=[]), min_size=1)
options = st.fixed_dictionaries(
    {"prefix": paths},
    optional={
        "task_file": paths,
        "resume_from": st.tuples(paths, paths),
        "retry": st.booleans(),
        "jobs": st.none() | st.integers(0, 10_000),
        "load": st.floats(0, 1e6),
        "memfree": st.integers(0, 1 << 62),
        "keep_reports": st.floats(0, 1e12),
        "label": st.none() | paths,
    },
)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(f"{tmp_path}/run")


def describe(chosen=None, cwd: str = "/data") -> Description:
    return Description(RunOptions(**(chosen or {})), cwd, generation=3, total=None, started_at=1.5)


@given(options, paths)
def test_what_was_asked_for_comes_back(tmp_path_factory, chosen, cwd):
    files = RunFiles(str(tmp_path_factory.mktemp("described") / "run"))
    describe(chosen, cwd).write(files)
    found = read_description(files)
    assert found.options.chosen() == chosen
    assert (found.cwd, found.generation, found.total, found.started_at) == (cwd, 3, None, 1.5)


@given(options)
def test_it_is_json_as_any_reader_has_it(tmp_path_factory, chosen):
    files = RunFiles(str(tmp_path_factory.mktemp("described") / "run"))
    describe(chosen).write(files)
    kept = json.loads(Path(files.description).read_bytes())
    assert kept["options"] == json.loads(json.dumps(chosen))


def test_a_run_without_one_has_none(files):
    assert read_description(files) is None


def test_a_later_driver_puts_its_own_in_the_place_of_the_earlier_ones(files, tmp_path):
    describe({"jobs": 1}).write(files)
    describe({"jobs": 2}).write(files)
    assert read_description(files).options.jobs == 2
    assert os.listdir(tmp_path) == ["run_run.json"]


@pytest.mark.needs("mounts")
def test_a_full_disk_leaves_the_earlier_one_and_no_draft(full_folder):
    files = RunFiles(f"{full_folder.path}/run")
    describe({"jobs": 1}).write(files)
    full_folder.fill()
    with pytest.raises(OSError, match="No space left"):
        describe({"jobs": 2, "label": "x" * 10_000}).write(files)
    assert read_description(files).options.jobs == 1
    assert sorted(os.listdir(full_folder.path)) == [".ballast", "run_run.json"]


def whole() -> dict:
    return {"options": {"jobs": 2}, "cwd": "/", "generation": 1, "total": 5, "started_at": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[1, 2]", id="not a mapping"),
        pytest.param(json.dumps(whole())[:-9], id="cut"),
        pytest.param(json.dumps({**whole(), "generation": None}), id="no generation"),
        pytest.param(json.dumps({**whole(), "options": {"chosen": 1}}), id="no option"),
        pytest.param(json.dumps({**whole(), "options": {"from_a_later_version": 1}}), id="later"),
        pytest.param(json.dumps({**whole(), "options": ["jobs"]}), id="options without values"),
    ],
)
def test_one_that_cannot_be_understood_is_refused_with_a_way_out(files, text):
    Path(files.description).write_text(text)
    with pytest.raises(ResumeRefused) as refused:
        read_description(files)
    assert refused.value.where == files.description
    assert f"-r {files.status} -p {files.prefix}" in refused.value.do


def test_a_description_that_may_not_be_read_is_refused(files):
    os.mkdir(files.description)
    with pytest.raises(ResumeRefused, match="Is a directory"):
        read_description(files)


@pytest.mark.parametrize("name", ["chosen", "no_such_option", "__init__", "_task_file"])
def test_what_is_no_option_is_none(name):
    with pytest.raises(TypeError, match=f"a run has no option '{name}'"):
        RunOptions(**{name: 1})


# -- how it ended ----------------------------------------------------------------------------


def test_a_run_that_goes_on_or_was_killed_has_no_ending(files):
    describe().write(files)
    assert read_description(files).ending is None


@given(options, paths, st.booleans())
def test_how_a_run_ended_is_added_to_how_it_was_started(tmp_path_factory, chosen, reason, left):
    files = RunFiles(str(tmp_path_factory.mktemp("described") / "run"))
    description = describe(chosen)
    description.write(files)
    description.add_ending(files, Verdict(STOPPED, False, left, reason))
    found = read_description(files)
    assert (found.ending, found.reason, found.has_tasks_left) == (STOPPED, reason, left)
    assert found.options.chosen() == chosen
    assert os.stat(files.description).st_mtime == found.started_at


def test_a_resumed_run_has_no_ending_of_its_earlier_driver(files):
    description = describe()
    description.write(files)
    description.add_ending(files, Verdict(STOPPED, False, True, "asked"))
    describe().write(files)
    assert read_description(files).ending is None
