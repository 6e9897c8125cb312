"""Links over real descriptors: pieces, pressure, ends."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator

import pytest

from overnight.engine.polled import PolledLink
from overnight.errors import LinkBroken
from overnight.formats.link import frame
from overnight.model.messages import MAGIC
from overnight.net.link import Link

Ends = tuple[tuple[int, int], tuple[int, int]]


def over_sockets() -> Ends:
    ours, theirs = (each.detach() for each in socket.socketpair())
    return (ours, ours), (theirs, theirs)


def over_pipes() -> Ends:
    there, back = os.pipe(), os.pipe()
    return (back[0], there[1]), (there[0], back[1])


@pytest.fixture(params=[over_sockets, over_pipes], ids=["sockets", "pipes"])
def links(request: pytest.FixtureRequest) -> Iterator[tuple[Link, Link]]:
    make: Callable[[], Ends] = request.param
    ours, theirs = (Link(*fds) for fds in make())
    yield ours, theirs
    for link in (ours, theirs):
        if not link.closed:
            link.close()


def exchange(sender: Link, receiver: Link) -> list[tuple[int, bytes]]:
    frames = []
    while sender.wants_write:
        sender.flush()
        frames += receiver.receive()
    return frames + receiver.receive()


def test_frames_arrive_in_order_both_ways(links: tuple[Link, Link]) -> None:
    ours, theirs = links
    ours.send(1, b"one")
    ours.send(2, b"")
    theirs.send(3, b"three")
    assert exchange(ours, theirs) == [(1, b"one"), (2, b"")]
    assert exchange(theirs, ours) == [(3, b"three")]


def test_what_the_descriptor_does_not_take_waits_and_stays_whole(
    links: tuple[Link, Link],
) -> None:
    ours, theirs = links
    payloads = [bytes([n % 251]) * (n * 977) for n in range(200)]  # 20 MB in all sizes
    for payload in payloads:
        ours.send(7, payload)
    ours.flush()
    assert ours.wants_write
    assert exchange(ours, theirs) == [(7, payload) for payload in payloads]


def test_many_small_frames_take_few_writes(links: tuple[Link, Link]) -> None:
    ours, theirs = links
    for number in range(5000):
        ours.send(number % 200, b"x")
    assert len(exchange(ours, theirs)) == 5000


def test_the_last_words_are_heard_before_the_end(links: tuple[Link, Link]) -> None:
    ours, theirs = links
    ours.send(1, b"last")
    ours.flush()
    ours.close()
    assert theirs.receive() == [(1, b"last")]
    theirs.receive()
    assert theirs.closed


def test_writing_to_somebody_gone_closes_the_link_and_nothing_more(
    links: tuple[Link, Link],
) -> None:
    ours, theirs = links
    theirs.close()
    ours.send(1, b"x")
    ours.flush()
    assert ours.receive() == []
    assert ours.closed
    ours.send(1, b"y")
    assert not ours.wants_write


def test_the_magic_is_awaited_through_noise_and_pieces() -> None:
    (ours, _), (theirs, _) = over_sockets()
    link = Link(ours, ours, awaits_magic=True)
    for piece in (b"Welcome!\n" + MAGIC[:5], MAGIC[5:] + b"\0\0\0\1"):
        os.write(theirs, piece)
        assert link.receive() == []
    os.write(theirs, b"\x11\1x")
    assert link.receive() == [(17, b"x")]
    assert link.noise == b"Welcome!\n"
    link.close()
    os.close(theirs)


def test_noise_without_end_breaks_the_link() -> None:
    (ours, _), (theirs, _) = over_sockets()
    link = Link(ours, ours, awaits_magic=True)
    with pytest.raises(LinkBroken, match="no magic"):  # noqa: PT012  # it takes several reads
        while True:
            os.write(theirs, b"x" * 30_000)
            link.receive()
    link.close()
    os.close(theirs)


@pytest.mark.parametrize("make", [over_sockets, over_pipes])
def test_a_polled_link_is_called_when_more_can_be_written(make: Callable[[], Ends]) -> None:
    poll = select.epoll()
    ours, theirs = make()
    sender, receiver = PolledLink(poll, *ours), Link(*theirs)
    payload = b"x" * 3_000_000
    sender.send(1, payload)
    sender.push()
    frames: list[tuple[int, bytes]] = []
    while sender.wants_write:
        frames += receiver.receive()
        ready = dict(poll.poll(20))
        assert ready[sender.write_fd] & select.EPOLLOUT
        sender.push()
    frames += receiver.receive()
    assert frames == [(1, payload)]
    assert poll.poll(0) == []
    sender.close()
    receiver.close()
    poll.close()


def test_what_somebody_said_before_going_is_read_though_nothing_can_be_told() -> None:
    """Else attempts that had ended, and were reported, would count as lost."""
    left, right = socket.socketpair()
    fd = left.detach()
    ours = Link(fd, fd)
    right.send(frame(7, b"done"))
    right.close()
    ours.send(1, b"x")
    ours.flush()
    assert ours.receive() == [(7, b"done")]
    ours.receive()
    assert ours.closed
    ours.close()
