"""An engine whose file comes down its standard input, as ssh brings it to another machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from overnight.formats import link as f
from overnight.formats.bootstrap_far import (
    LOADER,
    NO_PYTHON_STATUS,
    far_command,
    far_file,
    usual_pythons,
)
from overnight.guard.leftovers import GoneEngine, end_leftovers, leftovers
from overnight.guard.processes import boot_id, place
from overnight.model import messages as m
from tests.engine.kit import Driver, attempt, engine_file, setup_for, wait_until
from tests.interpreters import find_interpreter

WAITS = "touch running.$DISBATCH_TASKID; while [ ! -e go ]; do sleep 0.02; done; echo x >> log"


class Far:
    """A process that a login shell would have started, and the link to it."""

    def __init__(self, folder: Path, python: str, wanted: Mapping[str, object]) -> None:
        data = far_file(Path(engine_file(folder)).read_bytes())
        ours, theirs = socket.socketpair()
        self.log = folder / "shell.log"
        with theirs, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", far_command([python], len(data))], stdin=theirs, stdout=theirs,
                stderr=log, cwd="/", start_new_session=True,
            )
        with suppress(OSError):  # it has ended: the test looks at what it said
            ours.sendall(LOADER + data + f.frame(m.ENTER, f.encode_control(wanted)))
        self.link = ours

    def has_ended(self) -> bool:
        return self.process.poll() is not None


def _engine_wanted(folder: Path, **changes: object) -> dict[str, object]:
    beacon = folder / "beacon"
    beacon.write_bytes(b"this run")
    return {
        "verb": "engine", "cwd": str(folder), "beacon": str(beacon), "beacon_text": b"this run",
        "log": str(folder / "engine.log"), "tell": [], **changes,
    }


@contextmanager
def far_engine(
    folder: Path, python: str = sys.executable, wanted: Mapping[str, object] | None = None,
    **setup: Any,
) -> Iterator[tuple[Far, Driver]]:
    """An engine, and a driver that has set it up."""
    far = Far(folder, python, _engine_wanted(folder, **(wanted or {})))
    driver = Driver(setup_for(folder, driver="first", **setup), far.link.detach())
    try:
        yield far, driver
    finally:
        driver.hang_up()
        (folder / "go").touch()
        wait_until(far.has_ended, "the engine leaves")


def knock(folder: Path, **changes: Any) -> Driver:
    """Somebody at the engine's door."""
    setup = setup_for(folder, **changes)
    wait_until(Path(setup.attach).exists, "the engine listens")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(setup.attach)
    driver = Driver(setup, connection.detach())
    driver.wait(lambda: bool(driver.hello), "hello")
    return driver


def first_frame(far: Far) -> tuple[int, dict[str, Any]]:
    """What a process says that is no engine."""
    said = b""
    while data := far.link.recv(65536):
        said += data
    (kind, payload), = f.FrameReader().feed(said[said.index(m.MAGIC) + len(m.MAGIC):])
    return kind, f.decode_control(payload)


def _python(version: tuple[int, int]) -> str:
    return str(find_interpreter(version))


@pytest.mark.parametrize("version", [
    sys.version_info[:2],
    pytest.param((3, 9), marks=pytest.mark.needs("python3.9")),  # makes all code itself
])
def test_it_starts_from_its_input_alone_and_runs_tasks(
    tmp_path: Path, version: tuple[int, int]
) -> None:
    with far_engine(tmp_path, _python(version)) as (_, driver):
        driver.open()
        assert driver.hello["python"].startswith(".".join(map(str, version)))
        assert [report.outcome.code for report in driver.run("true", "exit 3")] == [0, 3]
        driver.close()
    assert (tmp_path / "engine.log").read_text() == ""
    assert (tmp_path / "shell.log").read_text() == ""


def test_tasks_and_prints_cannot_touch_the_link(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (far, driver):
        driver.open()
        driver.run("ls -l /proc/self/fd > fds; cat > in")
        held = {os.readlink(f"/proc/{far.process.pid}/fd/{fd}") for fd in range(2)}
        driver.close()
    assert held == {"/dev/null", str(tmp_path / "engine.log")}
    assert (tmp_path / "fds").read_text().count(" -> ") == 4
    assert (tmp_path / "in").read_text() == ""


def test_it_says_the_values_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICES", "a,b")
    with far_engine(tmp_path, wanted={"tell": ["DEVICES", "NOT_SET"]}) as (_, driver):
        driver.wait(lambda: bool(driver.hello), "hello")
        assert driver.hello["values"] == {"DEVICES": "a,b"}
        assert driver.hello["place"] == place()


@pytest.mark.parametrize(("changes", "reason"), [
    ({"cwd": "/no/such/folder"}, "/no/such/folder cannot be entered there: No such file"),
    ({"beacon": "/no/beacon"}, "the run's folder /no is not shared with it"),
    ({"beacon_text": b"another run"}, "is not shared with it"),
])
def test_it_says_why_it_can_run_nothing(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    far = Far(tmp_path, sys.executable, _engine_wanted(tmp_path) | changes)
    kind, said = first_frame(far)
    assert kind == m.CANNOT
    assert reason in said["reason"]
    assert far.process.wait(20) == 1


@pytest.mark.parametrize("old", ["2.7", "3.6", "3.8"])
def test_an_interpreter_that_is_too_old_is_named(tmp_path: Path, old: str) -> None:
    found = sorted(Path.home().glob(f".pyenv/versions/{old}*/bin/python"))
    python = str(found[0]) if found else str(tmp_path / "old")
    if not found:  # stands in for one: it fails the question, and gives its version
        Path(python).write_text(f"#!/bin/sh\n[ $1 = -V ] && echo Python {old}.1 || exit 1\n")
        Path(python).chmod(0o755)
    far = Far(tmp_path, python, _engine_wanted(tmp_path))
    assert far.process.wait(20) == NO_PYTHON_STATUS
    said = far.log.read_text()
    assert f"no {python} of Python 3.9 or later is there; {python} is Python {old}." in said


def test_interpreters_are_tried_newest_first_after_the_drivers_own() -> None:
    assert usual_pythons("/opt/bin/python3")[:2] == ["/opt/bin/python3", "python3.14"]
    assert usual_pythons("/opt/my python")[0] == "python3.14"
    assert usual_pythons("/opt/bin/python3")[-2:] == ["python3.9", "python3"]


@pytest.mark.parametrize("char", "'!\\\n")
def test_the_command_line_holds_nothing_that_shells_read_differently(char: str) -> None:
    inner = far_command(usual_pythons("/usr/bin/python3"), 600_000)[len("exec sh -c '"):-1]
    assert char not in inner


# -- the door while there is a driver -----------------------------------------------------


def test_a_later_driver_takes_over_from_one_that_is_still_there(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (_, first):
        first.open()
        first.assign(attempt(0, WAITS))
        wait_until((tmp_path / "running.0").exists, "the task runs")
        second = knock(tmp_path, generation=2)
        second.set_up()
        second.wait(lambda: m.TAKEN in second.kinds, "it is taken")
        assert {one.task.id for one in second.running} == {0}
        first.wait(lambda: first.link.closed, "the first driver is hung up on")
        (tmp_path / "go").touch()
        assert second.report_of(0).outcome.code == 0
        second.close()
    assert (tmp_path / "log").read_text() == "x\n"


@pytest.mark.parametrize("changes", [
    {"generation": 0}, {"generation": 1, "driver": "another"}, {"generation": 1, "driver": ""},
])
def test_a_visitor_that_may_not_be_obeyed_disturbs_nobody(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with far_engine(tmp_path) as (_, first):
        first.open()
        visitor = knock(tmp_path, **changes)
        visitor.set_up()
        visitor.wait(lambda: visitor.link.closed, "it is sent away")
        assert visitor.notices == ["a driver of generation 1 has this engine"]
        silent = knock(tmp_path, generation=5)
        assert first.run("true")[0].outcome.code == 0
        silent.hang_up()
        garbage = knock(tmp_path, generation=5)
        garbage.send(m.ASSIGN, f.encode_attempts([attempt(7, "touch garbage")]))
        garbage.wait(lambda: garbage.link.closed, "it is sent away")
        assert first.run("true")[0].outcome.code == 0
        first.close()
    assert not (tmp_path / "garbage").exists()
    log = (tmp_path / "engine.log").read_text()
    assert "somebody at the door is not understood" in log


def test_the_same_driver_may_come_again_and_hears_what_it_missed(tmp_path: Path) -> None:
    with far_engine(tmp_path, slots=1) as (_, first):
        first._acknowledges = False  # what it has heard need not have been recorded
        first.open()
        first.run("true")
        first.assign(attempt(1, WAITS), attempt(2, "echo x >> log"))
        wait_until((tmp_path / "running.1").exists, "the task runs")
        again = knock(tmp_path, driver="first")
        again.set_up()
        again.wait(lambda: m.TAKEN in again.kinds, "it is taken")
        assert [pair[0].task.id for pair in again.kept] == [0]
        assert 1 in {one.task.id for one in again.running}
        again.wait(lambda: again.recalled == [2], "what was not started is handed back")
        (tmp_path / "go").touch()
        assert again.report_of(1).outcome.code == 0
        again.close()
    assert (tmp_path / "log").read_text() == "x\n", "what was handed back is not started"


# -- looking for an engine ------------------------------------------------------------------


def _attach_wanted(driver: Driver, **changes: object) -> dict[str, object]:
    setup, hello = driver.setup, driver.hello
    return {
        "verb": "attach", "pid": hello["pid"], "start": hello["start"], "boot": hello["boot"],
        "place": hello["place"], "attach": setup.attach, "spools": list(setup.spools),
        "runs": [setup.run], "rank": setup.rank, "folders": [setup.cwd], "kill_after_s": 0.2,
        "released": [], "recorded": b"", **changes,
    }


def test_a_relay_joins_a_driver_to_an_engine_that_lives(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (_, first):
        first.open()
        first.assign(attempt(0, WAITS))
        wait_until((tmp_path / "running.0").exists, "the task runs")
        relay = Far(tmp_path, sys.executable, _attach_wanted(first))
        second = Driver(setup_for(tmp_path, generation=2), relay.link.detach())
        second.wait(lambda: bool(second.hello), "hello through the relay")
        second.set_up()
        second.wait(lambda: m.TAKEN in second.kinds, "it is taken")
        (tmp_path / "go").touch()
        assert second.report_of(0).outcome.code == 0
        second.run("true " + "#" * 100_000, "true")
        second.close()
        wait_until(relay.has_ended, "the relay leaves")


def test_proof_that_a_killed_engine_has_ended_comes_when_its_tasks_are(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (far, driver):
        driver.open()
        driver.assign(attempt(0, "trap '' TERM; touch running.0; sleep 600; sleep 600"))
        wait_until((tmp_path / "running.0").exists, "the task runs")
        far.process.kill()
        relay = Far(tmp_path, sys.executable, _attach_wanted(driver))
        kind, said = first_frame(relay)
        assert (kind, said["is_ended"]) == (m.PROOF, True)
        gone = GoneEngine(driver.setup.run, 0, far.process.pid, 0, [driver.setup.cwd])
        assert leftovers(gone, lambda task_id, at: False) == []
        assert end_leftovers(gone) == []


def test_proof_brings_what_an_engine_that_left_had_written_down(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (far, driver):
        driver.open()
        driver.assign(attempt(0, WAITS))
        wait_until((tmp_path / "running.0").exists, "the task runs")
        driver.hang_up()
        (tmp_path / "go").touch()
        wait_until(far.has_ended, "the engine leaves")
        kind, said = first_frame(Far(tmp_path, sys.executable, _attach_wanted(driver)))
    assert (kind, said["is_ended"]) == (m.PROOF, True)
    assert said["spools"] == [(tmp_path / "spool").read_bytes()]


def test_another_boot_is_proof_and_another_place_is_none(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (_, driver):
        driver.open()
        said = [
            first_frame(Far(tmp_path, sys.executable, _attach_wanted(driver, **changes)))[1]
            for changes in ({"boot": "another"}, {"place": "another/place"})
        ]
        driver.close()
    assert [each["is_ended"] for each in said] == [True, False]
    assert driver.hello["boot"] == boot_id()


def test_an_engine_that_lives_and_does_not_answer_proves_nothing(tmp_path: Path) -> None:
    with far_engine(tmp_path) as (_, driver):
        driver.open()
        wanted = _attach_wanted(driver, attach=str(tmp_path / "no-door"))
        kind, said = first_frame(Far(tmp_path, sys.executable, wanted))
        driver.close()
    assert (kind, said["is_ended"]) == (m.PROOF, False)
    assert "lives and does not answer" in said["reason"]
