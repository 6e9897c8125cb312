"""What Slurm says of an allocation in the variables of a job."""

from __future__ import annotations

from overnight.formats.hostlist import MOST_HOSTS

_DIGITS = 9
_SHOWN = 60


def per_node_counts(text: str) -> list[int]:
    """Give one number for each node from a list such as ``3(x2),1``.

    So SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE are written.

    Raises:
        ValueError: It is no such list, or counts more than 65,536 nodes.

    >>> per_node_counts("3(x2),1")
    [3, 3, 1]
    """
    counts: list[int] = []
    for item in text.strip().split(","):
        number, bracket, rest = item.partition("(")
        times = rest[1:-1] if bracket and rest.startswith("x") and rest.endswith(")") else ""
        if not _is_number(number) or (bracket and not (_is_number(times) and int(times))):
            raise _malformed(text, f'"{item[:_SHOWN]}" is not of the form 3 or 3(x2)')
        repeated = int(times) if bracket else 1
        if len(counts) + repeated > MOST_HOSTS:
            raise _malformed(text, f"it counts more than {MOST_HOSTS} nodes")
        counts += [int(number)] * repeated
    return counts


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _malformed(text: str, reason: str) -> ValueError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ValueError(f"{shown!r} is no list of counts per node: {reason}")
