"""Kept output is nobody's to overwrite: not of an earlier run, and not of an earlier attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kit import Stage, overnight, run
from tests.e2e.options_kit import ends

PASSES_LATER = "echo $(cat word); test -e good"


def _kept(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*") if path.is_file()
    }


def test_a_resume_keeps_what_the_run_before_it_has_kept(stage: Stage) -> None:
    stage.write("Tasks", PASSES_LATER)
    stage.write("word", "first")
    ends(stage, run("-q", "--output", "out", "-p", "P", "Tasks"), status=1)
    stage.write("word", "second")
    stage.write("good")
    ends(stage, overnight("resume", "-q", "-R", "P"))
    assert _kept(stage.path("out")) == {"0/0.out": "first\n", "0/0.2.out": "second\n"}


def test_retries_of_a_resume_take_the_numbers_that_are_free(stage: Stage) -> None:
    stage.write("Tasks", "echo $OVERNIGHT_ATTEMPT; false")
    ends(stage, run("-q", "--retries", "1", "--output", "out", "-p", "P", "Tasks"), status=1)
    ends(stage, overnight("resume", "-q", "-R", "P"), status=1)
    assert _kept(stage.path("out")) == {
        "0/0.out": "1\n", "0/0.2.out": "2\n", "0/0.3.out": "1\n", "0/0.4.out": "2\n",
    }


def test_both_streams_of_an_attempt_have_one_number(stage: Stage) -> None:
    stage.write("Tasks", "echo a; echo b >&2")
    stage.path("out/0").mkdir(parents=True)
    stage.path("out/0/0.err").write_text("mine\n")
    ends(stage, run("-q", "--output", "out", "-p", "P", "Tasks"))
    assert _kept(stage.path("out")) == {
        "0/0.err": "mine\n", "0/0.2.out": "a\n", "0/0.2.err": "b\n",
    }


def test_an_empty_file_that_was_there_stays(stage: Stage) -> None:
    stage.write("Tasks", "true")
    stage.path("out/0").mkdir(parents=True)
    stage.path("out/0/0.out").touch()
    ends(stage, run("-q", "--output", "out", "-p", "P", "Tasks"))
    assert _kept(stage.path("out")) == {"0/0.out": ""}


def test_what_this_run_wrote_is_printed_not_what_lay_there(stage: Stage) -> None:
    stage.write("Tasks", "echo old", "echo old")
    ends(stage, run("-q", "--output", "out", "-p", "P", "Tasks"))
    stage.write("Tasks", "echo new", "true")
    printed = ends(stage, run("-q", "--print", "--output", "out", "-p", "Q", "Tasks"))
    assert printed.out == "new\n"


@pytest.mark.parametrize("output", ["file", "file/below"])
def test_a_folder_that_is_a_file_is_refused_before_the_first_task(
    stage: Stage, output: str
) -> None:
    stage.write("Tasks", "echo > ran")
    stage.write("file", "mine")
    ended = ends(stage, run("--output", output, "-p", "P", "Tasks"), status=2)
    assert ended.err.startswith(f"--output {output}: {stage.path('file')} is no folder\n")
    assert sorted(path.name for path in stage.folder.iterdir()) == ["Tasks", "file"]


@pytest.mark.needs("mounts")
@pytest.mark.parametrize("output", ["", "not/there/yet"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_first_task(
    stage: Stage, frozen_folder, output: str
) -> None:
    frozen_folder.freeze()
    stage.write("Tasks", "echo > ran")
    ended = ends(stage, run("--output", frozen_folder.path / output, "Tasks"), status=2)
    assert f"{frozen_folder.path} cannot be written to" in ended.err
    assert [path.name for path in stage.folder.iterdir()] == ["Tasks"]


@pytest.mark.parametrize("order", [[], ["--keep-order"]])
def test_what_was_only_to_be_printed_leaves_nothing_behind(stage: Stage, order: list[str]) -> None:
    stage.write("Tasks", "echo a; echo b >&2; false", "true")
    ended = ends(stage, run("-q", "--retries", "1", "--print", *order, "-p", "P", "Tasks"),
                 status=1)
    assert (ended.out, ended.err) == ("a\n", "b\n")
    assert not stage.path("P_print").exists()
