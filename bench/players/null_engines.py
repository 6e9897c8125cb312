"""Engines that do no work: they report every attempt as soon as they have it.

    python null_engines.py FD...

Each descriptor is a link to a driver. What is left of the time is the driver's.
"""

from __future__ import annotations

import os
import selectors
import sys
import time

from overnight.formats.link import encode_control
from overnight.formats.rows import decode_attempts, encode_ids, encode_reports
from overnight.model import messages as m
from overnight.model.outcome import Exited
from overnight.model.report import NO_LEAK, Report
from overnight.net.link import Link

DONE = Exited(0)


class NullEngine:
    """One link, and what an engine says on it."""

    def __init__(self, fd: int) -> None:
        self.link = Link(fd, fd)
        self._sequence = 0
        self.link.send_magic()
        self.link.send(m.HELLO, encode_control({
            "link": m.LINK_VERSION, "version": "0", "run": "", "generation": 0, "role": "engine",
            "pid": os.getpid(), "start": 0, "boot": "", "host": "null", "cores": 1,
            "python": "3", "started": False, "closing": False, "running": 0,
        }))

    def answer(self) -> None:
        """Say what follows from what has come."""
        for kind, payload in self.link.receive():
            if kind == m.START:
                self.link.send(m.OPENED, b"")
            elif kind == m.ASSIGN:
                self._end(payload)
            elif kind == m.RECALL:
                self.link.send(m.RECALLED, encode_ids([]))
            elif kind == m.CLOSE:
                self.link.send(m.CLOSED, b"")

    def _end(self, payload: bytes) -> None:
        now = time.time()
        reports = [
            Report(each.task.id, each.number, DONE, 1, now, 0.001, NO_LEAK, NO_LEAK, 0.001, 1000,
                   slot)
            for slot, each in enumerate(decode_attempts(payload))
        ]
        self._sequence += 1
        self.link.send(m.ENDED, encode_reports(self._sequence, reports))


def main() -> None:
    """Serve all links until the driver has closed them."""
    selector = selectors.DefaultSelector()
    engines = [NullEngine(int(fd)) for fd in sys.argv[1:]]
    for engine in engines:
        engine.link.flush()
        selector.register(engine.link.read_fd, selectors.EVENT_READ, engine)
    while selector.get_map():
        for key, _ in selector.select():
            engine = key.data
            engine.answer()
            while engine.link.wants_write and not engine.link.closed:
                engine.link.flush()
            if engine.link.closed:
                selector.unregister(key.fd)
                engine.link.close()


if __name__ == "__main__":
    main()
