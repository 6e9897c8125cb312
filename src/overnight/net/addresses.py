"""Under which addresses this machine can be reached, and sockets bound to them.

The name of a machine is a poor guide: on many it resolves to loopback, or to nothing, or
to a network that others do not see. So it stands last, for whoever dials to try; before it
come the addresses that routes and interfaces really have.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading

from overnight.formats.hostport import LOOPBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from overnight.formats.hostport import UseAddress

FAR_ADDRESSES = ("192.0.2.1", "10.255.255.255", "2001:db8::1")
"""Where a route is asked for; nothing is sent there."""

SIOCGIFADDR = 0x8915
NAME_WITHIN_S = 2.0


def bind(wanted: UseAddress) -> socket.socket:
    """A socket at the address that is wanted; at all addresses where that is not ours.

    A name may lead here through a forwarded port: then nothing here has its address.

    Raises:
        OSError: The port is taken, or nothing can be bound.
    """
    if wanted.is_loopback:
        return _bound(socket.AF_INET, "127.0.0.1", wanted.port)
    if wanted.host:
        for family, _, _, _, address in _look_up(wanted.host, wanted.port):
            try:
                return _bound(family, str(address[0]), wanted.port)
            except OSError as error:
                if error.errno != 99:  # EADDRNOTAVAIL: not an address of this machine
                    raise
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", wanted.port), family=socket.AF_INET6, dualstack_ipv6=True,
                reuse_port=False,
            )
        except OSError as error:
            if error.errno not in (97, 99):  # IPv6 is switched off here
                raise
    return _bound(socket.AF_INET, "0.0.0.0", wanted.port)


def _look_up(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str | int, ...]]]:
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))  # type: ignore[arg-type]
    except OSError:
        return []  # it may mean something to those who dial


def _bound(family: int, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def addresses_to_try(wanted: UseAddress) -> list[str]:
    """Hosts in the order in which a joiner tries them; none for loopback alone."""
    if wanted.is_loopback:
        return []
    found: list[str] = [wanted.host] if wanted.host else []
    for host in (*_route_sources(), *_interfaces(), *_names()):
        if host not in found:
            found.append(host)
    return found


def _route_sources() -> Iterator[str]:
    """The addresses this machine would call others from: a socket is told where, and asked."""
    for far in FAR_ADDRESSES:
        family = socket.AF_INET6 if ":" in far else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as asked:
                asked.connect((far, 9))
                source = str(asked.getsockname()[0])
        except OSError:
            continue
        if _is_for_others(source):
            yield source


def _interfaces() -> Iterator[str]:
    """The first IPv4 address of each interface, and all global ones of IPv6."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, request)
            except OSError:
                continue
            address = socket.inet_ntoa(answer[20:24])
            if _is_for_others(address):
                yield address
    yield from _global_ipv6()


def _global_ipv6() -> Iterator[str]:
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            fields = [line.split() for line in file]
    except OSError:
        return
    for digits, _, _, scope, *_ in fields:
        if scope == "00":
            yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _is_for_others(address: str) -> bool:
    return not address.startswith(("127.", "169.254.", "0.", "fe80:")) and address != "::1"


def _names() -> list[str]:
    """This machine's names, for those who dial to resolve; never resolved here to be bound."""
    name = os.uname().nodename
    full: list[str] = []
    thread = threading.Thread(target=lambda: full.append(socket.getfqdn(name)), daemon=True)
    thread.start()
    thread.join(NAME_WITHIN_S)  # a dead name server must not hold the door shut
    named = [each for each in (*full, name) if each and each not in LOOPBACK]
    return [each for each in named if not each.startswith("localhost.")]
