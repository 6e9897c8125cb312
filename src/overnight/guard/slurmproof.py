"""Proof, by Slurm's word, that nothing of a step runs any more.

Silence proves nothing, nor does one answer: a controller that has just been started may not
know yet what runs.
"""

from __future__ import annotations

import time

from overnight.formats import slurmclient as client
from overnight.guard.slurmcalls import ask

ASKED_AGAIN_S = 1.0


def has_ended(step: str, node: str) -> bool:
    """Whether Slurm says that a step has ended, or its job, or that its node has failed.

    A node that has failed is taken out of a job that goes on without it. It may be back
    before anybody asks, and the step is then listed as running for ever.

    Args:
        step: ``JOB.STEP``.
        node: On which it ran.
    """
    return _step_is_gone(step) or is_without_node(step.partition(".")[0], node)


def is_without_node(job: str, node: str) -> bool:
    """Whether Slurm says that a job has ended, or does not use this node any more."""
    return _job_is_without(job, node) or _node_failed(node)


def job_has_ended(job: str) -> bool:
    """Whether Slurm says that a job has ended."""
    answer = ask(client.job_command(job))
    return answer.code == 0 and client.job_state(answer.text) in client.ENDED_STATES


def _step_is_gone(step: str) -> bool:
    if not client.says_step_is_gone(step, ask(client.step_command(step)).text):
        return False
    time.sleep(ASKED_AGAIN_S)
    return client.says_step_is_gone(step, ask(client.step_command(step)).text)


def _job_is_without(job: str, node: str) -> bool:
    """Whether the job has ended, or has not this node any more; the latter is said twice."""
    for tried in range(2):
        if tried:
            time.sleep(ASKED_AGAIN_S)
        answer = ask(client.job_command(job))
        if answer.code != 0:
            return False
        if client.job_state(answer.text) in client.ENDED_STATES:
            return True
        nodes = client.job_nodes(answer.text)
        if not nodes or node in nodes:
            return False
    return True


def _node_failed(node: str) -> bool:
    answer = ask(client.node_command(node))
    return answer.code == 0 and client.says_node_has_failed(node, answer.text)
