"""What a link inside TLS promises: the face of any link, whatever TLS does below."""

from __future__ import annotations

import os
import select
import socket
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overnight.errors import LinkBroken
from overnight.formats.link import frame
from overnight.net.certificate import make_certificate
from overnight.net.tls import TlsLink, TlsStream
from tests.net.door_kit import open_door, receive, until

CERTIFICATE = make_certificate()


def _client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=CERTIFICATE.text)
    return context


def pair() -> tuple[TlsLink, TlsLink]:
    """Both ends of a link whose handshake is over."""
    one, other = socket.socketpair()
    client = TlsStream(one.detach(), _client_context(), is_server=False)
    server = TlsStream(other.detach(), CERTIFICATE.server_context(), is_server=True)
    over = [False, False]
    for _ in range(20):
        for index, stream in enumerate((client, server)):
            stream.take_in()
            over[index] = over[index] or stream.shake_hands()
            assert stream.push()
        if all(over):
            return TlsLink(client), TlsLink(server, awaits_magic=True)
    raise AssertionError("no handshake came about")


def test_frames_arrive_whole_and_in_order_both_ways():
    ours, theirs = pair()
    ours.send_magic()
    for number in range(300):
        ours.send(20, b"%d" % number)
    ours.flush()
    assert receive(theirs, 300) == [(20, b"%d" % number) for number in range(300)]
    theirs.send(1, b"back")
    theirs.flush()
    assert receive(ours, 1) == [(1, b"back")]
    ours.close()
    theirs.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 28), st.integers(0, 200_000)), min_size=1, max_size=8))
def test_any_frames_of_any_size_arrive(sizes: list[tuple[int, int]]):
    ours, theirs = pair()
    sent = [(kind, os.urandom(min(size, 64)) * (size // 64 + 1)) for kind, size in sizes]
    ours.send_magic()
    for kind, payload in sent:
        ours.send(kind, payload)
    frames: list[tuple[int, bytes]] = []

    def moved() -> bool:
        ours.flush()
        frames.extend(theirs.receive())
        return len(frames) == len(sent)

    until(moved, "all frames")
    assert frames == sent
    assert not ours.wants_write
    ours.close()
    theirs.close()


def test_what_the_descriptor_does_not_take_waits_and_is_told_of():
    ours, theirs = pair()
    ours.send_magic()
    payload = bytes(4 << 20)
    ours.send(20, payload)
    ours.flush()
    assert ours.wants_write
    assert not select.select([], [ours.write_fd], [], 0)[1]
    frames: list[tuple[int, bytes]] = []

    def moved() -> bool:
        frames.extend(theirs.receive())
        ours.flush()
        return bool(frames)

    until(moved, "the frame")
    assert frames == [(20, payload)]
    assert not ours.wants_write
    ours.close()
    theirs.close()


def test_what_was_said_before_the_end_still_comes():
    ours, theirs = pair()
    ours.send_magic()
    ours.send(20, b"last words")
    ours.flush()
    ours.close()
    frames = theirs.receive()
    while not theirs.closed:
        frames += theirs.receive()
    assert frames == [(20, b"last words")]
    theirs.close()


def test_bytes_that_are_no_tls_end_the_link():
    ours, theirs = pair()
    os.write(ours.write_fd, b"\x17\x03\x03\x00\x10" + bytes(16))
    until(lambda: theirs.receive() == [] and theirs.closed, "the link is closed")
    ours.close()
    theirs.close()


def test_a_frame_of_another_version_breaks_the_link_as_any_other():
    with open_door() as door:
        link = door.dial()
        link._waiting.append(frame(20, b"x")[:5] + b"\xff" + b"x")  # a version of the future
        link.flush()
        arrival = door.arrival()
        link.close()
        with pytest.raises(LinkBroken):
            _receive_magic_then_all(arrival.link)


def _receive_magic_then_all(link: TlsLink) -> None:
    link._finder = None  # the version is checked whether or not a magic came first
    until(lambda: link.receive() is None or link.closed, "it breaks")
