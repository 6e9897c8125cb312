"""What Slurm's clients answer, and what an answer proves."""

from __future__ import annotations

import pytest

from overnight.formats import slurmclient as c


@pytest.mark.parametrize("answer", ["", "\n", "NONE\n", "N/A", "Unknown", "2026-11-30T14:56:58"])
def test_an_allocation_without_a_known_end_has_none(answer: str) -> None:
    assert c.end_time(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "", "\n",
        "StepId=7.0 UserId=0 State=RUNNING NodeList=node2",
        "slurm_get_job_steps error: Unable to contact slurm controller (connect failure)",
        "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
        "Job step 7.1 not found",
        "slurm_get_job_steps error: Invalid job id specified",
    ],
)  # fmt: skip
def test_only_a_plain_word_of_the_controller_proves_a_step_gone(answer: str) -> None:
    assert not c.says_step_is_gone("7.0", answer)


def test_a_step_that_the_controller_does_not_find_is_gone() -> None:
    assert c.says_step_is_gone("7.0", "Job step 7.0 not found\n")


def test_a_job_that_is_completing_has_not_ended() -> None:
    assert c.job_state("JobId=7 JobState=COMPLETING Reason=None") not in c.ENDED_STATES
    assert c.job_state("JobId=7 JobState=TIMEOUT Reason=TimeLimit") in c.ENDED_STATES
    assert c.job_state("") is None


@pytest.mark.parametrize(
    ("state", "has_failed"),
    [
        ("down", True), ("down*", True), ("fail", True), ("idle", False), ("mixed*", False),
        ("allocated*", False), ("draining", False), ("drained", False), ("idle~", False),
    ],
)  # fmt: skip
def test_a_node_has_failed_when_slurm_has_given_it_up(state: str, has_failed: bool) -> None:
    answer = f"node2   short   {state}\n"
    assert c.says_node_has_failed("node2", answer) is has_failed
    assert not c.says_node_has_failed("node1", answer)


def test_no_answer_is_no_failure() -> None:
    assert not c.says_node_has_failed("node2", "")
