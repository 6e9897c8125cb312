"""Bad days of file systems: full, read-only, failing - and nothing lost by them."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter

import pytest

from tests.e2e.kit import Live, Stage, disbatch, overnight, run, until
from tests.file_systems import FrozenFolder, FullFolder, SlowFolder

FIRST = "echo > began; until [ -e go ]; do sleep 0.02; done"
"""A task during which the file system changes."""


def _ran(stage: Stage) -> Counter[int]:
    return Counter(int(word) for word in stage.read("side").split())


def _pauses(live: Live) -> None:
    live.says("cannot write the record: No space left on device")


@pytest.fixture
def on_full(stage: Stage, full_folder: FullFolder) -> tuple[Stage, FullFolder, str]:
    """A list of 20 tasks with long rows, and a prefix on a file system that can be filled."""
    padding = "x" * 3000
    stage.write("Tasks", FIRST, *[f"echo $DISBATCH_TASKID >> side; : {padding}"] * 20)
    return stage, full_folder, str(full_folder.path / "P")


@pytest.mark.needs("mounts")
def test_a_full_disk_pauses_the_run_until_there_is_room(
    on_full: tuple[Stage, FullFolder, str],
) -> None:
    stage, disk, prefix = on_full
    live = stage.start(run("-j", "1", "-p", prefix, "Tasks"))
    stage.appears("began")
    disk.fill(leave_kib=16)
    stage.write("go")
    _pauses(live)
    assert "do:    free space or bring the file system back" in live.err
    disk.relieve()
    ended = live.wait()
    assert ended.status == 0, ended.err
    assert "the run goes on" in ended.err
    assert stage.codes(prefix) == dict.fromkeys(range(21), 0)
    assert _ran(stage) == dict.fromkeys(range(1, 21), 1)
    settled = [one["task"] for one in stage.attempts(prefix)]
    assert sorted(settled) == list(range(21))


@pytest.mark.needs("mounts")
@pytest.mark.parametrize("command", ["disBatch", "overnight run"])
def test_what_a_full_disk_kept_from_the_record_is_collected_by_the_resume(
    on_full: tuple[Stage, FullFolder, str], command: str
) -> None:
    stage, disk, prefix = on_full
    is_ours = command == "overnight run"
    live = stage.start(
        run("-j", "2", "-p", prefix, "Tasks") if is_ours else disbatch("-p", prefix, "Tasks")
    )
    stage.appears("began")
    disk.fill(leave_kib=4)
    stage.write("go")
    until(lambda: "cannot write the record" in live.err, "the fault is told")
    for words in ("SIGINT", "SIGINT again"):
        live.signal(signal.SIGINT)
        live.says(words)
        if not is_ours:
            break
    ended = live.wait(40)
    assert ended.status == (4 if is_ours else 1), ended.err
    assert "Traceback" not in ended.err
    stage.is_empty_soon()
    before = _ran(stage)
    assert before, "something had run"
    disk.relieve()
    again = stage.run(overnight("resume", prefix))
    assert again.status == 0, again.err
    done = Counter(row.id for row in stage.rows(prefix) if not row.is_cut)
    assert done == dict.fromkeys(range(21), 1)
    assert _ran(stage) == dict.fromkeys(range(1, 21), 1), "what had run did not run again"
    assert not [path.name for path in disk.path.glob("*spool")]


@pytest.mark.needs("mounts")
@pytest.mark.parametrize("command", [disbatch, run])
def test_a_disk_that_is_full_from_the_start_is_told_and_nothing_is_half_made(
    on_full: tuple[Stage, FullFolder, str], command: object
) -> None:
    stage, disk, prefix = on_full
    disk.fill()
    ended = stage.run(command("-p", prefix, "Tasks"))  # type: ignore[operator]
    assert ended.status == 1
    assert "No space left on device" in ended.err
    assert "nothing was started" in ended.err
    assert [path.name for path in disk.path.iterdir()] == [".ballast"]
    assert not _ran(stage)


@pytest.mark.needs("mounts")
def test_a_read_only_folder_is_told_before_anything_starts(
    stage: Stage, frozen_folder: FrozenFolder
) -> None:
    stage.write("Tasks", "echo 1 >> side")
    frozen_folder.freeze()
    ended = stage.run(disbatch("-p", frozen_folder.path / "P", "Tasks"))
    assert ended.status == 1
    assert "Read-only file system" in ended.err
    assert str(frozen_folder.path) in ended.err
    assert not _ran(stage)


@pytest.mark.needs("fuse")
@pytest.mark.parametrize("error", ["ESTALE", "EIO"])
def test_a_file_system_that_fails_for_a_while_pauses_the_run(
    stage: Stage, slow_folder: SlowFolder, error: str
) -> None:
    stage.write("Tasks", FIRST, *["echo 1 >> side"] * 10)
    prefix = str(slow_folder.path / "P")
    live = stage.start(run("-j", "1", "-p", prefix, "Tasks"))
    stage.appears("began")
    slow_folder.fail(error, "write", "fsync")
    stage.write("go")
    live.says("cannot write the record")
    slow_folder.recover()
    assert live.wait().status == 0
    assert stage.codes(prefix) == dict.fromkeys(range(11), 0)
    assert stage.read("side") == "1\n" * 10


@pytest.mark.needs("fuse")
def test_a_slow_disk_holds_up_the_barrier_and_not_the_tasks(
    stage: Stage, slow_folder: SlowFolder
) -> None:
    stage.write("Tasks", *["echo 1 >> side"] * 50, "#DISBATCH BARRIER", "echo 2 >> side")
    prefix = str(slow_folder.path / "P")
    slow_folder.slow_down(1.0, "fsync")
    ended = stage.run(run("-p", prefix, "Tasks"))
    assert ended.status == 0
    rows = stage.rows(prefix)
    assert [row.id for row in rows[-2:]] == [50, 51]
    assert rows[-1].started_at - max(row.finished_at for row in rows[:50]) > 0.9


@pytest.mark.needs("fuse")
def test_a_list_that_cannot_be_read_any_further_ends_the_run_and_can_be_resumed(
    stage: Stage, slow_folder: SlowFolder
) -> None:
    padding = "x" * 20_000
    tasks = slow_folder.path / "Tasks"
    tasks.write_text("".join(f"{line}\n" for line in (FIRST, *[f": {padding}"] * 150)))
    size = tasks.stat().st_size
    os.truncate(tasks, 257 << 20)  # too large to be looked through, so nothing is in memory yet
    live = stage.start(run("-j", "2", "-p", "P", tasks))
    stage.appears("began")
    slow_folder.fail("EIO", "read")
    stage.write("go")
    ended = live.wait()
    assert ended.status == 1
    assert "the list cannot be read any further: Input/output error" in ended.err
    assert f"overnight resume {stage.path('P')}" in ended.err
    done = len(stage.codes("P"))
    assert 0 < done < 151
    slow_folder.recover()
    os.truncate(tasks, size)
    assert stage.run(overnight("resume", "P")).status == 0
    assert stage.codes("P") == dict.fromkeys(range(151), 0)


def test_a_list_that_cannot_be_opened_is_a_usage_error(stage: Stage) -> None:
    ended = stage.run(disbatch("-p", "P", "nosuch"))
    assert ended.status == 2
    assert "can't open 'nosuch'" in ended.err
    stage.path("folder").mkdir()
    ended = stage.run(disbatch("-p", "P", "folder"))
    assert ended.status == 2
    assert "folder" in ended.err
    assert not list(stage.folder.glob("P_*"))


def test_a_list_that_is_removed_while_it_runs_runs_to_its_end(stage: Stage) -> None:
    stage.write("Tasks", "rm Tasks", *["true"] * 200)
    assert stage.run(run("-j", "1", "-p", "P", "Tasks")).status == 0
    assert len(stage.codes("P")) == 201


def test_lines_added_while_a_list_runs_are_run(stage: Stage) -> None:
    stage.write("Tasks", "echo 'echo 1 >> side' >> Tasks; echo 'echo 2 >> side' >> Tasks")
    ended = stage.run(run("-j", "1", "-p", "P", "Tasks"))
    assert ended.status == 0
    assert len(stage.codes("P")) >= 1


@pytest.mark.parametrize("log", ["missing/driver.log", "folder"])
def test_a_log_that_cannot_be_written_is_told_and_nothing_is_made(stage: Stage, log: str) -> None:
    stage.write("Tasks", "true")
    stage.path("folder").mkdir()
    ended = stage.run(disbatch("--logfile", log, "-p", "P", "Tasks"))
    assert ended.status == 1
    assert log.split("/")[0] in ended.err
    assert "Traceback" not in ended.err
    assert not list(stage.folder.glob("P_*"))


@pytest.mark.needs("mounts")
def test_output_that_finds_no_room_is_told_and_its_task_counts(
    stage: Stage, full_folder: FullFolder
) -> None:
    stage.write("Tasks", "echo out", "echo err >&2")
    full_folder.fill()
    ended = stage.run(run("--json", "--output", full_folder.path / "kept", "-p", "P", "Tasks"))
    assert stage.codes("P").keys() == {0, 1}
    assert "Traceback" not in ended.err
    assert [json.loads(line) for line in ended.out.splitlines()][-1]["event"] == "finished"
