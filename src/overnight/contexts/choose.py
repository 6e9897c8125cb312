"""Which contexts a run has, by its options and the environment.

The choice is looked at before anything is made: it raises what the user must mend. Each
planned context then makes the context itself, for a run that owns its prefix. Another way
to get nodes is one more file beside ``hosts``, and one more line in ``choose_contexts``.
"""

from __future__ import annotations

import os

from overnight.contexts.hosts import PlannedHosts
from overnight.core.allocate import NodeShare, ssh_shares
from overnight.core.devices import GPU_VARIABLES, Division, divide
from overnight.errors import NoResources, UsageError
from overnight.formats.hostlist import parse_ssh_nodes
from overnight.formats.slurm import job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from overnight.contexts.settings import Settings
    from overnight.model.options import RunOptions
    from overnight.ports import Context

    class PlannedContext(Protocol):
        """A context that could be started: what it gives is known, nothing is made."""

        label: str
        nodes: Sequence[NodeShare]
        notes: Sequence[str]

        def make(self, settings: Settings) -> Context:
            """The context, for a run that has its files now."""

SSH_NODES_VARIABLE = "DISBATCH_SSH_NODELIST"
MOST_SLOTS = 16_384
"""Each takes three descriptors and a share of a runner."""

NODE_TOO_SMALL_DO = "lower -c, or give more cores: -s HOST:COUNT"


def choose_contexts(
    options: RunOptions, environment: Mapping[str, str]
) -> list[PlannedContext]:
    """The contexts of a run with these options, in the order in which they are started.

    Raises:
        UsageError: A host or a count does not parse.
        NoResources: No host was named, or none of them gives a slot.
    """
    if options.label and "/" in options.label:
        raise UsageError(f"a label names files: {options.label!r} must not hold a slash")
    if names_slurm(options, environment):
        from overnight.contexts.slurm import plan_slurm

        return [plan_slurm(options, environment, divided_variables(options))]
    return [_hosts(options, environment)]


def names_slurm(options: RunOptions, environment: Mapping[str, str]) -> bool:
    """Whether a run uses the allocation it is in: unless hosts or slots here were named."""
    if options.jobs is not None or options.ssh_node or environment.get(SSH_NODES_VARIABLE):
        return False
    return job_id(environment) is not None


def divided_variables(options: RunOptions) -> list[str]:
    """Names of the variables whose values are divided among the slots of each node."""
    variables = [name for value in options.env_resource for name in value.split(",") if name]
    return [*variables, *(GPU_VARIABLES if options.gpu else ())]


def _hosts(options: RunOptions, environment: Mapping[str, str]) -> PlannedHosts:
    """The hosts that were named with their cores; this machine if none was."""
    here = os.uname().nodename
    cores: dict[str, int] = {}
    for host, count in _named_cores(options, environment, here).items():
        node = here if is_here(host, here) else host
        cores[node] = cores.get(node, 0) + count
    shares, notes = _shares(options, cores)
    viable = [share for share in shares if share.slots]
    if not viable:
        total = ", ".join(
            f"{count} {'here' if node == here else 'on ' + node}" for node, count in cores.items()
        )
        raise NoResources(
            f"no host has enough cores for one task: {total},"
            f" -c {options.cpus_per_task or 1:g} asked for",
            kept="nothing was started", do=NODE_TOO_SMALL_DO,
        )
    notes += [f"{share.node} is left out: it has too few cores for one task"
              for share in shares if not share.slots]
    for share in viable:
        if share.slots > MOST_SLOTS:
            raise UsageError(
                f"{share.slots} slots on one machine: at most {MOST_SLOTS} can be served"
            )
    values: Sequence[Mapping[str, str]] = ()
    for share in viable:
        if share.node == here:
            division = _divide_here(options, environment, share.slots)
            share.slots, values = division.slots, division.values
            notes += division.notes
    return PlannedHosts(
        options.label or "SSH0", viable, here, values, notes, divided_variables(options)
    )


def _divide_here(
    options: RunOptions, environment: Mapping[str, str], slots: int
) -> Division:
    """Devices of this machine: what an engine here would say is known beforehand."""
    variables = divided_variables(options)
    division = divide(variables, environment, slots)
    if division.slots < 1:
        raise NoResources(f"{', '.join(variables)}: there is no device for any slot",
                          kept="nothing was started")
    return division


def _shares(
    options: RunOptions, cores: Mapping[str, int]
) -> tuple[list[NodeShare], list[str]]:
    """The slots that so many cores give; ``--jobs`` counts slots, whatever a task uses."""
    counts_slots = options.jobs is not None
    shares, warnings = ssh_shares(
        cores, None if counts_slots else options.cpus_per_task, options.tasks_per_node
    )
    if counts_slots and options.cpus_per_task is not None:
        for share in shares:
            share.cores_per_task = max(1, int(options.cpus_per_task))
    return shares, warnings


def _named_cores(
    options: RunOptions, environment: Mapping[str, str], here: str
) -> dict[str, int]:
    if options.jobs is not None:
        return {here: options.jobs}
    if options.ssh_node:
        return parse_ssh_nodes(options.ssh_node, here)
    if environment.get(SSH_NODES_VARIABLE):
        return parse_ssh_nodes([environment[SSH_NODES_VARIABLE]], here)
    if options.is_compatible:
        raise NoResources(
            "Cannot determine batch execution environment.", kept="nothing was started",
            do=f"name hosts with -s HOST:COUNT or {SSH_NODES_VARIABLE}; -s localhost:4 is"
               " four slots here",
        )
    return {here: usable_cores()}


def is_here(host: str, here: str) -> bool:
    """Whether a host is this machine: by its name up to the first dot.

    >>> is_here("node1.cluster", "node1"), is_here("node2", "node1")
    (True, False)
    """
    return host == "localhost" or host.split(".")[0] == here.split(".")[0]


def usable_cores() -> int:
    """Cores this process may use, which a job's limits make fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
