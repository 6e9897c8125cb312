"""Dialling a run: one address, a time limit, TLS to exactly this run, the secret.

The certificate of the run is the only authority, so who answers with another one - or with
none, or not at all - is told apart before the secret is said.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time

from overnight.formats.knock import WELCOME, knock
from overnight.net.tls import TlsStream

KEEP_ALIVE_S = 30
"""A link that is silent for so long is asked whether the other side is there."""

GIVEN_UP_AFTER_S = 90
"""A link whose other side answers nothing for so long has ended. Shorter cuts go unnoticed."""


class DialFailed(Exception):
    """An address did not lead to the run; the text says why."""


def dial(
    host: str, port: int, certificate: str, secret: bytes, role: str, within_s: float
) -> TlsStream:
    """A connection to the run's driver at this address, let in and ready for a link.

    Args:
        host: Name or address.
        port: Of TCP.
        certificate: Of the run, PEM; nobody else's is accepted.
        secret: Said only inside TLS, to whoever holds that certificate.
        role: What this client is.
        within_s: For all of it, seconds; the look-up of a name may take longer.

    Raises:
        DialFailed: There is none.
    """
    until = time.monotonic() + within_s
    try:
        connection = socket.create_connection((host, port), timeout=within_s)
    except OSError as error:  # a name that does not resolve is one too
        raise DialFailed(error.strerror or str(error)) from error
    keep_alive(connection)
    stream = TlsStream(connection.detach(), _context(certificate), is_server=False)
    try:
        _shake_hands(stream, until)
        stream.write(knock(secret, role))
        answer = _read_answer(stream, until)
    except ssl.SSLCertVerificationError as error:
        os.close(stream.fd)
        raise DialFailed("somebody else answers there: not the certificate of this run") from error
    except ssl.SSLError as error:
        os.close(stream.fd)
        if stream.has_ended:
            raise DialFailed("it hung up") from error
        raise DialFailed(f"no TLS: {error.reason or error}") from error
    except DialFailed:
        os.close(stream.fd)
        raise
    if answer != WELCOME:
        os.close(stream.fd)
        raise DialFailed("the run did not let us in: its secret is another one")
    return stream


def _context(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # one run, one certificate: its name says nothing more
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate)
    return context


def _shake_hands(stream: TlsStream, until: float) -> None:
    while True:
        is_over = stream.shake_hands()
        _push(stream)
        if is_over:
            return
        if stream.has_ended:
            raise DialFailed("it hung up")
        _wait(stream, until)
        stream.take_in()


def _read_answer(stream: TlsStream, until: float) -> bytes:
    answer = b""
    while len(answer) < len(WELCOME):
        _push(stream)
        answer += stream.read(len(WELCOME) - len(answer))
        if stream.has_ended:
            break
        if len(answer) < len(WELCOME):
            _wait(stream, until)
            stream.take_in()
    return answer


def _push(stream: TlsStream) -> None:
    if not stream.push():
        raise DialFailed("it hung up")


def _wait(stream: TlsStream, until: float) -> None:
    poll = select.poll()  # select takes no descriptor above 1023
    poll.register(stream.fd, select.POLLIN | (select.POLLOUT if stream.wants_write else 0))
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise DialFailed("no answer in time")


def keep_alive(connection: socket.socket) -> None:
    """Have the kernel notice when the other side is gone, at either end of a link."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    limits = (
        ("TCP_KEEPIDLE", KEEP_ALIVE_S), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6),
        ("TCP_USER_TIMEOUT", GIVEN_UP_AFTER_S * 1000),
    )
    for name, value in limits:
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
