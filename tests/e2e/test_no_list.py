"""A file that is plainly no list of tasks is refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kit import disbatch, run

if TYPE_CHECKING:
    from tests.e2e.kit import Stage

OF_DISBATCH = "Fits_disBatch_231114221320_007_status.txt"


def _has_run(stage: Stage, *options: str) -> None:
    stage.write("Tasks", "echo result > result")
    stage.run(run("-q", "-p", "one", *options, "Tasks"))
    assert stage.read("result") == "result\n"


@pytest.mark.parametrize("command", [run, disbatch])
@pytest.mark.parametrize("options", [(), ("--status-header",)])
def test_the_status_file_of_a_run_is_not_run_again(
    stage: Stage, command: object, options: tuple[str, ...]
) -> None:
    _has_run(stage, *options)
    before = sorted(path.name for path in stage.folder.iterdir())
    ended = stage.run(command("one_status.txt"))  # type: ignore[operator]
    assert ended.status == 1
    assert ended.err == (
        "one_status.txt: this is the status file of a run, not a list of tasks\n"
        "  kept:  nothing was started\n"
        "  do:    did you mean  overnight resume one\n"
    )
    assert stage.read("result") == "result\n"
    assert sorted(path.name for path in stage.folder.iterdir()) == before


@pytest.mark.parametrize(
    "options", [("--shuffle=1",), ("--dry-run",), ("-r", "one_status.txt"),
                ("--directives", "lenient"), ("--detach",)],
)
def test_no_option_makes_it_a_list(stage: Stage, options: tuple[str, ...]) -> None:
    _has_run(stage)
    ended = stage.run(run(*options, "one_status.txt"))
    assert (ended.status, stage.read("result")) == (1, "result\n")
    assert "this is the status file of a run" in ended.err


def test_nor_does_standard_input_when_it_is_that_file(stage: Stage) -> None:
    _has_run(stage)
    with stage.path("one_status.txt").open("rb") as file:
        ended = stage.run(run("-"), stdin=file)
    assert (ended.status, stage.read("result")) == (1, "result\n")
    assert ended.err.startswith("standard input: this is the status file of a run")


def test_a_status_file_of_disbatch_is_to_be_resumed_with_its_list(stage: Stage) -> None:
    _has_run(stage)
    stage.path(OF_DISBATCH).write_text(stage.read("one_status.txt"))
    ended = stage.run(disbatch(OF_DISBATCH))
    assert ended.status == 1
    assert f"did you mean  overnight run -r {OF_DISBATCH} Fits\n" in ended.err


def test_a_task_log_and_a_binary_are_refused_too(stage: Stage) -> None:
    _has_run(stage)
    stage.path("program").write_bytes(b"\x7fELF\x02\0\0echo > ran\n")
    stage.path("wide").write_bytes("echo > ran\n".encode("utf-16"))
    told = [stage.run(run(name)) for name in ("one_tasks.jsonl", "program", "wide")]
    assert [ended.status for ended in told] == [1, 1, 1]
    assert "the task log of a run" in told[0].err
    assert "did you mean  overnight resume one\n" in told[0].err
    assert all("a NUL byte is in it" in ended.err for ended in told[1:])
    assert not stage.path("ran").exists()


def test_a_list_in_an_open_file_is_read_from_where_it_stands(stage: Stage) -> None:
    stage.write("Tasks", "echo > first", "echo > second")
    with stage.path("Tasks").open("rb", buffering=0) as file:
        file.read(len("echo > first\n"))
        ended = stage.run(run("-q", "-"), stdin=file)
    assert ended.status == 0
    assert stage.path("second").exists()
    assert not stage.path("first").exists()
