"""Options where they meet others, a signal or a resume: their promises hold there too."""

from __future__ import annotations

import signal

from tests.e2e.kit import Stage, overnight, run


def test_printing_retried_tasks_leaves_no_files(stage: Stage) -> None:
    stage.write("Tasks", "echo $OVERNIGHT_ATTEMPT; [ $OVERNIGHT_ATTEMPT = 2 ]")
    assert stage.run(run("--retries", "1", "--print", "-p", "P", "Tasks")).out == "2\n"
    assert not list(stage.folder.glob("P_print*"))


def test_output_that_waited_for_its_turn_is_printed_when_a_run_is_stopped(stage: Stage) -> None:
    stage.write("Tasks", "until [ -e go ]; do sleep 0.02; done", "echo one; echo > began",
                "sleep 1000")
    live = stage.start(run("-j", "2", "--print", "--keep-order", "-p", "P", "Tasks"))
    stage.has_rows("P", 1)
    for words in ("Once more ends", "Once more kills"):
        live.signal(signal.SIGINT)
        live.says(words)
    ended = live.wait()
    assert (ended.status, ended.out) == (3, "one\n")


def test_a_shuffled_list_is_resumed(stage: Stage) -> None:
    stage.write("Tasks", *["echo $DISBATCH_TASKID >> ran"] * 40)
    command = run("--shuffle=5", "-j", "1", "-p", "P", "Tasks")
    live = stage.start([*command, "--delay", "0.02"])
    stage.has_rows("P", 5)
    live.signal(signal.SIGINT)
    assert live.wait().status == 3
    assert stage.run(overnight("resume", "P")).status == 0
    assert sorted(map(int, stage.read("ran").split())) == list(range(40))
    assert stage.codes("P") == dict.fromkeys(range(40), 0)


def test_an_attempt_over_its_time_is_tried_again(stage: Stage) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 2 ] || sleep 1000")
    command = run("--timeout", "0.4", "--retries", "1", "-p", "P", "Tasks")
    assert stage.run(command).status == 0
    assert [one["outcome"] for one in stage.attempts("P")] == ["timed out", "exited"]


def test_a_check_waits_for_the_last_attempt(stage: Stage) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 2 ]", "#DISBATCH BARRIER CHECK", "true")
    assert stage.run(run("--retries", "1", "-p", "P", "Tasks")).status == 0
    assert stage.codes("P") == {0: 0, 2: 0}


def test_the_limit_of_failures_counts_over_barriers(stage: Stage) -> None:
    stage.write("Tasks", "false", "#DISBATCH BARRIER", "false", "#DISBATCH BARRIER", "true")
    assert stage.run(run("--max-failures", "2", "-p", "P", "Tasks")).status == 1
    assert stage.codes("P") == {0: 1, 2: 1}


def test_per_engine_commands_are_not_tried_again_with_their_tasks(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH PERENGINE START echo start >> order",
                "#DISBATCH PERENGINE STOP echo stop >> order",
                "echo $OVERNIGHT_ATTEMPT >> order; [ $OVERNIGHT_ATTEMPT = 2 ]")
    assert stage.run(run("-j", "2", "--retries", "1", "-p", "P", "Tasks")).status == 0
    assert stage.read("order").split() == ["start", "1", "2", "stop"]


def test_options_are_kept_for_a_resume(stage: Stage) -> None:
    stage.write("Tasks", "[ -e go ] || { echo > began; sleep 1000; }",
                "echo out; [ $OVERNIGHT_ATTEMPT = 2 ]")
    live = stage.start(run("-j", "1", "--retries", "1", "--output", "kept", "-p", "P", "Tasks"))
    stage.appears("began")
    for words in ("Once more ends", "Once more kills"):
        live.signal(signal.SIGINT)
        live.says(words)
    live.wait()
    stage.write("go")
    assert stage.run(overnight("resume")).status == 0
    assert stage.read("kept/0/1.2.out") == "out\n"
