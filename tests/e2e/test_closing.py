"""What stands on the screen when a run has ended."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from tests.e2e.kit import overnight, run, until
from tests.e2e.options_kit import watching

if TYPE_CHECKING:
    from tests.e2e.kit import Live, Stage

LINGERS = "echo > began; until [ -e go ]; do sleep 0.02; done"


def _stopped(stage: Stage, *options: str) -> Live:
    """A run of ten tasks and two barriers whose third task is cut off."""
    stage.write("Tasks", "true", "true", "#DISBATCH BARRIER", LINGERS, "true",
                "#DISBATCH BARRIER", "#DISBATCH REPEAT 6 true")
    live = stage.start(run("-j", "1", "-p", "P", *options, "Tasks"))
    stage.appears("began")
    for said in ("Once more ends them", "Once more kills them"):
        live.signal(signal.SIGINT)
        live.says(said)
    return live


def test_a_run_that_was_stopped_says_how_much_is_left(stage: Stage) -> None:
    ended = _stopped(stage).wait()
    assert "\n10 tasks: 2 done, 8 left (1 of them cut off)\n" in f"\n{ended.err}"
    attached = stage.run(overnight("attach", "P"))
    assert "): 2 done, 0 failed, 8 left (1 of them cut off).\n" in attached.out
    told = stage.run(overnight("report", "P_status.txt"))
    assert told.out.startswith("10 tasks: 2 done, 8 left (1 of them cut off)\n")


def test_a_program_is_told_how_much_is_left(stage: Stage) -> None:
    last = json.loads(_stopped(stage, "--json").wait().out.splitlines()[-1])
    assert (last["done"], last["left"], last["tasks_left"]) == (2, 8, True)


def test_of_a_run_that_came_to_its_end_nothing_is_left(stage: Stage) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER", "false")
    ended = stage.run(run("--json", "-p", "P", "Tasks"))
    assert json.loads(ended.out.splitlines()[-1])["left"] == 0
    assert "2 tasks: 1 done, 1 failed\n" in ended.err


def test_the_closing_names_the_command_that_shows_the_rarer_causes(stage: Stage) -> None:
    stage.write("Tasks", *(f"exit {code}" for code in range(1, 31)))
    ended = stage.run(run("-p", "P", "Tasks"))
    command = f"overnight report {stage.path('P_status.txt')}"
    assert f"  18 x of 18 rarer causes, told by\n    {command}\n" in ended.err
    assert ended.err.endswith("\n\n30 tasks: 0 done, 30 failed\n")
    told = stage.run(overnight(*command.split()[1:])).out
    assert all(f"  1 x exit code {code}\n" in told for code in range(1, 31))


def test_a_run_with_retries_takes_the_time_of_all_its_attempts(stage: Stage) -> None:
    stage.write("Tasks", "echo >> tries; sleep 0.3; test $(wc -l < tries) = 2")
    ended = stage.run(run("--json", "--retries", "2", "-p", "P", "Tasks"))
    closing = json.loads(ended.out.splitlines()[-1])
    told = json.loads(stage.run(overnight("report", "--json", "P_status.txt")).out)
    first, second = stage.attempts("P")
    whole_s = second["start"] + second["elapsed"] - first["start"]
    for facts in (closing, told):
        assert (facts["done"], facts["failed"], facts["retried"]) == (1, 0, 1)
        assert abs(facts["wall_s"] - whole_s) < 0.01
        assert abs(facts["task_s"] - first["elapsed"] - second["elapsed"]) < 0.01
        assert abs(facts["cpu_s"] - first["cpu"] - second["cpu"]) < 0.01
        assert facts["pause_s"] == 0


def test_a_list_that_was_replaced_is_told_to_those_who_were_not_looking(stage: Stage) -> None:
    stage.write("Tasks", LINGERS, "true")
    stage.run(run("--detach", "-j", "1", "-p", "P", "Tasks"))
    until(lambda: stage.path("began").exists(), "the first task runs")
    watcher = watching(stage, "P")
    stage.write("New", "true")
    stage.path("New").replace(stage.path("Tasks"))
    stage.write("go")
    warning = "Tasks is another file now: the run goes on with the lines of the one it began with\n"
    ended = watcher.wait()
    assert ended.out.endswith(f"\nWarnings\n  {warning}")
    again = stage.run(overnight("attach", "P"))
    assert again.out.startswith("The run has ended: 2 done, 0 failed.\n")
    assert again.out.endswith(f"\nWarnings\n  {warning}")


def test_the_closing_of_a_run_says_what_it_has_warned_of(stage: Stage) -> None:
    stage.write("Tasks", LINGERS, "true")
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    stage.write("New", "true")
    stage.path("New").replace(stage.path("Tasks"))
    stage.write("go")
    closing = live.wait().err.partition("2 tasks: 2 done\n")[2]
    assert "\n\nWarnings\n  Tasks is another file now: " in closing
