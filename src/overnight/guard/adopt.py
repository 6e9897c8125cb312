"""Becoming the parent of orphans: a descendant whose parent ends stays in sight.

Without it the kernel gives such a process to init, and whose it was can only be read
from its session or its environment.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def adopt_orphans() -> bool:
    """Make this process the one that the kernel gives orphans below it to.

    Holds for descendants that live already, too; not handed down over fork.

    Returns:
        Whether the kernel agreed.
    """
    prctl = _prctl_by_address() or _prctl_by_ctypes()
    return prctl is not None and prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_with_parent(number: int) -> bool:
    """Have this process get a signal when its parent ends; whether the kernel agreed.

    A parent that has ended before is not noticed: the caller compares afterwards.
    """
    prctl = _prctl_by_address() or _prctl_by_ctypes()
    return prctl is not None and prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) == 0


def _prctl_by_address() -> Callable[..., int] | None:
    """Reach prctl through the C half of ctypes: the package itself costs 6 ms to import."""
    try:
        from _ctypes import call_function, dlopen, dlsym

        # None is this program itself; typeshed knows file names only
        address = dlsym(dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    except (ImportError, OSError):
        return None
    return lambda *arguments: int(call_function(address, arguments))


def _prctl_by_ctypes() -> Callable[..., int] | None:
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
