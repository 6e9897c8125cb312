"""What proves that nothing of a step runs any more, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.guard.slurmproof import has_ended

NOT_FOUND = "Job step 7.0 not found"
Clients = Callable[..., None]


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Stand-ins for Slurm's clients; each says its answers one after the other, then the last."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, when: str, answers: list[str], status: int) -> str:
        paths = []
        for number, answer in enumerate(answers):
            path = tmp_path / f"{name}.{when.split()[0]}.{number}"
            path.write_text(answer)
            paths.append(str(path))
        count = tmp_path / f"{name}.{when.split()[0]}.count"
        return (
            f'case "$*" in *"{when}"*)\n'
            f"  n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}\n"
            f"  files=({' '.join(paths)}); [ $n -lt {len(paths)} ] || n={len(paths) - 1}\n"
            f"  cat ${{files[$n]}}; exit {status};;\nesac\n"
        )

    def install(
        step: list[str], job: str = "JobId=7 JobState=RUNNING NodeList=n[1-2] ",
        node: str = "n2 alloc allocated", status: int = 0,
    ) -> None:
        for name, text in (
            ("scontrol", make("scontrol", "step 7.0", step, status)
                + make("scontrol", "job 7", [job], status)),
            ("sinfo", make("sinfo", "-n", [node], status)),
        ):
            program = folder / name
            program.write_text(f"#!/bin/bash\n{text}exit 1\n")
            program.chmod(0o755)

    return install


def test_a_step_that_runs_has_not_ended(clients: Clients) -> None:
    clients(["StepId=7.0 State=RUNNING"])
    assert not has_ended("7.0", "n2")


def test_a_step_that_is_twice_not_found_has(clients: Clients) -> None:
    clients([NOT_FOUND])
    assert has_ended("7.0", "n2")


def test_one_that_is_not_found_once_has_not(clients: Clients) -> None:
    clients([NOT_FOUND, "StepId=7.0 State=RUNNING"])
    assert not has_ended("7.0", "n2")


def test_a_job_that_has_ended_has_no_step_that_runs(clients: Clients) -> None:
    clients(["slurm error: whatever"], job="JobId=7 JobState=TIMEOUT")
    assert has_ended("7.0", "n2")


def test_a_job_that_goes_on_without_a_node_runs_nothing_there(clients: Clients) -> None:
    # the node had failed, and was back before anybody asked
    clients(["StepId=7.0 State=RUNNING"], job="JobId=7 JobState=RUNNING NodeList=n1 x")
    assert has_ended("7.0", "n2")


def test_a_job_whose_nodes_are_not_said_proves_nothing(clients: Clients) -> None:
    clients(["StepId=7.0 State=RUNNING"], job="JobId=7 JobState=PENDING NodeList=(null) x")
    assert not has_ended("7.0", "n2")


def test_a_node_that_has_failed_runs_nothing(clients: Clients) -> None:
    clients(["StepId=7.0 State=RUNNING"], node="n2 down* down*")
    assert has_ended("7.0", "n2")


def test_clients_that_fail_prove_nothing_whatever_they_print(clients: Clients) -> None:
    clients(
        ["slurm_get_job_steps error: Unable to contact slurm controller"],
        job="JobId=7 JobState=COMPLETED", node="n2 down down", status=1,
    )
    assert not has_ended("7.0", "n2")


def test_without_any_client_nothing_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not has_ended("7.0", "n2")
