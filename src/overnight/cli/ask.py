"""Asking the driver of a run for something: through its door here, or over the network."""

from __future__ import annotations

import os
import select
import socket
import time

from overnight.driver.control import control_path
from overnight.errors import LinkBroken, NoResources, OvernightError
from overnight.formats import link as frames
from overnight.guard.private import private_directory
from overnight.guard.processes import boot_id
from overnight.model import messages as m
from overnight.model.roles import CONTROL
from overnight.net.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from overnight.model.run import RunFiles

ANSWER_WITHIN_S = 30.0


def ask(files: RunFiles, question: Mapping[str, object]) -> dict[str, Any]:
    """The answer of the driver of this run.

    Raises:
        OvernightError: There is none, or it refuses.
    """
    link = _reach(files)
    try:
        link.send(m.ASK, frames.encode_control(dict(question)))
        answer = _wait_for_answer(link)
    finally:
        if not link.closed:
            link.close()
    if answer["error"] is not None:
        raise OvernightError(str(answer["error"]))
    return answer


def _reach(files: RunFiles) -> Link:
    here = socket.socket(socket.AF_UNIX)
    try:
        here.connect(control_path(private_directory(), os.path.realpath(files.prefix)))
    except OSError:
        here.close()
        return _call(files)
    fd = here.detach()
    link = Link(fd, fd)
    link.send_magic()
    return link


def _call(files: RunFiles) -> Link:
    """The driver is on another machine: the join file says where."""
    from overnight.net.dial import DialFailed, dial
    from overnight.net.joinfile import places_of, read_join_file
    from overnight.net.tls import TlsLink

    try:
        join_file = read_join_file(places_of(files.join))
    except OSError as error:
        raise LinkBroken(f"cannot be read: {error.strerror}", where=files.join) from error
    if join_file is None:
        raise NoResources(
            "the driver of this run is not reached: it has ended, or it is on another machine"
            " and does not listen", where=files.prefix,
            do="ask on the machine that it runs on; a run that is started with --listen can be"
               " asked from all that share its folder",
        )
    failures = []
    for host, port in join_file.places(boot_id()):
        try:
            stream = dial(host, port, join_file.certificate, join_file.secret, CONTROL, 3.0)
        except DialFailed as failure:
            failures.append(f"{host} port {port}: {failure}")
        else:
            link = TlsLink(stream)
            link.send_magic()
            return link
    raise NoResources("the driver of this run is not reached from here", where=files.prefix,
                      kept="; ".join(failures) or "it listens on no address for here")


def _wait_for_answer(link: Link) -> dict[str, Any]:
    until = time.monotonic() + ANSWER_WITHIN_S
    poll = select.poll()
    while True:
        link.flush()
        poll.register(link.read_fd, select.POLLIN | (select.POLLOUT if link.wants_write else 0))
        poll.poll(max(0.0, until - time.monotonic()) * 1000)
        for kind, payload in link.receive():
            if kind == m.ANSWER:
                return frames.decode_control(payload)
        if link.closed or time.monotonic() > until:
            raise NoResources(
                "the driver gave no answer" if not link.closed else "the driver hung up",
                kept="what was asked may be done or not", do="see: overnight pool list RUN",
            )
