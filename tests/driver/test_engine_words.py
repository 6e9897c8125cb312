"""What an engine may say: a driver survives whatever comes after the secret."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from overnight.contexts.local import NotDialled
from overnight.core.recorded import Recorded
from overnight.driver.engines import EngineEnd
from overnight.errors import LinkBroken
from overnight.formats.link import encode_control
from overnight.model import messages as m
from overnight.model.attempt import Attempt
from overnight.model.task import NO_REPEAT, Task
from tests.core.engine_kit import setup


class Handle(NotDialled):
    node = "n1"
    noted = None

    def __init__(self, link: socket.socket) -> None:
        self.read_fd = self.write_fd = link.detach()
        self.setup = setup()


@pytest.fixture
def end():
    ours, theirs = socket.socketpair()
    with theirs:
        engine = EngineEnd(0, Handle(ours), 0.0, lambda level, text: None, Recorded())
        yield engine
        engine.link.close()


@pytest.mark.parametrize("kind", [
    m.HELLO, m.RUNNING, m.ENDED, m.KEPT, m.PE_ENDED, m.RECALLED, m.NOTICE, m.TAKEN, m.CANNOT,
    m.PROOF, m.ROOM, 200,
])  # fmt: skip
@pytest.mark.parametrize(
    "payload", [b"", b"x", encode_control({}), encode_control({"level": 3})]
)
def test_a_frame_that_is_not_understood_breaks_the_link_and_nothing_else(end, kind, payload):
    with suppress(LinkBroken):  # any other error would end the driver; no ids at all are fine
        events = end.take([(kind, payload)])
        assert payload == b"" and len(events) <= 1


def test_what_an_earlier_attempt_left_is_not_spared_beside_the_next(end):
    end.released.update([1, 2])
    end.assign([Attempt(Task(1, 2, NO_REPEAT, b"true"), 2)])
    assert end.released == {2}
