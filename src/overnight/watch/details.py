"""What ``_tasks.jsonl`` knows beyond the status file: slot, usage, cause in words.

It is a help, no second truth. Whatever line cannot be read, and whatever key is missing
or odd, costs that detail and is counted; the rows of the status file stand without it.
"""

from __future__ import annotations

import json
import re

from overnight.model.outcome import (
    Cancelled,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from overnight.model.outcome import Outcome


class Detail:
    """One attempt as ``_tasks.jsonl`` has it."""

    __slots__ = (
        "attempt", "cpu_s", "elapsed_s", "left_running", "line", "max_rss_kib", "node", "outcome",
        "pid", "rank", "repeat", "settles", "slot", "started_at", "task_id",
    )

    task_id: int
    attempt: int
    line: int
    repeat: int
    slot: int
    rank: int
    node: str
    outcome: Outcome
    pid: int
    started_at: float
    elapsed_s: float
    cpu_s: float
    max_rss_kib: int
    left_running: int
    settles: bool


class Details:
    """The details of a run by task and moment of start.

    Attributes:
        unread_count: Lines that told of no attempt.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._by_key: dict[tuple[int, int], Detail] = {}
        self.unread_count = 0
        for line in lines:
            detail = read_detail(line)
            if detail is not None:
                self._by_key[_key(detail.task_id, detail.started_at)] = detail
            elif line.strip():
                self.unread_count += 1

    def take(self, task_id: int, started_at: float) -> Detail | None:
        """Give out the detail that belongs to a row, once."""
        return self._by_key.pop(_key(task_id, started_at), None)

    def rest(self) -> list[Detail]:
        """Attempts of which no row tells: those that were followed by another one."""
        return list(self._by_key.values())


def _key(task_id: int, started_at: float) -> tuple[int, int]:
    return task_id, round(started_at * 1000)  # both files have three decimals


_USUAL = re.compile(
    rb'\{"task":(\d+),"attempt":(\d+),"line":(\d+),"repeat":(-?\d+),"slot":(-?\d+),'
    rb'"engine":(-?\d+),"node":"([^"\\]*)","outcome":"exited","words":"[^"\\]*",'
    rb'"code":(\d+),"pid":(-?\d+),"start":([\d.]+),"elapsed":([\d.]+),"cpu":([\d.]+),'
    rb'"rss_kib":(\d+),"out_bytes":\d+,"err_bytes":\d+,"left_running":(\d+),'
    rb'"oom":false,"late":(?:true|false),"settled":(true|false)\}\s*'
).fullmatch
"""What nearly every line looks like: reading it so takes a third of the time of JSON."""


def read_detail(line: bytes) -> Detail | None:
    """The attempt a line tells of, or None."""
    usual = _USUAL(line)
    try:
        return _of_usual(*usual.groups()) if usual else _of_entry(json.loads(line))
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None


def _of_usual(
    task_id: bytes, attempt: bytes, line: bytes, repeat: bytes, slot: bytes, rank: bytes,
    node: bytes, code: bytes, pid: bytes, start: bytes, elapsed: bytes, cpu: bytes,
    rss_kib: bytes, left_running: bytes, settled: bytes,
) -> Detail:
    detail = Detail()
    detail.task_id = int(task_id)
    detail.attempt = int(attempt)
    detail.line = int(line)
    detail.repeat = int(repeat)
    detail.slot = int(slot)
    detail.rank = int(rank)
    detail.node = node.decode()
    detail.outcome = _DONE if code == b"0" else Exited(int(code))
    detail.pid = int(pid)
    detail.started_at = float(start)
    detail.elapsed_s = float(elapsed)
    detail.cpu_s = float(cpu)
    detail.max_rss_kib = int(rss_kib)
    detail.left_running = int(left_running)
    detail.settles = settled == b"true"
    return detail


def _of_entry(entry: dict[str, Any]) -> Detail:
    """Read an object of which only task, start and elapsed must be there."""
    detail = Detail()
    detail.task_id = int(entry["task"])
    detail.attempt = int(entry.get("attempt", 1))
    detail.line = int(entry.get("line", 0))
    detail.repeat = int(entry.get("repeat", -1))
    detail.slot = int(entry.get("slot", -1))
    detail.rank = int(entry.get("engine", 0))
    detail.node = str(entry.get("node", ""))
    detail.outcome = read_outcome(entry)
    detail.pid = int(entry.get("pid", -1))
    detail.started_at = float(entry["start"])
    detail.elapsed_s = float(entry["elapsed"])
    detail.cpu_s = float(entry.get("cpu", 0.0))
    detail.max_rss_kib = int(entry.get("rss_kib", 0))
    detail.left_running = int(entry.get("left_running", 0))
    detail.settles = entry.get("settled", True) is True
    return detail


_DONE = Exited(0)


def read_outcome(entry: dict[str, Any]) -> Outcome:
    """The outcome an object tells of, its reason taken from its words.

    Raises:
        TypeError, ValueError: The exit code is no number.
    """
    kind, code, words = entry.get("outcome"), int(entry.get("code", 0)), str(entry.get("words", ""))
    if kind == "timed out":
        return TimedOut(code, _limit_s(words))
    if kind == "cancelled":
        return Cancelled(code, words.removeprefix("cut off: "))
    if kind == "lost":
        return Lost(words.removeprefix("lost: "))
    if kind == "not started":
        return NotStarted(code, words.removeprefix("could not start: "))
    if kind == "signalled" or code < 0:
        return Signalled(code, entry.get("oom") is True)
    return Exited(code) if code else _DONE


def _limit_s(words: str) -> float:
    for word in words.split():
        try:
            return float(word)
        except ValueError:
            continue
    return 0.0
