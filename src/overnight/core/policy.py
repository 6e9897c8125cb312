"""What the user chose about starting, failing and trying again."""

from __future__ import annotations

RETRY_FIRST_S = 1.0
RETRY_MOST_S = 60.0


class Policy:
    """The scheduler's share of the options.

    Attributes:
        max_failures: That many failed tasks end the run; None for no limit (-f is 1).
        fails_fast: The limit came from -f, for the verdict's name.
        retries: Further attempts for a task whose attempt failed.
        crash_limit: Attempts that may be lost before their task is.
        gives_out_lost: A lost attempt's task is given out again, and a context whose
            engine died may start another (``overnight run``; disBatch records the loss).
        task_limit: A context leaves after that many tasks, 0 for no limit (-C).
        delay_s: Least time between two starts.
        load_limit: Nothing starts above this load; None for no limit.
        memory_floor: Nothing starts below that many free bytes; None for no limit.
        starts_bare: It has no context of its own, and waits for what is added (-S).
        how_to_add: What a person types to add slots; empty where nobody can.
        how_to_forget: What a person types who knows that a machine is gone, with ``HOST``.
        gives_back: Labels of contexts whose nodes are given back as they run dry.
    """

    __slots__ = (
        "crash_limit", "delay_s", "fails_fast", "gives_back", "gives_out_lost", "how_to_add",
        "how_to_forget", "load_limit", "max_failures", "memory_floor", "retries", "starts_bare",
        "task_limit",
    )

    def __init__(
        self, max_failures: int | None = None, fails_fast: bool = False, retries: int = 0,
        crash_limit: int = 3, gives_out_lost: bool = False, task_limit: int = 0,
        delay_s: float = 0.0, load_limit: float | None = None,
        memory_floor: int | None = None, starts_bare: bool = False, how_to_add: str = "",
        how_to_forget: str = "", gives_back: frozenset[str] = frozenset(),
    ) -> None:
        self.max_failures = max_failures
        self.fails_fast = fails_fast
        self.retries = retries
        self.crash_limit = crash_limit
        self.gives_out_lost = gives_out_lost
        self.task_limit = task_limit
        self.delay_s = delay_s
        self.load_limit = load_limit
        self.memory_floor = memory_floor
        self.starts_bare = starts_bare
        self.how_to_add = how_to_add
        self.how_to_forget = how_to_forget
        self.gives_back = gives_back

    @property
    def allows_prefetch(self) -> bool:
        """Whether an engine may hold tasks it cannot start yet.

        Not where each start, or each end, may change what is started next.
        """
        return (
            self.max_failures is None and not self.delay_s and not self.task_limit
            and self.load_limit is None and self.memory_floor is None
        )


def retry_delay_s(failures: int) -> float:
    """How long to wait before the next attempt: doubling from one second to a minute.

    Args:
        failures: Attempts of this task that have failed so far, at least 1.

    >>> [retry_delay_s(n) for n in (1, 2, 3, 10)]
    [1.0, 2.0, 4.0, 60.0]
    """
    return float(min(RETRY_FIRST_S * 2 ** min(failures - 1, 10), RETRY_MOST_S))
