"""What the lock of a prefix promises: one owner, and a dead one keeps nobody out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import overnight
from overnight.driver.lock import PrefixLock, is_gone, read_owner
from overnight.errors import PrefixTaken
from overnight.guard.processes import boot_id, place, process_identity
from tests.conformance.harness_processes import wait_until

HERE = place()
RACERS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my run_lock"


def line(host: str = HERE, boot: str | None = None, pid: int = 0, start: int = 0) -> str:
    return f"{host} {boot or boot_id()} {pid} {start}\n"


def dead_pid() -> int:
    """A number that named a process a moment ago."""
    process = subprocess.Popen(["true"])
    process.wait(timeout=30)
    return process.pid


def left_in(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


def test_who_takes_a_lock_is_named_in_it(path):
    lock = PrefixLock(str(path))
    lock.take()
    start, boot = process_identity(os.getpid())
    assert path.read_text() == line(HERE, boot, os.getpid(), start)
    assert left_in(path) == [path.name]
    lock.release()
    assert left_in(path) == []


def test_a_prefix_is_taken_once_even_by_one_process(path):
    PrefixLock(str(path)).take()
    with pytest.raises(PrefixTaken):
        PrefixLock(str(path)).take()
    assert left_in(path) == [path.name]


def test_a_refusal_names_the_owner_and_what_to_do(path):
    path.write_text(line("node7.cluster", pid=4711))
    with pytest.raises(PrefixTaken) as refused:
        PrefixLock(str(path)).take()
    error = refused.value
    assert error.what == "another driver owns this prefix: process 4711 on node7.cluster"
    assert error.where == str(path)
    assert "nothing was started" in error.kept
    assert "-p" in error.do
    assert path.read_text() == line("node7.cluster", pid=4711)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line(pid=dead_pid(), start=1), id="dead process"),
        pytest.param(line(pid=os.getpid(), start=1), id="number used again"),
        pytest.param(
            line(boot="11111111-2222-3333-4444-555555555555", pid=os.getpid()), id="another boot"
        ),
    ],
)
def test_a_lock_whose_owner_is_gone_is_taken_over(path, text):
    path.write_text(text)
    lock = PrefixLock(str(path))
    lock.take()
    assert read_owner(str(path))["pid"] == str(os.getpid())
    assert left_in(path) == [path.name]
    lock.release()
    assert left_in(path) == []


def test_an_owner_that_died_and_was_not_reaped_is_gone(path):
    process = subprocess.Popen(["sleep", "60"])
    start, boot = process_identity(process.pid)
    owner = {"host": HERE, "boot": boot, "pid": str(process.pid), "start": str(start)}
    assert not is_gone(owner)
    process.kill()
    assert wait_until(lambda: is_gone(owner), 30)
    process.wait(timeout=30)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line(pid=os.getpid(), start=process_identity(os.getpid())[0]), id="alive"),
        pytest.param(line("elsewhere", pid=os.getpid(), start=1), id="another host"),
        pytest.param("", id="empty"),
        pytest.param("three words only\n", id="not a lock"),
        pytest.param(f"{HERE} {boot_id()} x 1\n", id="no number"),
    ],
)
def test_a_lock_whose_owner_may_live_is_respected(path, text):
    path.write_text(text)
    with pytest.raises(PrefixTaken):
        PrefixLock(str(path)).take()
    assert path.read_text() == text
    assert left_in(path) == [path.name]


def test_a_lock_that_tells_no_owner_is_said_to_be_so(path):
    path.write_bytes(b"\0\xff\0")
    with pytest.raises(PrefixTaken, match="does not tell which"):
        PrefixLock(str(path)).take()


def test_a_driver_that_died_while_it_took_over_keeps_nobody_out(path):
    path.write_text(line(pid=dead_pid(), start=1))
    Path(f"{path}.takeover").write_text(line(pid=dead_pid(), start=2))
    PrefixLock(str(path)).take()
    assert left_in(path) == [path.name]


def test_nobody_takes_over_while_another_one_does(path):
    path.write_text(line(pid=dead_pid(), start=1))
    takeover = PrefixLock(f"{path}.takeover")
    takeover.take()
    with pytest.raises(PrefixTaken):
        PrefixLock(str(path)).take()
    takeover.release()
    PrefixLock(str(path)).take()


def test_who_lost_its_lock_does_not_remove_the_new_owners(path):
    lock = PrefixLock(str(path))
    lock.take()
    path.write_text(line("elsewhere", pid=1))
    lock.release()
    assert path.read_text() == line("elsewhere", pid=1)


def test_a_lock_that_was_removed_by_hand_can_be_released(path):
    lock = PrefixLock(str(path))
    lock.take()
    path.unlink()
    lock.release()


def test_a_folder_that_does_not_exist_is_an_error_of_the_file_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        PrefixLock(str(tmp_path / "gone" / "run_lock")).take()


RACER = """
import sys
from overnight.driver.lock import PrefixLock
from overnight.errors import PrefixTaken
print("ready", flush=True)
sys.stdin.readline()
try:
    PrefixLock(sys.argv[1]).take()
    print("won", flush=True)
except PrefixTaken as error:
    print("refused", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("is_stale", [True, False], ids=["stale lock", "no lock"])
def test_of_many_drivers_that_race_for_a_prefix_one_wins(path, is_stale):
    if is_stale:
        path.write_text(line(pid=dead_pid(), start=1))
    source = str(Path(overnight.__file__).parents[1])
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path)], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": source},
        )
        for _ in range(RACERS)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
    # All of them live until each has its answer: a winner that had left could be followed.
    said = [racer.stdout.readline().strip() for racer in racers]
    complaints = "".join(racer.communicate("end\n", timeout=60)[1] for racer in racers)
    assert complaints == ""
    assert sorted(said) == ["refused"] * (RACERS - 1) + ["won"]
    assert left_in(path) == [path.name]
