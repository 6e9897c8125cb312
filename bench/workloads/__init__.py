"""The workloads by name, in the order they are run.

Each yields its sections as they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.kit import Kit, Section

from workloads import driver, durability, leaks, memory, startup, throughput

WORKLOADS: dict[str, Callable[[Kit], Iterator[Section]]] = {
    "W1": throughput.plain,
    "W1-20k": throughput.plain_long,
    "W2": throughput.usual_line,
    "W3": throughput.sleeps,
    "lane": throughput.shell_free,
    "W4": startup.few_tasks,
    "W5": memory.queues,
    "W6": driver.driver_alone,
    "W7": durability.durability,
    "W8": leaks.leaked_output,
}
