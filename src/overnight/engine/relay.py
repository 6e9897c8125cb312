"""Looking for an engine on this machine for a driver on another: its bytes, or proof.

While the engine lives its socket is joined to the driver's link. Once it is gone, whatever
it has left is ended, and the driver is told so with what it had written down.
"""

from __future__ import annotations

import os
import select
import socket
import time
from struct import Struct

from overnight.engine.far import say
from overnight.errors import LinkBroken
from overnight.formats.spool import parse_spool
from overnight.guard.leftovers import GoneEngine, end_leftovers, is_same_process
from overnight.guard.processes import boot_id, place
from overnight.model import messages as m
from overnight.model.messages import ROW_END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ANSWER_WITHIN_S = 15.0
LOOK_EVERY_S = 0.05
MOST_AT_ONCE = 1 << 16


def attach(wanted: dict[str, Any]) -> int:
    """Join the driver to the engine, or prove that nothing of it runs.

    Args:
        wanted: ``pid``, ``start``, ``boot``, ``place`` of the engine, its ``attach`` and
            ``spools``; ``runs``, ``rank`` and ``folders`` for what it may have left;
            ``kill_after_s``; ``released``: tasks that were allowed to leave processes;
            ``recorded``: task and end, Unix seconds, of each row that stands.
    """
    if wanted["boot"] != boot_id():
        return _prove(wanted, True, "the host has been started anew")
    if wanted["place"] != place():
        return _prove(wanted, False, f"its processes were seen from {wanted['place']}, and this"
                                     f" is {place()}: nobody can tell here whether they run")
    give_up_at = time.monotonic() + ANSWER_WITHIN_S
    while is_same_process(wanted["pid"], wanted["start"]):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(wanted["attach"])
        except OSError as error:
            connection.close()
            if time.monotonic() > give_up_at:
                return _prove(wanted, False, f"process {wanted['pid']} lives and does not answer"
                                             f" at {wanted['attach']}: {error.strerror}")
            time.sleep(LOOK_EVERY_S)
        else:
            _relay(connection)
            return 0
    return _prove_by_looking(wanted)


def _prove_by_looking(wanted: dict[str, Any]) -> int:
    """Its process has ended: end what it has left, and say what it wrote down."""
    left: list[int] = []
    try:
        ends = _ends_of_tasks(wanted)
    except (OSError, LinkBroken) as error:
        return _prove(wanted, False, f"what it wrote down cannot be read: {error}")

    released = frozenset(wanted["released"])

    def is_released(task_id: int, started_at: float) -> bool:
        return task_id in released or started_at <= ends.get(task_id, 0.0)

    for run in wanted["runs"]:
        gone = GoneEngine(
            run, wanted["rank"], wanted["pid"], wanted["start"], wanted["folders"]
        )
        left += [each.pid for each in end_leftovers(gone, wanted["kill_after_s"], is_released)]
    reason = "its process has ended"
    if left:
        reason += f"; processes {', '.join(map(str, left))} of it cannot be ended"
    return _prove(wanted, not left, reason)


def _ends_of_tasks(wanted: dict[str, Any]) -> dict[int, float]:
    """When each task that has a row, or a report that was kept, had ended."""
    ends = dict(Struct(ROW_END).iter_unpack(wanted["recorded"]))
    for data in _spools(wanted["spools"]):
        for attempt, report in parse_spool(data).kept:
            ends[attempt.task.id] = report.started_at + report.elapsed_s
    return ends


def _spools(paths: Sequence[str]) -> list[bytes]:
    found = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                found.append(file.read())
        except FileNotFoundError:
            continue
    return found


def _prove(wanted: dict[str, Any], is_ended: bool, reason: str) -> int:
    try:
        spools = _spools(wanted["spools"]) if is_ended else []
    except OSError as error:
        is_ended, spools, reason = False, [], f"a spool cannot be read: {error}"
    say(1, m.PROOF, {"is_ended": is_ended, "spools": spools, "reason": reason})
    return 0


class _Flow:
    """Bytes from one descriptor to another, as much at once as the other takes."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.waiting = b""

    def read(self) -> bool:
        """Take what has come; False at its end."""
        try:
            self.waiting = os.read(self.source, MOST_AT_ONCE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self.waiting)

    def write(self) -> bool:
        """Hand on what goes; False when nobody takes it any more."""
        try:
            self.waiting = self.waiting[os.write(self.sink, self.waiting):]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _relay(connection: socket.socket) -> None:
    """Hand bytes on, both ways, until either side has ended."""
    fd = connection.detach()
    for each in (0, 1, fd):
        os.set_blocking(each, False)
    flows = (_Flow(0, fd), _Flow(fd, 1))
    while True:
        reading = [flow.source for flow in flows if not flow.waiting]
        writing = [flow.sink for flow in flows if flow.waiting]
        readable, writable, _ = select.select(reading, writing, [])
        for flow in flows:
            if flow.waiting and flow.sink in writable and not flow.write():
                return
            if not flow.waiting and flow.source in readable and not flow.read():
                return
