"""Entries of a record, as observers are told of them."""

from __future__ import annotations

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded, TasksSkipped
from overnight.model.outcome import Cancelled, Exited
from overnight.model.report import NO_LEAK, Leak, Report
from overnight.model.task import NO_REPEAT, Barrier, DoneBefore, PerEngine, Task

NODE = "n1"


def task(id: int) -> Task:
    return Task(id, id + 1, NO_REPEAT, b"do it")


def ended(
    id: int, code: int = 0, *, attempt: int = 1, settles: bool = True, err: Leak = NO_LEAK,
    elapsed_s: float = 1.0,
) -> TaskEnded:
    report = Report(id, attempt, Exited(code), 77, 1000.0, elapsed_s, err=err)
    return TaskEnded(task(id), report, NODE, rank=0, settles=settles, is_cut=False)


def cut_off(id: int) -> TaskEnded:
    report = Report(id, 1, Cancelled(-15, "stopped"), 77, 1000.0, 1.0)
    return TaskEnded(task(id), report, NODE, rank=0, settles=True, is_cut=True)


def barrier_met(id: int) -> BarrierMet:
    return BarrierMet(Barrier(id, id + 1, b"#DISBATCH BARRIER", None, False), 1000.0, 1001.0)


def skipped(id: int, code: int = 0, count: int = 1) -> TasksSkipped:
    return TasksSkipped(DoneBefore(id, id + 1, count, code, b"an old row\n"))


def command_ended(code: int = 0, *, at_start: bool = True) -> CommandEnded:
    command = PerEngine(at_start, 2, 4, b"mkdir scratch")
    return CommandEnded(command, Report(2, 1, Exited(code), 78, 1000.0, 1.0), NODE, 0)
