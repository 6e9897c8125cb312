"""Giving nodes back: the user's command for each, or one update for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.contexts.giveback import GiveBack
from overnight.core.giveback import Gone

LIMIT_S = 20.0


def wait_until(is_true: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    while not is_true():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


class Told:
    """What a giver said, and how often an allocation became smaller."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.shrunk = 0

    def tell(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def count(self) -> None:
        self.shrunk += 1


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that logs, and fails as often as ``fails`` has lines."""
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/bash
echo "$*" >> {tmp_path}/log
touch slurm_job_7_resize.sh
if [ -s {tmp_path}/fails ]; then
    sed -i 1d {tmp_path}/fails
    echo "Job update not available right now, the DB index is being set, try again in a bit"
    exit 1
fi
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path / "log"


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_nodes_that_go_together_are_given_back_in_one_update(scontrol: Path) -> None:
    told = Told()
    giver = GiveBack({"7": ["n1", "n2", "n3", "n4"]}, "n1", None, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n3", 0, ["n2", "n4"]))
    giver.node(Gone("n4", 0, ["n2"]))
    wait_until(lambda: told.shrunk)
    assert lines(scontrol) == ["update JobId=7 NodeList=n1,n2"]
    giver.node(Gone("n2", 0, []))
    wait_until(lambda: told.shrunk == 2)
    assert lines(scontrol)[1:] == ["update JobId=7 NodeList=n1"]
    giver.close()


def test_an_update_that_comes_too_soon_for_slurm_is_made_again(
    scontrol: Path, tmp_path: Path
) -> None:
    (tmp_path / "fails").write_text("once\n")
    told = Told()
    giver = GiveBack({"7": ["n1", "n2"]}, "n1", None, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n2", 0, []))
    wait_until(lambda: told.shrunk)
    assert len(lines(scontrol)) == 2
    assert not list(Path.cwd().glob("slurm_job_*_resize.*")), "its scripts are not left here"
    giver.close()


def test_one_that_is_refused_for_good_is_said(scontrol: Path, tmp_path: Path) -> None:
    (tmp_path / "fails").write_text("x\n" * 9)
    told = Told()
    giver = GiveBack({"7": ["n1", "n2"]}, "n1", None, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n2", 0, []))
    wait_until(lambda: told.lines)
    ((level, text),) = told.lines
    assert level == "warning" and "not available right now" in text and told.shrunk == 0
    giver.close()


def test_the_driver_s_own_node_is_never_given_back(scontrol: Path) -> None:
    told = Told()
    giver = GiveBack({"7": ["n1"], "8": ["n2", "n3"]}, "n1", None, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n1", 0, ["n2", "n3"]))
    giver.node(Gone("n3", 0, ["n2"]))
    wait_until(lambda: told.shrunk)
    assert lines(scontrol) == ["update JobId=8 NodeList=n2"]
    giver.close()


def test_without_any_node_that_stays_nothing_is_updated(scontrol: Path) -> None:
    told = Told()
    giver = GiveBack({"7": ["n1"], "8": ["n2", "n3"]}, None, None, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n1", 0, ["n2", "n3"]))
    giver.node(Gone("n2", 0, ["n3"]))
    wait_until(lambda: told.shrunk)
    assert lines(scontrol) == ["update JobId=8 NodeList=n3"]
    giver.close()


def test_a_user_s_command_is_called_once_for_each_node(tmp_path: Path) -> None:
    told = Told()
    command = (
        f'echo "$NODE|$NODES|$RETCODES|$ACTIVE|$RETIRED|${{DRIVER_NODE-unset}}" >> {tmp_path}/log'
    )
    giver = GiveBack({"7": ["n1", "n2", "n3"]}, "n1", command, told.tell, told.count, 0.3, 0.05)
    giver.node(Gone("n3", 0, ["n1", "n2"]))
    giver.node(Gone("n1", 3, ["n2"]))
    wait_until(lambda: told.shrunk == 2)
    assert lines(tmp_path / "log") == ["n3|n3|0|n1,n2|n3|unset", "n1|n1|3|n2|n3,n1|n1"]
    giver.close()


def test_a_command_that_fails_is_said_and_does_not_keep_the_next_from_going(
    tmp_path: Path,
) -> None:
    told = Told()
    giver = GiveBack(
        {"7": ["n1", "n2", "n3"]}, None, f"touch {tmp_path}/$NODE; echo no; false", told.tell,
        told.count,
    )
    giver.node(Gone("n3", 0, ["n1", "n2"]))
    giver.node(Gone("n2", 0, ["n1"]))
    wait_until(lambda: told.shrunk == 2)
    assert [level for level, _ in told.lines] == ["warning", "warning"]
    assert "ended with 1: no" in told.lines[0][1]
    assert (tmp_path / "n2").exists() and (tmp_path / "n3").exists()
    giver.close()
