"""Which attempt ran beside which: one lane for each slot.

``_tasks.jsonl`` names the slot of an attempt. Without it - files of disBatch - attempts
are laid into as few lanes of their node as hold them without overlap, which gives as many
lanes as there were slots in use.
"""

from __future__ import annotations

import heapq
from re import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from overnight.core.effects import CommandEnded, TaskEnded
    from overnight.model.report import Report
    from overnight.watch.history import History

    Ended = TaskEnded | CommandEnded

KINDS = ("done", "failed", "timed-out", "lost", "cut-off")
"""How attempts end: from the bottom of a stack up, and in the legend from the left."""

OVERLAP_S = 0.002
"""Times have three decimals, so two attempts in one slot may seem to overlap by one."""


class Stretch:
    """A stretch of time in which a slot ran something.

    Attributes:
        started_at, ended_at: Unix seconds.
        kind: How it ended (one of ``KINDS``), or ``per-engine``.
        report: Of what ran.
        place: What ran, for a person.
        command: Its command; empty if not known.
    """

    __slots__ = ("command", "ended_at", "kind", "place", "report", "started_at")

    def __init__(self, report: Report, kind: str, place: str, command: bytes) -> None:
        self.started_at = report.started_at
        self.ended_at = report.started_at + max(0.0, report.elapsed_s)
        self.kind = kind
        self.report = report
        self.place = place
        self.command = command


class Lane:
    """A slot over time.

    Attributes:
        node: Where it is.
        name: What it is called among the lanes of its node.
        stretches: By start.
    """

    __slots__ = ("name", "node", "stretches")

    def __init__(self, node: str, name: str) -> None:
        self.node = node
        self.name = name
        self.stretches: list[Stretch] = []


def lanes_of(history: History) -> list[Lane]:
    """The lanes of a run: node after node, known slots first, per-engine commands last."""
    known: dict[tuple[str, int, int], Lane] = {}
    unknown: dict[str, list[Stretch]] = {}
    for ended in sorted(history.attempts, key=_start):
        slot = ended.report.slot
        if slot < 0:
            unknown.setdefault(ended.node, []).append(_of_task(ended))
            continue
        key = (ended.node, ended.rank, slot)
        lane = known.get(key)
        if lane is None:
            lane = known[key] = Lane(ended.node, f"slot {slot}")
        lane.stretches.append(_of_task(ended))
    commands: dict[str, list[Stretch]] = {}
    for command in sorted(history.commands, key=_start):
        commands.setdefault(command.node, []).append(_of_command(command))
    return _in_order(known, unknown, commands)


def _of_task(ended: TaskEnded) -> Stretch:
    task = ended.task
    return Stretch(
        ended.report, kind_of(ended), f"task {task.id}, line {task.line}", task.command
    )


def _of_command(ended: CommandEnded) -> Stretch:
    command = ended.command
    place = f"per-engine command {command.number}, line {command.line}"
    return Stretch(ended.report, "per-engine", place, command.command)


def _in_order(
    known: dict[tuple[str, int, int], Lane],
    unknown: dict[str, list[Stretch]],
    commands: dict[str, list[Stretch]],
) -> list[Lane]:
    nodes = {key[0] for key in known} | unknown.keys() | commands.keys()
    lanes = []
    for node in sorted(nodes, key=natural_order):
        lanes += [known[key] for key in sorted(known) if key[0] == node]
        lanes += packed(node, "lane", unknown.get(node, ()))
        lanes += packed(node, "command", commands.get(node, ()))
    return lanes


def packed(node: str, name: str, stretches: Iterable[Stretch]) -> list[Lane]:
    """As few lanes as hold these, given by start, without overlap; low lanes first."""
    lanes: list[Lane] = []
    free: list[int] = []  # numbers of lanes that are free
    busy: list[tuple[float, int]] = []  # and when the others will be
    for stretch in stretches:
        while busy and busy[0][0] <= stretch.started_at + OVERLAP_S:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, len(lanes))
            lanes.append(Lane(node, f"{name} {len(lanes)}"))
        number = heapq.heappop(free)
        lanes[number].stretches.append(stretch)
        heapq.heappush(busy, (stretch.ended_at, number))
    return lanes


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that puts node2 before node10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in split("([0-9]+)", name)]


def _start(ended: Ended) -> float:
    return ended.report.started_at


_KINDS = {"timed out": "timed-out", "lost": "lost", "cancelled": "cut-off"}


def kind_of(ended: TaskEnded) -> str:
    """How an attempt ended, as a kind of stretch."""
    outcome = ended.report.outcome
    return "done" if outcome.code == 0 else _KINDS.get(outcome.kind, "failed")
