"""Options where they meet: what one promises holds in the company of the other."""

from __future__ import annotations

import json
import signal

from tests.e2e.kit import Stage, disbatch, overnight, run, until


def test_printed_output_is_kept_where_it_was_asked_for(stage: Stage) -> None:
    stage.write("Tasks", "echo out", "echo err >&2")
    ended = stage.run(run("-q", "--print", "--output", "kept", "-p", "P", "Tasks"))
    assert (ended.out, ended.err) == ("out\n", "err\n")
    assert stage.read("kept/0/0.out") == "out\n"
    assert stage.read("kept/0/1.err") == "err\n"


def test_each_attempt_has_its_own_output_and_the_last_is_printed(stage: Stage) -> None:
    stage.write("Tasks", "echo attempt $OVERNIGHT_ATTEMPT; [ $OVERNIGHT_ATTEMPT = 2 ]")
    ended = stage.run(
        run("-q", "--retries", "2", "--output", "kept", "--print", "-p", "P", "Tasks")
    )
    assert ended.status == 0
    assert stage.read("kept/0/0.out") == "attempt 1\n"
    assert stage.read("kept/0/0.2.out") == "attempt 2\n"
    assert ended.out == "attempt 2\n"


def test_printing_retried_tasks_leaves_no_files(stage: Stage) -> None:
    stage.write("Tasks", "echo $OVERNIGHT_ATTEMPT; [ $OVERNIGHT_ATTEMPT = 2 ]")
    assert stage.run(run("--retries", "1", "--print", "-p", "P", "Tasks")).out == "2\n"
    assert not list(stage.folder.glob("P_print*"))


def test_order_is_kept_over_barriers_and_tasks_done_before(stage: Stage) -> None:
    stage.write("Tasks", "echo zero", "[ -e go ] && echo one", "#DISBATCH BARRIER", "echo three",
                "sleep 0.2; echo four", "echo five")
    first = stage.run(run("--print", "--keep-order", "-j", "3", "-p", "P", "Tasks"))
    assert first.out.split() == ["zero", "three", "four", "five"]
    stage.write("go")
    command = run("--print", "--keep-order", "-p", "Q", "-R", "-r", "P_status.txt", "Tasks")
    assert stage.run(command).out == "one\n"


def test_order_is_kept_of_what_was_shuffled(stage: Stage) -> None:
    stage.write("Tasks", *["echo $DISBATCH_TASKID"] * 20)
    ended = stage.run(
        run("--shuffle=3", "--print", "--keep-order", "-j", "2", "-p", "P", "Tasks")
    )
    assert ended.out.split() == [str(number) for number in range(20)]


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


def test_a_detached_run_writes_its_events_to_the_file_it_was_given(stage: Stage) -> None:
    stage.write("Tasks", "until [ -e go ]; do sleep 0.02; done")
    with stage.path("events").open("wb") as events:
        ended = stage.run(run("--detach", "--json", "-p", "P", "Tasks"), stdout=events)
    assert ended.status == 0
    assert "overnight attach" in ended.err
    stage.write("go")
    stage.is_empty_soon()
    found = [json.loads(line)["event"] for line in stage.read("events").splitlines()]
    assert (found[0], found[-1]) == ("started", "finished")


def test_a_detached_run_may_read_its_list_from_a_file_on_standard_input(stage: Stage) -> None:
    with stage.write("Tasks", "until [ -e go ]; do sleep 0.02; done", "echo").open() as lines:
        ended = stage.run(run("--detach", "-p", "P", "-"), stdin=lines)
    assert ended.status == 0
    stage.write("go")
    until(lambda: not stage.left(), "the run ends")
    assert stage.codes("P") == {0: 0, 1: 0}


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


def test_fail_fast_waits_for_the_last_attempt(stage: Stage) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 2 ]", "true")
    assert stage.run(run("-f", "--retries", "1", "-p", "P", "Tasks")).status == 0
    assert stage.codes("P") == {0: 0, 1: 0}
    stage.write("Bad", "exit 4", "until [ -e never ]; do sleep 0.02; done")
    assert stage.run(run("-f", "--retries", "1", "-j", "2", "-p", "Q", "Bad")).status == 1
    assert [one["code"] for one in stage.attempts("Q") if one["task"] == 0] == [4, 4]


def test_an_attempt_over_its_time_is_tried_again(stage: Stage) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 2 ] || sleep 1000")
    command = run("--timeout", "0.4", "--retries", "1", "-p", "P", "Tasks")
    assert stage.run(command).status == 0
    assert [one["outcome"] for one in stage.attempts("P")] == ["timed out", "exited"]


def test_a_check_waits_for_the_last_attempt(stage: Stage) -> None:
    stage.write("Tasks", "[ $OVERNIGHT_ATTEMPT = 2 ]", "#DISBATCH BARRIER CHECK", "true")
    assert stage.run(run("--retries", "1", "-p", "P", "Tasks")).status == 0
    assert stage.codes("P") == {0: 0, 2: 0}


def test_a_check_ends_a_run_below_the_limit_of_failures(stage: Stage) -> None:
    stage.write("Tasks", "false", "true", "#DISBATCH BARRIER CHECK", "true")
    ended = stage.run(run("--max-failures", "2", "-p", "P", "Tasks"))
    assert ended.status == 1
    assert "CHECK" in ended.err
    assert stage.codes("P") == {0: 1, 1: 0}
    assert [row.flags for row in stage.rows("P") if not row.is_task] == ["C    "]


def test_the_limit_of_failures_counts_over_barriers(stage: Stage) -> None:
    stage.write("Tasks", "false", "#DISBATCH BARRIER", "false", "#DISBATCH BARRIER", "true")
    assert stage.run(run("--max-failures", "2", "-p", "P", "Tasks")).status == 1
    assert stage.codes("P") == {0: 1, 2: 1}


def test_a_dry_run_of_a_resume_shows_what_was_done(stage: Stage) -> None:
    stage.write("Tasks", "true", "false", "true")
    stage.run(disbatch("-C", "2", "-t", "1", "-p", "P", "Tasks"))
    ended = stage.run(run("--dry-run", "-r", "P_status.txt", "Tasks"))
    assert "task 0, line 1: done before, exit code 0\n" in ended.out
    assert "task 1, line 2: done before, exit code 1\n" in ended.out
    assert "task 2, line 3\n" in ended.out
    assert "task 1, line 2\n" in stage.run(
        run("--dry-run", "-R", "-r", "P_status.txt", "Tasks")
    ).out


def test_a_dry_run_of_a_shuffled_list_shows_the_order_of_starts(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 20)
    shown = stage.run(run("--dry-run", "--shuffle=9", "Tasks")).out
    order = [int(line.split(",")[0].removeprefix("task ")) for line in shown.splitlines()
             if line.startswith("task ")]
    stage.run(run("--shuffle=9", "-j", "1", "-p", "P", "Tasks"))
    assert [row.id for row in stage.rows("P")] == order


def test_per_engine_commands_run_once_with_retries_and_a_limit(stage: Stage) -> None:
    stage.write("Tasks", "#DISBATCH PERENGINE START echo start >> order",
                "#DISBATCH PERENGINE STOP echo stop >> order",
                "echo $OVERNIGHT_ATTEMPT >> order; [ $OVERNIGHT_ATTEMPT = 2 ]")
    assert stage.run(run("-j", "2", "--retries", "1", "-p", "P", "Tasks")).status == 0
    assert stage.read("order").split() == ["start", "1", "2", "stop"]


def test_quiet_json_prints_events_alone(stage: Stage) -> None:
    stage.write("Tasks", "false")
    ended = stage.run(run("-q", "--json", "-p", "P", "Tasks"))
    assert ended.err == ""
    assert json.loads(ended.out.splitlines()[-1])["event"] == "finished"


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
