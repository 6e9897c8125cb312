"""The ``overnight`` command itself: its verbs, those to come, and what it says of others."""

from __future__ import annotations

import json

import pytest

from tests.e2e.kit import Stage, overnight, run


@pytest.mark.parametrize("verb", ["check", "monitor", "web", "add", "queue", "explain"])
def test_verbs_that_are_not_there_yet_say_so(stage: Stage, verb: str) -> None:
    ended = stage.run(overnight(verb))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"overnight: {verb} (")
    assert ended.err.endswith("is not there yet\n")


def test_an_unknown_verb_is_told_the_known_ones(stage: Stage) -> None:
    ended = stage.run(overnight("rnu"))
    assert ended.status == 2
    known = "run, resume, report, attach, join, pool"
    assert ended.err == f"overnight: 'rnu' is not a verb. Known: {known}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"]])
def test_help_names_the_verbs(stage: Stage, arguments: list[str]) -> None:
    ended = stage.run(overnight(*arguments))
    assert (ended.status, ended.err) == (0, "")
    assert "  resume   run what is left of an earlier run\n" in ended.out


def test_attach_to_a_run_that_has_ended_says_how_it_was(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER", "false")
    stage.run(run("-p", "P", "Tasks"))
    ended = stage.run(overnight("attach", "P"))
    assert ended.status == 1
    assert ended.out.startswith("The run has ended: 1 done, 1 failed")
    assert f"\n  overnight resume -R {stage.path('P')}\n" in ended.out


def test_attach_without_a_run_says_so(stage: Stage) -> None:
    ended = stage.run(overnight("attach", "nosuch"))
    assert ended.status == 1
    assert "there is no run of this name" in ended.err


def test_events_whose_reader_has_gone_end_no_run(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 50)
    command = " ".join(run("--json", "-q", "-p", "P", "Tasks"))
    ended = stage.run(["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"])
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out)["event"] == "started"
    assert len(stage.codes("P")) == 50
