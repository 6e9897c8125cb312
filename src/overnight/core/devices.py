"""Dividing a node's devices among its slots."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""What ``-g`` divides, in step."""


class Division:
    """Values of variables for each slot.

    Attributes:
        slots: As many as have a value of every variable.
        values: For each slot, each variable's value by name.
        notes: What the user should know: too few, too many, not set.
    """

    __slots__ = ("notes", "slots", "values")

    def __init__(
        self, slots: int, values: Sequence[Mapping[str, str]], notes: Sequence[str]
    ) -> None:
        self.slots = slots
        self.values = values
        self.notes = notes


def divide(variables: Sequence[str], environment: Mapping[str, str], slots: int) -> Division:
    """Give slot i element i of each variable's comma-separated value.

    Fewer elements than slots lower the slots, more stay unused; the user is told
    either way. A variable that is not set divides nothing.

    Args:
        variables: Names, in the user's order; doubled ones count once.
        environment: Where their values are.
        slots: On the node, at least 1.

    Source:
        disBatch manual, "Invocation" (``-g``, ``-E``).

    >>> divide(["GPU"], {"GPU": "g5,g7"}, slots=3).slots
    2
    """
    elements: dict[str, list[str]] = {}
    notes = []
    for name in dict.fromkeys(variables):
        value = environment.get(name)
        if value is None:
            notes.append(f"{name} is not set: nothing of it is divided among the slots")
            continue
        elements[name] = [element.strip() for element in value.split(",") if element.strip()]
    for name, values in elements.items():
        found = f"{name} has {_counted(len(values), 'value')} for {_counted(slots, 'slot')}"
        if len(values) < slots:
            notes.append(f"{found}: the slots are lowered to {len(values)}")
        elif len(values) > slots:
            notes.append(f"{found}: {','.join(values[slots:])} stays unused")
    slots = min([slots, *(len(values) for values in elements.values())])
    shares = [{name: values[slot] for name, values in elements.items()} for slot in range(slots)]
    return Division(slots, shares, notes)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
