"""The environment of a task, as the bytes that exec takes.

It is the environment of the engine - which is the caller's - with the variables of
disBatch's contract, ``OVERNIGHT_ATTEMPT``, and what the run adds; nothing else of ours.
A base list is made once for each slot and copied for each attempt, because every
further variable costs each task.
"""

from __future__ import annotations

from overnight.model.messages import PER_ENGINE_SLOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup

_PER_ATTEMPT = (
    b"DISBATCH_TASKID=%d\0DISBATCH_TASKID_ZP=%06d\0"
    b"DISBATCH_STREAM_INDEX=%d\0DISBATCH_STREAM_INDEX_ZP=%06d\0"
    b"DISBATCH_REPEAT_INDEX=%d\0DISBATCH_REPEAT_INDEX_ZP=%06d\0"
    b"OVERNIGHT_ATTEMPT=%d"
)

OF_AN_OUTER_RUN = (b"DISBATCH_KVSSTCP_HOST",)
"""Set only where this run opens that face; one that is inherited would name another run."""


def name_of(entry: bytes) -> bytes:
    """What stands before the first ``=``.

    >>> name_of(b"PATH=/bin:/usr/bin")
    b'PATH'
    """
    return entry.partition(b"=")[0]


def attempt_variables(attempt: Attempt) -> list[bytes]:
    """What differs from one attempt to the next, always in this order.

    >>> from overnight.model.attempt import Attempt
    >>> from overnight.model.task import NO_REPEAT, Task
    >>> attempt_variables(Attempt(Task(12, 13, NO_REPEAT, b"true"), 1))[4:6]
    [b'DISBATCH_REPEAT_INDEX=-1', b'DISBATCH_REPEAT_INDEX_ZP=-00001']
    """
    task = attempt.task
    id, line, repeat = task.id, task.line, task.repeat
    return (_PER_ATTEMPT % (id, id, line, line, repeat, repeat, attempt.number)).split(b"\0")


PER_ATTEMPT_NAMES = tuple(name_of(entry) for entry in _PER_ATTEMPT.split(b"\0"))
"""Names of ``attempt_variables``, in the same order."""


def slot_variables(setup: Setup, slot: int) -> list[bytes]:
    """What differs from one slot to the next; per-engine commands have those of slot 0."""
    variables = [b"DISBATCH_CYLINDER_RANK=%d" % slot]
    if setup.slot_variables:
        variables += setup.slot_variables[0 if slot == PER_ENGINE_SLOT else slot]
    return variables


def run_variables(setup: Setup) -> list[bytes]:
    """What is the same for all attempts on this engine."""
    return [
        b"DISBATCH_JOBID=" + _bytes(setup.run),
        b"DISBATCH_NAMETASKS=" + _bytes(setup.name_tasks),
        b"DISBATCH_CORES_PER_TASK=%d" % setup.cores_per_task,
        b"DISBATCH_ENGINE_RANK=%d" % setup.rank,
        *setup.variables,
    ]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # as file names are read


def slot_environment(inherited: Sequence[bytes], setup: Setup, slot: int) -> list[bytes]:
    """Everything but the attempt's own variables, which are to be appended.

    Args:
        inherited: ``b"NAME=VALUE"`` as the engine was started with; the order is kept.
        setup: Of the run.
        slot: Number of the slot, or ``PER_ENGINE_SLOT``.
    """
    ours = run_variables(setup) + slot_variables(setup, slot)
    replaced = {name_of(entry) for entry in ours} | {*PER_ATTEMPT_NAMES, *OF_AN_OUTER_RUN}
    if setup.removes:
        replaced |= removed_names(inherited, setup.removes)
    return [entry for entry in inherited if name_of(entry) not in replaced] + ours


def removed_names(inherited: Sequence[bytes], removes: Sequence[str]) -> set[bytes]:
    """Names in an environment that stand in a list, or begin as one that ends in ``*``.

    >>> removed_names([b"PMI_RANK=0", b"PMI=1", b"PATH=/bin"], ["PMI_*"])
    {b'PMI_RANK'}
    """
    names = {each.encode() for each in removes if not each.endswith("*")}
    beginnings = tuple(each[:-1].encode() for each in removes if each.endswith("*"))
    return {
        name for name in map(name_of, inherited)
        if name in names or (beginnings and name.startswith(beginnings))
    }


def marks(setup: Setup, slot: int, attempt: Attempt) -> list[bytes]:
    """Entries that are together in the environment of this attempt's processes alone.

    They tell one attempt of this engine from another; a run of the same name in another
    directory has them too, so they prove something only among the engine's own
    descendants.
    """
    return [
        b"DISBATCH_JOBID=" + _bytes(setup.run),
        b"DISBATCH_ENGINE_RANK=%d" % setup.rank,
        b"DISBATCH_CYLINDER_RANK=%d" % slot,
        b"DISBATCH_TASKID=%d" % attempt.task.id,
        b"OVERNIGHT_ATTEMPT=%d" % attempt.number,
    ]
