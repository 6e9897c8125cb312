"""An engine whose driver is gone: it finishes what runs, writes it down, and can be found."""

from __future__ import annotations

import os
import select
import socket
import stat
import time
from pathlib import Path

import pytest

from overnight.formats.spool import Spooled, parse_spool
from overnight.model import messages as m
from overnight.model.outcome import Exited
from overnight.model.task import PerEngine
from tests import file_systems
from tests.engine.kit import LIMIT_S, Driver, Started, attempt, setup_for, started, wait_until

WAITS = "touch running.$DISBATCH_TASKID; while [ ! -e go ]; do sleep 0.02; done; echo done >> log"


def running(folder: Path, *ids: int) -> None:
    wait_until(lambda: all((folder / f"running.{id}").exists() for id in ids), f"{ids} run")


def spooled(folder: Path) -> Spooled:
    return parse_spool((folder / "spool").read_bytes())


def attach(folder: Path, **changes: object) -> Driver:
    """A new driver, connected to the engine that is alone."""
    setup = setup_for(folder, **changes)
    door = Path(setup.attach)
    wait_until(door.exists, "the engine listens")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(door))
    driver = Driver(setup, connection.detach())
    driver.wait(lambda: bool(driver.hello), "hello")
    driver.wait(lambda: len(driver.running) == driver.hello["running"], "what runs")
    return driver


def test_what_runs_finishes_and_nothing_else_is_started(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open([PerEngine(False, 0, 1, b"echo stop >> log")])
        engine.driver.assign(*[attempt(id, WAITS) for id in range(4)])
        running(tmp_path, 0, 1)
        engine.driver.hang_up()
        wait_until((tmp_path / "door" / "attach").exists, "the engine listens")
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")
    assert (tmp_path / "log").read_text() == "done\ndone\nstop\n"
    kept = spooled(tmp_path)
    assert sorted(each.task.id for each, _ in kept.kept) == [0, 1]
    assert {each.task.command for each, _ in kept.kept} == {WAITS.encode()}
    assert all(isinstance(report.outcome, Exited) for _, report in kept.kept)
    assert [(at_start, r.task_id) for at_start, r in kept.commands] == [(False, 0)]
    assert kept.torn_bytes == 0
    assert not (tmp_path / "door" / "attach").exists()


def test_reports_that_were_not_acknowledged_are_written_down(tmp_path: Path) -> None:
    with started(tmp_path, slots=1, acknowledges=False) as engine:
        engine.driver.open()
        engine.driver.run("true", "exit 3")
        engine.driver.hang_up()
        wait_until(engine.has_ended, "the engine leaves")
    assert [r.outcome.code for _, r in spooled(tmp_path).kept] == [0, 3]


def test_an_engine_that_had_nothing_to_tell_leaves_no_file(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.open()
        engine.driver.run("true")
        engine.driver.hang_up()
        wait_until(engine.has_ended, "the engine leaves")
    assert not (tmp_path / "spool").exists()


def test_a_driver_that_never_said_anything_leaves_no_engine(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.driver.hang_up()
        wait_until(engine.has_ended, "the engine leaves")


def test_a_new_driver_takes_over_and_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open([PerEngine(True, 0, 1, b"echo start >> log")])
        engine.driver.assign(attempt(0, "exit 5"), attempt(1, WAITS))
        running(tmp_path, 1)
        engine.driver.report_of(0)
        engine.driver.assign(attempt(2, WAITS))
        running(tmp_path, 2)
        engine.driver.hang_up()
        driver = attach(tmp_path, generation=2, slots=2)
        assert driver.hello["pid"] == engine.pid
        assert driver.hello["generation"] == 1
        assert driver.hello["started"] is True
        assert sorted(each.task.id for each in driver.running) == [1, 2]
        driver.open([PerEngine(True, 0, 1, b"echo start >> log")])
        (tmp_path / "go").touch()
        for id in (1, 2):
            assert driver.report_of(id).outcome.code == 0
        driver.assign(attempt(3, "echo three >> log"))
        assert driver.report_of(3).outcome.code == 0
        driver.close()
        wait_until(engine.has_ended, "the engine leaves")
    assert sorted((tmp_path / "log").read_text().split()) == ["done", "done", "start", "three"]
    assert not (tmp_path / "spool").exists()


def test_what_ended_while_nobody_listened_is_told_and_the_file_goes(tmp_path: Path) -> None:
    with started(tmp_path, slots=2) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, "while [ ! -e first ]; do sleep 0.02; done"))
        engine.driver.assign(attempt(1, WAITS))
        running(tmp_path, 1)
        engine.driver.hang_up()
        wait_until((tmp_path / "door" / "attach").exists, "the engine listens")
        (tmp_path / "first").touch()
        wait_until((tmp_path / "spool").exists, "it is written down")
        driver = attach(tmp_path, generation=2, slots=2)
        assert [each.task.id for each in driver.running] == [1]
        driver.open()
        driver.wait(lambda: len(driver.kept) == 1, "the kept report")
        (kept, report), = driver.kept
        assert kept.task.id == 0
        assert report.outcome.code == 0
        wait_until(lambda: not (tmp_path / "spool").exists(), "the spool is gone")
        (tmp_path / "go").touch()
        driver.report_of(1)
        driver.close()
        wait_until(engine.has_ended, "the engine leaves")


def test_a_driver_of_the_past_is_told_so_and_the_engine_goes_on_alone(tmp_path: Path) -> None:
    with started(tmp_path, slots=1, generation=4) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        late = attach(tmp_path, generation=4)
        late.set_up()
        give_up_at = time.monotonic() + LIMIT_S
        while not late.link.closed and time.monotonic() < give_up_at:
            select.select([late.link.read_fd], [], [], 0.1)
            late.listen()
        assert late.notices == ["a driver of generation 4 has this engine"]
        late.link.close()
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")
    assert len(spooled(tmp_path).kept) == 1


def test_a_driver_that_attaches_and_vanishes_changes_nothing(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        attach(tmp_path, generation=2).hang_up()
        driver = attach(tmp_path, generation=2, slots=1)
        driver.open()
        (tmp_path / "go").touch()
        assert driver.report_of(0).outcome.code == 0
        driver.close()
        wait_until(engine.has_ended, "the engine leaves")


def test_a_driver_that_attaches_and_says_nothing_does_not_keep_others_out(
    tmp_path: Path,
) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        silent = attach(tmp_path, generation=2)
        driver = attach(tmp_path, generation=2, slots=1)
        driver.open()
        (tmp_path / "go").touch()
        assert driver.report_of(0).outcome.code == 0
        silent.hang_up()
        driver.close()
        wait_until(engine.has_ended, "the engine leaves")


def test_the_door_is_for_this_user_alone(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        door = tmp_path / "door" / "attach"
        wait_until(door.exists, "the engine listens")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (door, door.parent)]
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")
    assert modes == [0o600, 0o700]


def test_a_door_in_a_directory_that_others_may_enter_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "door").mkdir(mode=0o755)
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        wait_until(lambda: engine.log.read_text() != "", "the engine says so")
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")
        assert "not a directory of this user alone" in engine.log.read_text()
        engine.log.write_text("")
    assert not (tmp_path / "door" / "attach").exists()
    assert len(spooled(tmp_path).kept) == 1


@pytest.mark.needs("root")
def test_another_user_who_knocks_is_sent_away(tmp_path: Path) -> None:
    with started(tmp_path, slots=1) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS))
        running(tmp_path, 0)
        engine.driver.hang_up()
        door = tmp_path / "door" / "attach"
        wait_until(door.exists, "the engine listens")
        assert bytes_for(engine, door, uid=65534) == b""
        assert bytes_for(engine, door, uid=0).startswith(m.MAGIC)
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")


def bytes_for(engine: Started, door: Path, uid: int) -> bytes:
    """What somebody with this user id is told who has got as far as the socket."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            folder = os.open(door.parent, os.O_PATH)
            os.chmod(door, 0o666)
            os.chmod(door.parent, 0o711)
            os.fchdir(folder)
            os.setresuid(uid, uid, uid)
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(LIMIT_S)
            connection.connect(door.name)
            os.write(write_fd, connection.recv(100))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write_fd)
    with open(read_fd, "rb") as pipe:
        return pipe.read()


@pytest.mark.needs("mounts")
def test_where_the_first_spool_is_full_the_next_is_taken(
    tmp_path: Path, full_folder: file_systems.FullFolder
) -> None:
    full_folder.fill()
    first, second = full_folder.path / "spool", tmp_path / "spool"
    with started(tmp_path, slots=1, spools=[str(first), str(second)]) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS + " " * 20_000))
        running(tmp_path, 0)
        engine.driver.hang_up()
        (tmp_path / "go").touch()
        wait_until(engine.has_ended, "the engine leaves")
        assert "no reports can be kept" in engine.log.read_text()
        engine.log.write_text("")
    assert len(spooled(tmp_path).kept) == 1
    assert not first.exists() or parse_spool(first.read_bytes()).kept == []


@pytest.mark.needs("mounts")
def test_where_no_spool_can_be_written_it_waits_and_a_driver_gets_the_reports(
    tmp_path: Path, full_folder: file_systems.FullFolder
) -> None:
    full_folder.fill()
    with started(tmp_path, slots=1, spools=[str(full_folder.path / "spool")]) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS + " " * 20_000))
        running(tmp_path, 0)
        engine.driver.hang_up()
        (tmp_path / "go").touch()
        wait_until(lambda: "no reports can be kept" in engine.log.read_text(), "it says so")
        assert not engine.has_ended()
        driver = attach(tmp_path, generation=2, slots=1)
        driver.set_up()
        driver.wait(lambda: len(driver.kept) == 1, "the kept report")
        driver.wait(lambda: driver.link.closed, "the engine leaves")
        wait_until(engine.has_ended, "the engine's process ends")
        engine.log.write_text("")


@pytest.mark.needs("mounts")
def test_a_spool_that_can_be_written_again_is_written(
    tmp_path: Path, full_folder: file_systems.FullFolder
) -> None:
    full_folder.fill()
    spool = full_folder.path / "spool"
    with started(tmp_path, slots=1, spools=[str(spool)]) as engine:
        engine.driver.open()
        engine.driver.assign(attempt(0, WAITS + " " * 20_000))
        running(tmp_path, 0)
        engine.driver.hang_up()
        (tmp_path / "go").touch()
        wait_until(lambda: "no reports can be kept" in engine.log.read_text(), "it says so")
        full_folder.relieve()
        wait_until(engine.has_ended, "the engine leaves")
        engine.log.write_text("")
        assert len(parse_spool(spool.read_bytes()).kept) == 1
