"""What the first bytes of a file say that was given as a list: whether it is one at all.

Any text is a list of commands to bash. A status file that is run by mistake (a slip of the
shell's completion, ``run`` typed for ``resume``) would have every row taken for a command: the
fields come to nothing, but a ``>`` in the command of a row empties the file behind it.
"""

from __future__ import annotations

from overnight.formats.statusfile import HEADER, KINDS, is_integer

HEAD_SIZE = 1 << 16
"""Bytes that are looked at."""

LIST, STATUS, TASK_LOG, BINARY = "", "status file", "task log", "binary"

_FIELDS = 15


def kind_of_head(head: bytes) -> str:
    r"""What a file is that begins so: ``LIST`` unless it is plainly something else.

    >>> kind_of_head(b"echo a\n"), kind_of_head(b"\x7fELF\x02\x00")
    ('', 'binary')
    """
    first = head.partition(b"\n")[0]
    if _is_row(first) or first.rstrip(b"\r") == HEADER.rstrip(b"\n"):
        return STATUS
    if first.startswith(b'{"task":') and b'"attempt":' in first:
        return TASK_LOG
    return BINARY if b"\0" in head else LIST


def _is_row(line: bytes) -> bool:
    """Whether this is a row, whole or closed after a tear in its command. Needs no ``re``."""
    fields = line.split(b"\t", _FIELDS - 1)
    return len(fields) == _FIELDS and fields[0] in KINDS and all(map(is_integer, fields[1:4]))
