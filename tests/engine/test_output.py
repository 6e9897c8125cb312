"""Output nobody redirected: counted and cut short, or kept in files; fair and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from overnight.engine.capture import Pipe
from overnight.model.report import Leak
from tests import file_systems
from tests.engine.kit import attempt, started, wait_until


def leak_of(text: bytes) -> Leak:
    return Leak(len(text), text[:40], text[40:][-40:]) if text else Leak()


@pytest.mark.parametrize("count", [0, 1, 39, 40, 41, 79, 80, 81, 120, 70_000, 200_000])
def test_the_first_and_last_forty_bytes_are_kept(tmp_path: Path, count: int) -> None:
    text = "".join(f"{number}," for number in range(40_000))[:count].encode()
    (tmp_path / "text").write_bytes(text)
    with started(tmp_path) as engine:
        engine.driver.open()
        out, err = engine.driver.run("cat text", "cat text >&2; exit 0")
    assert (out.out, out.err) == (leak_of(text), Leak())
    assert (err.out, err.err) == (Leak(), leak_of(text))


def test_bytes_that_come_one_by_one_make_the_same_snippet() -> None:
    import os

    text = bytes(range(200))
    fd, write_fd = os.pipe()
    os.set_blocking(fd, False)
    pipe = Pipe(fd)
    for place in range(len(text)):
        os.write(write_fd, text[place:place + 1])
        pipe.read(10)
    os.close(write_fd)
    pipe.read(10)
    assert not pipe.is_open
    assert pipe.leak() == leak_of(text)
    pipe.close(may_be_written=False)


def test_late_output_of_a_background_child_counts_and_is_not_in_the_elapsed_time(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("( sleep 0.4 ; echo late ) & echo early")
    assert report.out == leak_of(b"early\nlate\n")
    assert report.elapsed_s < 0.4


def test_a_child_that_keeps_the_output_holds_the_slot_no_longer_than_allowed(
    tmp_path: Path,
) -> None:
    command = "sleep 60 & echo $! > child; echo hi"
    with started(tmp_path, late_output_s=0.3) as engine:
        engine.driver.open()
        (report,) = engine.driver.run(command)
        child = int((tmp_path / "child").read_text())
        assert Path(f"/proc/{child}").exists()
    assert report.left_running == 1
    assert report.out == leak_of(b"hi\n")
    assert report.elapsed_s < 0.3
    # what is released is not the engine's any more: the test tidies up
    import os

    os.kill(child, 9)


def test_a_task_that_floods_does_not_starve_the_others(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, "while [ ! -e stop ]; do echo flood; done"))
        engine.driver.assign(*[attempt(id) for id in range(1, 21)])
        for id in range(1, 21):
            engine.driver.report_of(id)
        (tmp_path / "stop").touch()
        assert engine.driver.report_of(0).out.count > 0


def test_much_output_is_read_in_bounded_memory(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.run("true")
        (runner,) = engine.runners()
        before = peak_kib(runner)
        (report,) = engine.driver.run("head -c 100000000 /dev/zero")
        assert report.out.count == 100_000_000
        assert peak_kib(runner) - before < 2000


def peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def test_output_goes_to_files_and_empty_ones_are_not_left(tmp_path: Path) -> None:
    with started(tmp_path, output_dir=str(tmp_path / "logs")) as engine:
        engine.driver.open()
        engine.driver.assign(
            attempt(0, "echo out; echo err >&2"), attempt(1, "echo only"), attempt(2, "true"),
            attempt(1001, "echo again >&2", number=2),
        )
        both, only, none = (engine.driver.report_of(id) for id in range(3))
        engine.driver.report_of(1001)
    logs = tmp_path / "logs"
    files = {str(p.relative_to(logs)): p.read_text() for p in logs.rglob("*") if p.is_file()}
    assert files == {
        "0/0.out": "out\n", "0/0.err": "err\n", "0/1.out": "only\n", "1/1001.2.err": "again\n",
    }
    assert (both.out, both.err) == (leak_of(b"out\n"), leak_of(b"err\n"))
    assert (only.out, none.out) == (leak_of(b"only\n"), Leak())


def test_a_file_holds_all_of_the_output_and_the_report_both_ends(tmp_path: Path) -> None:
    text = "".join(f"{number}," for number in range(40_000)).encode()
    (tmp_path / "text").write_bytes(text)
    with started(tmp_path, output_dir=str(tmp_path / "logs")) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("cat text")
    assert report.out == leak_of(text)
    assert (tmp_path / "logs/0/0.out").read_bytes() == text


def test_a_file_that_a_child_may_still_fill_stays(tmp_path: Path) -> None:
    command = "( while [ ! -e go ]; do sleep 0.02; done; echo late ) &"
    with started(tmp_path, output_dir=str(tmp_path / "logs")) as engine:
        engine.driver.open()
        (report,) = engine.driver.run(command)
        assert report.left_running >= 1  # the child, and the sleep it may be at
        file = tmp_path / "logs/0/0.out"
        assert file.read_text() == ""
        (tmp_path / "go").touch()
        wait_until(lambda: file.read_text() == "late\n", "the child writes")


@pytest.mark.needs("mounts")
def test_where_no_file_can_be_made_the_task_runs_and_it_is_said(
    tmp_path: Path, frozen_folder: file_systems.FrozenFolder
) -> None:
    frozen_folder.freeze()
    with started(tmp_path, output_dir=str(frozen_folder.path / "logs")) as engine:
        engine.driver.open()
        (report,) = engine.driver.run("echo hi")
    assert report.out == leak_of(b"hi\n")
    assert any("not kept" in notice for notice in engine.driver.notices)
