"""What the door of a run promises: who knows the secret gets in, nobody else disturbs anybody."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overnight.core.admission import MOST_BYTES, MOST_HANDSHAKES
from overnight.formats.knock import KNOCK_SIZE, knock, parse_knock
from overnight.model import messages as m
from overnight.model.roles import ROLES
from overnight.net.certificate import make_certificate
from overnight.net.dial import DialFailed, dial
from tests.conformance.harness_processes import wait_until
from tests.net.door_kit import (
    LIMIT_S,
    SECRET,
    WATCHING,
    Door,
    is_hung_up,
    open_door,
    receive,
    until,
)


@pytest.fixture
def door():
    with open_door() as door:
        yield door


def talks(door: Door, index: int, link) -> bool:
    """Whether frames go both ways between a client and the run."""
    arrival = door.arrival(index)
    link.send_magic()
    link.send(m.HELLO, b"hello")
    link.flush()
    assert receive(arrival.link, 1) == [(m.HELLO, b"hello")]
    arrival.link.send(m.SETUP, b"setup")
    arrival.link.flush()
    assert receive(link, 1) == [(m.SETUP, b"setup")]
    return True


@pytest.mark.parametrize("role", ROLES)
def test_who_knows_the_secret_gets_in_with_its_role(door, role):
    link = door.dial(role=role)
    assert door.arrival().role == role
    assert talks(door, 0, link)
    link.close()


@pytest.mark.parametrize("role", ROLES)
def test_the_second_secret_is_for_watching_only(door, role):
    if role == "monitor":
        door.dial(WATCHING, role).close()
        assert door.arrival().role == "monitor"
    else:
        with pytest.raises(DialFailed):
            door.dial(WATCHING, role)
        assert door.arrivals == []


@pytest.mark.parametrize(
    "wrong", [bytes(32), SECRET[:-1] + b"\0", SECRET[::-1]],
    ids=["zeros", "one byte off", "reversed"],
)
def test_a_wrong_secret_is_not_let_in_and_is_told_of_once(door, wrong):
    for _ in range(3):
        with pytest.raises(DialFailed):
            door.dial(wrong)
    assert door.arrivals == []
    until(lambda: door.told, "it is said")
    assert len(door.told) == 1 and "without this run's secret" in door.told[0][1]
    assert SECRET.hex() not in repr(door.told) and wrong.hex() not in repr(door.told)
    door.dial().close()  # the door is as open as before


def test_nobody_says_the_secret_to_a_stranger():
    stranger, own = make_certificate(), make_certificate()
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    heard: list[bytes] = []

    def impersonate() -> None:
        connection, _ = server.accept()
        try:
            with stranger.server_context().wrap_socket(connection, server_side=True) as tls:
                heard.append(tls.recv(1000))
        except OSError:
            pass

    thread = threading.Thread(target=impersonate)
    thread.start()
    with pytest.raises(DialFailed, match="not the certificate of this run"):
        dial("127.0.0.1", server.getsockname()[1], own.text, SECRET, "engine", LIMIT_S)
    thread.join(LIMIT_S)
    server.close()
    assert not any(heard)


GARBAGE = {
    "a web browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "the secret without TLS": knock(SECRET, "engine"),
    "zeros": bytes(500),
    "a record of TLS with nonsense": b"\x16\x03\x01\x02\x00" + b"\xff" * 512,
    "nothing": b"",
}


@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_hung_up_on_and_others_get_in(door, said):
    stranger = door.raw()
    stranger.sendall(said)
    if not said:
        stranger.shutdown(socket.SHUT_WR)
    assert is_hung_up(stranger)
    link = door.dial()
    assert talks(door, 0, link)
    link.close()


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(said=st.binary(max_size=600))
def test_no_bytes_inside_tls_are_taken_for_the_secret(door, said):
    with door.shaken() as stranger:
        stranger.sendall((said or b"x").ljust(KNOCK_SIZE, b"\0")[:max(KNOCK_SIZE, len(said))])
        assert is_hung_up(stranger)
    assert door.arrivals == []


def test_who_says_more_than_the_bound_before_the_secret_is_hung_up_on(door):
    stranger = door.raw()
    # A record that claims to be longer than what may be said.
    stranger.sendall(b"\x16\x03\x01\x40\x00" + b"\x01\x00\x3f\xfc" + bytes(MOST_BYTES))
    began = time.monotonic()
    assert is_hung_up(stranger)
    assert time.monotonic() - began < LIMIT_S
    door.dial().close()


def test_a_silent_client_goes_after_its_time(door):
    silent, half = door.raw(), door.shaken()
    assert is_hung_up(silent)
    assert is_hung_up(half)
    assert door.arrivals == []


def test_one_byte_at_a_time_is_no_way_to_stay(door):
    slow = door.raw()
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
    give_up_at = time.monotonic() + LIMIT_S
    slow.settimeout(0.05)
    for at in range(len(hello)):
        try:
            slow.sendall(hello[at:at + 1])
            if slow.recv(1) == b"":
                break
        except TimeoutError:
            assert time.monotonic() < give_up_at, "it was let stay"
        except OSError:
            break
    else:
        raise AssertionError("it was let stay")
    slow.close()


def test_a_flood_of_silent_connections_keeps_nobody_out(door):
    flood = [door.raw() for _ in range(3 * MOST_HANDSHAKES)]
    links = [door.dial() for _ in range(3)]
    assert [talks(door, index, link) for index, link in enumerate(links)] == [True] * 3
    for each in (*flood, *links):
        each.close()


def test_a_hundred_engines_at_once_all_get_in(door):
    links: list[object] = []
    threads = [threading.Thread(target=lambda: links.append(door.dial())) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert len(links) == 100
    assert wait_until(lambda: len(door.arrivals) == 100, LIMIT_S)
    for link in links:
        link.close()


def test_a_client_killed_in_its_handshake_leaves_nothing(door):
    script = (
        "import socket, sys, time\n"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "s.sendall(bytes.fromhex('1603010200')); print('there', flush=True); time.sleep(600)\n"
    )
    client = subprocess.Popen(
        [sys.executable, "-I", "-c", script, str(door.port)], stdout=subprocess.PIPE
    )
    assert client.stdout is not None and client.stdout.readline() == b"there\n"
    held = _open_descriptors()
    until(lambda: door.listener._knocking, "the door has it")
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    until(lambda: not door.listener._knocking, "the door has forgotten it")
    assert _open_descriptors() <= held
    link = door.dial()
    assert talks(door, 0, link)
    link.close()


def test_a_link_survives_the_closing_of_the_door():
    door = Door()
    link = door.dial()
    arrival = door.arrival()
    door.listener.close()
    link.send_magic()
    link.send(m.HELLO, b"still here")
    link.flush()
    assert receive(arrival.link, 1) == [(m.HELLO, b"still here")]
    with pytest.raises(DialFailed):
        door.dial(within_s=2.0)
    link.close()
    arrival.link.close()


def test_a_port_where_nobody_listens_is_named_with_its_reason():
    idle = socket.socket()
    idle.bind(("127.0.0.1", 0))
    with pytest.raises(DialFailed, match="refused"):
        dial("127.0.0.1", idle.getsockname()[1], make_certificate().text, SECRET, "engine", 2.0)
    idle.listen()
    with pytest.raises(DialFailed, match="no answer in time"):
        dial("127.0.0.1", idle.getsockname()[1], make_certificate().text, SECRET, "engine", 0.3)
    idle.close()


@given(st.binary(min_size=32, max_size=32), st.sampled_from(ROLES))
def test_a_knock_is_read_as_it_was_made(secret, role):
    assert parse_knock(knock(secret, role)) == (secret, role)


@given(st.binary(max_size=2 * KNOCK_SIZE))
def test_other_bytes_are_no_knock(data):
    assert parse_knock(data) is None


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
