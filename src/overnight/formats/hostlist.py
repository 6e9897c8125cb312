"""Names of hosts: Slurm's compact lists, and what the user gives to ``-s``.

Compact lists are read as ``scontrol show hostnames`` of Slurm 22.05 prints them; a suffix
behind the brackets (``n[1-3]-ib``), which that refuses, is taken too. What is not such a
list is refused with a message, before anything large is made of it.
"""

from __future__ import annotations

from itertools import product

from overnight.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_HOSTS = 65_536
"""The longest range that Slurm accepts, and the most hosts a list may stand for."""

MOST_CORES = 1_000_000

_SEPARATORS = ", \t\n"
_DIGITS = 32  # with leading zeros; a number this long is no host's
_SHOWN = 60


def expand_nodelist(text: str) -> list[str]:
    """Give the names that a compact node list stands for, in its order.

    Names are parted by commas or blanks; empty ones are passed over, doubled ones stay.
    Several brackets in a name are counted through from the last. A range keeps the width
    of its first number.

    Raises:
        ValueError: It is no node list, or stands for more than ``MOST_HOSTS``.

    >>> expand_nodelist("c[08-10],r[1-2]n[1,3]")
    ['c08', 'c09', 'c10', 'r1n1', 'r1n3', 'r2n1', 'r2n3']
    """
    names: list[str] = []
    for group in _groups(text):
        choices = list(_choices(group, text))
        count = len(names) + 1
        for choice in choices:
            count *= len(choice)
        if count > MOST_HOSTS:
            raise _malformed(text, f"it stands for more than {MOST_HOSTS} hosts")
        names.extend("".join(parts) for parts in product(*choices))
    return names


def read_ssh_nodes(arguments: Iterable[str], this_host: str) -> dict[str, int]:
    """Give the cores of each host that ``-s`` arguments name, in their order.

    Items ``HOST:COUNT`` are parted by commas; blanks around them and empty items are
    passed over. The count stands behind the last colon. A host named again adds to its
    cores; ``localhost`` is this machine. A compact list (``node[01-12,20]:4``) gives the
    count to each of its hosts.

    Any whole number is taken: this is what the arguments say, not whether it can be used.

    Raises:
        UsageError: An item is not ``HOST:COUNT``, or names no usable host.
    """
    cores_by_host: dict[str, int] = {}
    for item in _ssh_items(arguments):
        named, cores = _read_ssh_node(item)
        for one in _expand_item(named, item):
            host = this_host if one == "localhost" else one
            cores_by_host[host] = cores_by_host.get(host, 0) + cores
    return cores_by_host


def parse_ssh_nodes(arguments: Iterable[str], this_host: str) -> dict[str, int]:
    """Give the cores of each host as ``read_ssh_nodes`` does, at least one each.

    Raises:
        UsageError: An item is not ``HOST:COUNT`` with a host and a count that can be used.
    """
    items = list(_ssh_items(arguments))
    for item in items:
        _, cores = _read_ssh_node(item)
        if not 1 <= cores <= MOST_CORES:
            raise _bad_item(item, f"the count must be from 1 to {MOST_CORES}")
    return read_ssh_nodes(items, this_host)


def _groups(text: str) -> Iterator[str]:
    """The names of a list, brackets still closed."""
    begin = 0
    is_open = False
    for at, char in enumerate(text):
        if char == "[":
            if is_open:
                raise _malformed(text, "a bracket stands inside another")
            is_open = True
        elif char == "]":
            if not is_open:
                raise _malformed(text, "a bracket is closed that was not opened")
            is_open = False
        elif char in _SEPARATORS and not is_open:
            if begin < at:
                yield text[begin:at]
            begin = at + 1
    if is_open:
        raise _malformed(text, "a bracket is not closed")
    if begin < len(text):
        yield text[begin:]


def _choices(group: str, text: str) -> Iterator[list[str]]:
    """What can stand in each place of a name: fixed text, then a bracket's numbers, ..."""
    if not group.isprintable():
        raise _malformed(text, "a name holds a control character")
    for part in group.split("]"):
        fixed, bracket, ranges = part.partition("[")
        yield [fixed]
        if bracket:
            yield _numbers(ranges, text)


def _numbers(ranges: str, text: str) -> list[str]:
    """The numbers of a bracket, as text with their leading zeros."""
    numbers: list[str] = []
    for one in ranges.split(","):
        low, dash, high = one.partition("-")
        if not dash:
            high = low
        if not (_is_number(low) and _is_number(high)):
            raise _malformed(text, f'"{one[:_SHOWN]}" is no number or range')
        first, last = int(low), int(high)
        if first > last:
            raise _malformed(text, f'the range "{one}" runs backwards')
        if len(numbers) + last - first >= MOST_HOSTS:
            raise _malformed(text, f"it stands for more than {MOST_HOSTS} hosts")
        width = len(low)
        numbers.extend(f"{number:0{width}d}" for number in range(first, last + 1))
    return numbers


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _malformed(text: str, reason: str) -> ValueError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ValueError(f"{shown!r} is no list of nodes: {reason}")


def _ssh_items(arguments: Iterable[str]) -> Iterator[str]:
    for argument in arguments:
        begin = depth = 0
        for at, char in enumerate(argument):
            depth += {"[": 1, "]": -1}.get(char, 0)
            if char == "," and depth <= 0:
                yield from filter(None, (argument[begin:at].strip(),))
                begin = at + 1
        yield from filter(None, (argument[begin:].strip(),))


def _expand_item(named: str, item: str) -> list[str]:
    if "[" not in named and "]" not in named:
        return [named]
    try:
        return expand_nodelist(named)
    except ValueError as error:
        raise _bad_item(item, str(error)) from error


def _read_ssh_node(item: str) -> tuple[str, int]:
    host, colon, count = item.rpartition(":")
    host, count = host.strip(), count.strip()
    digits = count[1:] if count.startswith("-") else count
    if not colon or not _is_number(digits):
        raise _bad_item(item, "it must be HOST:COUNT, as in localhost:4")
    if not host:
        raise _bad_item(item, "it names no host")
    # ssh would take a name that begins with a dash for an option; a blank or control
    # character would break the row that names the node.
    if host.startswith("-") or " " in host or not host.isprintable():
        raise _bad_item(item, "this cannot be the name of a host")
    return host, int(count)


def _bad_item(item: str, reason: str) -> UsageError:
    return UsageError(
        f'-s "{item[:_SHOWN]}": {reason}',
        kept="nothing was started",
        do="name hosts and their cores:  -s localhost:4  or  -s host1:8,host2:8",
    )
