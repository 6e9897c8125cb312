"""What Slurm's client commands answer, as values.

An answer proves something only when it says so. What is missing from an answer is no
news: a client that cannot reach its controller, or that was asked in a bad moment, leaves
lines out as well.

Sources:
    Slurm 22.05: squeue(1), scontrol(1), sinfo(1), and what they printed when it was tried.
"""

from __future__ import annotations

import re

from overnight.formats.hostlist import expand_nodelist

UNIX_TIMES = {"SLURM_TIME_FORMAT": "%s"}
"""Makes the clients say times in Unix seconds: no zone, no summer time, no other host's clock."""

ENDED_STATES = frozenset((
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
))
"""States of a job in which nothing of it runs; COMPLETING is none of them."""

_NODE_RESOURCES = re.compile(r"(?:^|\s)Nodes=(\S+) CPU_IDs=\S+ Mem=\d+ GRES=(\S*)")
_DOWN = frozenset(("DOWN", "FAIL", "FAILED", "NOT_RESPONDING_DOWN"))


def end_time_command(job: str) -> list[str]:
    """Asks when an allocation ends."""
    return ["squeue", "-h", "-j", job, "-O", "EndTime:30"]


def end_time(answer: str) -> float | None:
    """When an allocation ends, Unix seconds; None where it has no limit or nobody says.

    >>> end_time("1796050649          "), end_time("NONE"), end_time("")
    (1796050649.0, None, None)
    """
    word = answer.strip()
    return float(word) if word.isascii() and word.isdigit() else None


def step_command(step: str) -> list[str]:
    """Asks about one step."""
    return ["scontrol", "show", "step", step]


def says_step_is_gone(step: str, answer: str) -> bool:
    """Whether the controller knows its job and says that it has no such step.

    That it does not know the job proves nothing: it may be another cluster's controller.

    >>> says_step_is_gone("7.0", "Job step 7.0 not found")
    True
    >>> says_step_is_gone("7.0", "slurm_get_job_steps error: Unable to contact slurm controller")
    False
    """
    return f"Job step {step} not found" in answer


def job_command(job: str) -> list[str]:
    """Asks about one job."""
    return ["scontrol", "-o", "-d", "show", "job", job]


def job_state(answer: str) -> str | None:
    """State of the job an answer tells of, or None where it tells of none.

    >>> job_state("JobId=7 JobName=x UserId=me(1) JobState=COMPLETED Reason=None")
    'COMPLETED'
    """
    found = re.search(r"(?:^|\s)JobState=([A-Z_]+)", answer)
    return found[1] if found else None


def job_nodes(answer: str) -> list[str] | None:
    """Nodes that a job has now, or None where the answer does not say.

    >>> job_nodes("JobId=7 JobState=RUNNING ReqNodeList=(null) NodeList=node[1,3] BatchHost=node1")
    ['node1', 'node3']
    """
    found = re.search(r"(?:^|\s)NodeList=(\S+)", answer)
    if found is None or found[1] == "(null)":
        return None
    try:
        return expand_nodelist(found[1])
    except ValueError:
        return None


def gpus_by_node(answer: str) -> dict[str, int]:
    """GPUs of a job on each of its nodes, as ``scontrol -d show job`` has them.

    >>> gpus_by_node("x Nodes=node1 CPU_IDs=0-2 Mem=3000 GRES=gpu:2(IDX:0-1) "
    ...              "Nodes=node2 CPU_IDs=0 Mem=1000 GRES=gpu:tesla:1(IDX:0)")
    {'node1': 2, 'node2': 1}
    """
    counts: dict[str, int] = {}
    for nodes, resources in _NODE_RESOURCES.findall(answer):
        found = re.findall(r"(?:^|,)gpu(?::[^:(,]+)?:(\d+)", resources)
        for node in expand_nodelist(nodes):
            counts[node] = sum(map(int, found))
    return counts


def node_command(node: str) -> list[str]:
    """Asks how a node is."""
    return ["sinfo", "-h", "-N", "-n", node, "-O", "NodeList:64,StateCompact:32,StateLong:32"]


def says_node_has_failed(node: str, answer: str) -> bool:
    """Whether Slurm has given a node up: it has ended, or will end, what ran there.

    One that does not answer (``*``) has not failed yet. One that is drained works on.

    >>> says_node_has_failed("node2", "node2   down*   down*")
    True
    >>> says_node_has_failed("node2", "node2   mix*   mixed*")
    False
    """
    for line in answer.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == node:
            state = words[-1].rstrip("*~#!%$@^-+").upper()
            if state in _DOWN:
                return True
    return False


def keep_nodes_command(job: str, nodes: str) -> list[str]:
    """Shrinks an allocation to these nodes (a list with commas)."""
    return ["scontrol", "update", f"JobId={job}", f"NodeList={nodes}"]
