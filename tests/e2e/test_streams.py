"""Lists that come slowly, and lists that are large."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.e2e.kit import Live, Stage, disbatch, overnight, run, until

WAIT = "echo > began; until [ -e go ]; do sleep 0.02; done"


def _feed(live: Live, text: str) -> None:
    assert live.process.stdin is not None
    os.write(live.process.stdin.fileno(), text.encode())


def test_a_line_that_arrives_runs_before_the_next_one_comes(stage: Stage) -> None:
    live = stage.start(disbatch("-p", "P", "-"), stdin=-1)
    for name in ("one", "two", "three"):
        _feed(live, f"echo > {name}\n")
        stage.appears(name)
    assert not live.is_over
    assert live.process.stdin is not None
    live.process.stdin.close()
    assert live.wait().status == 0
    assert stage.codes("P") == {0: 0, 1: 0, 2: 0}


def test_half_a_line_waits_for_its_end(stage: Stage) -> None:
    live = stage.start(disbatch("-p", "P", "-"), stdin=-1)
    _feed(live, "echo > begun; echo > whole")
    _feed(live, "_line\necho > last")
    stage.appears("whole_line")
    assert not stage.path("last").exists()
    assert live.process.stdin is not None
    live.process.stdin.close()
    assert live.wait().status == 0
    assert stage.path("last").exists()


def test_a_fifo_as_a_list_is_read_live(stage: Stage) -> None:
    os.mkfifo(stage.path("fifo"))
    live = stage.start(["bash", "-c", f"exec {' '.join(disbatch('-p', 'P', '-'))} < fifo"])
    with stage.path("fifo").open("w") as fifo:
        fifo.write("echo > one\n")
        fifo.flush()
        stage.appears("one")
        fifo.write("#DISBATCH BARRIER\necho > two\n")
        fifo.flush()
        stage.appears("two")
    assert live.wait().status == 0


def test_a_barrier_on_a_stream_waits_for_what_came_before(stage: Stage) -> None:
    live = stage.start(disbatch("-p", "P", "-"), stdin=-1)
    _feed(live, f"{WAIT}\n#DISBATCH BARRIER\necho > after\n")
    stage.appears("began")
    assert not stage.path("after").exists()
    stage.write("go")
    stage.appears("after")
    assert live.process.stdin is not None
    live.process.stdin.close()
    assert live.wait().status == 0
    before, barrier, after = stage.rows("P")
    assert barrier.flags == "B    "
    assert before.finished_at <= after.started_at


def test_a_suspicious_line_on_a_stream_lets_what_runs_finish(stage: Stage) -> None:
    live = stage.start(disbatch("-p", "P", "-"), stdin=-1)
    _feed(live, f"{WAIT}\n")
    stage.appears("began")
    _feed(live, "#DISBATCH BARIER\necho > never\n")
    live_log = "P_driver.log"
    until(lambda: live.is_over or "has joined" in stage.read(live_log), "it goes on")
    stage.write("go")
    ended = live.wait()
    assert ended.status == 1
    assert "BARIER" in ended.err
    assert stage.codes("P") == {0: 0}
    assert not stage.path("never").exists()


def test_an_empty_stream_has_no_tasks(stage: Stage) -> None:
    ended = stage.run(disbatch("-p", "P", "-"))
    assert (ended.status, ended.err) == (0, "No tasks to run.\n")


def _memory_kib(pid: int) -> int:
    """Most resident memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _bytes_read(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def _end(live: Live) -> None:
    for number in (1, 2):
        live.signal(signal.SIGINT)
        live.says("SIGINT again" if number == 2 else "SIGINT")
    live.wait()


def test_a_million_lines_take_no_memory(stage: Stage) -> None:
    with stage.path("Tasks").open("w") as tasks:
        tasks.write(f"{WAIT}\n")
        for _ in range(1000):
            tasks.write("true some argument or other\n" * 1000)
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    memory_kib = _memory_kib(live.pid)
    _end(live)
    stage.write("Few", WAIT, "true")
    stage.path("began").unlink()
    live = stage.start(run("-j", "1", "-p", "Q", "Few"))
    stage.appears("began")
    few_kib = _memory_kib(live.pid)
    _end(live)
    assert memory_kib < few_kib + 8 * 1024


def test_a_huge_list_is_not_read_to_its_end_before_its_first_task(stage: Stage) -> None:
    tasks = stage.write("Tasks", WAIT, *["true"] * 400_000)
    os.truncate(tasks, 300 << 20)  # a hole that nobody should come to
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    stage.appears("began")
    assert _bytes_read(live.pid) < 30 << 20
    _end(live)


def test_a_run_whose_list_came_through_a_pipe_cannot_read_it_again_and_says_so(
    stage: Stage,
) -> None:
    command = 'overnight run -q -p P <(printf "true\\nfalse\\n")'
    ended = stage.run(["bash", "-c", command.replace("overnight", run()[0])])
    assert ended.status == 1
    again = stage.run(overnight("resume", "P"))
    assert again.status == 1
    status, prefix = stage.path("P_status.txt"), stage.path("P")
    assert again.err == (
        f"{prefix}: its tasks came from standard input or a pipe, which cannot be read again\n"
        "  kept:  nothing was started\n"
        f"  do:    feed them again: ... | overnight run -r {status} -p {prefix} -\n"
    )
    for verb in ("report", "attach"):
        told = stage.run(overnight(verb, "P")).out
        assert f"... | overnight run -R -r {status} -p {prefix} -\n" in told.replace(
            "-r P_status.txt -p P", f"-r {status} -p {prefix}"
        )


def test_a_pipe_closes_with_the_command_that_feeds_it_again(stage: Stage) -> None:
    command = 'overnight run -p P <(printf "false\\n")'
    ended = stage.run(["bash", "-c", command.replace("overnight", run()[0])])
    assert f"... | overnight run -R -r {stage.path('P_status.txt')} " in ended.err
