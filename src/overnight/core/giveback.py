"""Giving nodes back to a resource manager: what a command is told, and which nodes stay."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GATHERED_S = 10.0
"""The default is called when no further node has gone for so long: a run that ends on many
nodes at once must not flood its manager."""

TRIES = 3
AGAIN_S = 15.0
"""Slurm refuses an update that follows another too soon."""


class Gone:
    """A node that can be given back.

    Attributes:
        node: Its name.
        code: What its engine's launcher ended with.
        active: Nodes of the context that are still used.
    """

    __slots__ = ("active", "code", "node")

    def __init__(self, node: str, code: int, active: Sequence[str]) -> None:
        self.node = node
        self.code = code
        self.active = active


def command_variables(
    gone: Sequence[Gone], retired: Sequence[str], driver_node: str | None
) -> dict[str, str]:
    """What a command that gives nodes back finds in its environment.

    Args:
        gone: Nodes that go now, at least one; what is active is as the last one has it.
        retired: All that have gone, these included.
        driver_node: Where the driver runs, if that is a node of the context.

    >>> variables = command_variables([Gone("n2", 0, ["n1"])], ["n3", "n2"], "n1")
    >>> variables["NODE"], variables["ACTIVE"], variables["RETIRED"]
    ('n2', 'n1', 'n3,n2')
    >>> "DRIVER_NODE" in variables
    False
    """
    last = gone[-1]
    variables = {
        "NODE": last.node,
        "NODES": ",".join(each.node for each in gone),
        "RETCODES": ",".join(str(each.code) for each in gone),
        "ACTIVE": ",".join(last.active),
        "RETIRED": ",".join(retired),
    }
    if driver_node is not None and driver_node not in last.active:
        variables["DRIVER_NODE"] = driver_node
    return variables


def kept_nodes(
    nodes: Sequence[str], active: Sequence[str], driver_node: str | None
) -> list[str]:
    """Nodes of an allocation that stay: those in use, and the driver's own.

    Args:
        nodes: Of the allocation, in its order.
        active: That are still used.
        driver_node: Where the driver runs, if that is one of them.

    >>> kept_nodes(["n1", "n2", "n3"], ["n3"], "n1")
    ['n1', 'n3']
    """
    return [node for node in nodes if node in active or node == driver_node]
