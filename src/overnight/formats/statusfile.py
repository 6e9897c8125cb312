"""The status file: one row of fifteen fields per task, barrier and per-engine command.

Rows are those of disBatch 3.0 to the byte, so that its users' scripts and its own resume
go on working. A row is fifteen fields with TABs between, and one LF. The first fourteen
TABs part it: the last field, the command, may hold more of them.

What a command looks like in its field (``command_field``): as it is when it is UTF-8 text
in one line, else Python's ``repr`` of the bytes. disBatch writes no other kind. Ours also
writes the ``repr`` for what a list cannot hold but a Python program can submit: a command
with LF or CR in it, which would break the file, or one that ends like a torn row. To know
a command again, write it once more and compare the fields; a field is never evaluated.

A row that was torn while it was written is closed before anything is appended
(``closing``). Where the tear is inside the command, the closed row would look whole, so it
ends in ``TORN`` and no reader takes it for a row.
"""

from __future__ import annotations

from overnight.model.report import SNIPPET_END

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from overnight.model.report import Leak, Report
    from overnight.model.task import Barrier, PerEngine, Task

COLUMNS = (
    "ROE[ PSZ]",
    "TaskID",
    "LineNum",
    "RepeatIndex",
    "Node",
    "PID",
    "ReturnCode",
    "Elapsed",
    "Start",
    "Finish",
    "BytesOfLeakedOutput",
    "OutputSnippet",
    "BytesOfLeakedError",
    "ErrorSnippet",
    "Command",
)
HEADER = "\t".join(COLUMNS).encode() + b"\n"

TORN = b"\t[torn]"
"""The end of a closed row whose command is not whole."""

ROW = b"%b\t%d\t%d\t%d\t%b\t%d\t%d\t%.3f\t%.3f\t%.3f\t%d\t%b\t%d\t%b\t%b\n"
"""The form of a row, to be filled with its fifteen fields."""

_TABS = len(COLUMNS) - 1
_ROE = (b"   ", b"R  ", b" O ", b"RO ", b"  E", b"R E", b" OE", b"ROE")
KINDS = {
    roe + last: kind
    for roe in _ROE
    for last, kind in ((b" ", "N"), (b"P", "P"), (b"S", "S"), (b"Z", "Z"))
}
# Five characters, not four: disBatch 3.0 pads the flags of a barrier this way.
KINDS[b"B    "] = "B"
KINDS[b"C    "] = "C"
"""What a row is of by its flags: N (a task), S (skipped), Z (cut off or late), P (a
per-engine command), B (a barrier), C (the CHECK that ended a run)."""
_NOTHING = b"''"
_DIGITS = 18  # more is no number of ours, and int() refuses thousands with an error


def task_row(task: Task, report: Report, node: str) -> bytes:
    """The row of a task whose fate is settled.

    The fourth flag is Z where we cut the task off ourselves or the report came after its
    task had been given up: disBatch passes such rows over when it resumes.

    Args:
        task: The task as it was read.
        report: Of its last attempt.
        node: Name of the node it ran on, without blanks and control characters.
    """
    outcome = report.outcome
    last = b"Z" if report.late or outcome.kind == "cancelled" else b" "
    return report_row(task.id, task.line, task.repeat, task.command, last, report, node)


def per_engine_row(command: PerEngine, report: Report, node: str) -> bytes:
    """The row of a per-engine command; its id is its number among its kind."""
    return report_row(command.number, command.line, -1, command.command, b"P", report, node)


def report_row(
    number: int, line: int, repeat: int, command: bytes, last: bytes, report: Report, node: str
) -> bytes:
    """The row of a report under a number, with the fourth flag given. 1.5 us."""
    code = report.outcome.code
    started_at = report.started_at
    elapsed_s = report.elapsed_s
    out = report.out
    err = report.err
    out_count = out.count
    err_count = err.count
    return ROW % (
        flags_of(code, out_count, err_count, last),
        number,
        line,
        repeat,
        node.encode(),
        report.pid,
        code,
        elapsed_s,
        started_at,
        started_at + elapsed_s,
        out_count,
        snippet(out) if out_count else _NOTHING,
        err_count,
        snippet(err) if err_count else _NOTHING,
        command_field(command),
    )


def flags_of(code: int, out_count: int, err_count: int, last: bytes) -> bytes:
    """The four flags: failed, output leaked, error output leaked, and the one given.

    >>> flags_of(-9, 0, 12, b"Z")
    b'R EZ'
    """
    return _ROE[(code != 0) + 2 * (out_count != 0) + 4 * (err_count != 0)] + last


def barrier_row(
    barrier: Barrier, node: str, pid: int, started_at: float, elapsed_s: float
) -> bytes:
    """The row of a barrier that is met, or of the CHECK that ends the run.

    Args:
        barrier: As it was read.
        node: Name of the driver's node.
        pid: Of the driver.
        started_at: When the barrier was reached, in Unix seconds.
        elapsed_s: How long it was waited at.
    """
    return ROW % (
        b"C    " if barrier.checks else b"B    ",
        barrier.id,
        barrier.line,
        -1,
        node.encode(),
        pid,
        0,
        elapsed_s,
        started_at,
        started_at + elapsed_s,
        0,
        _NOTHING,
        0,
        _NOTHING,
        command_field(barrier.text),
    )


def skipped_row(row: bytes, task: Task | None = None) -> bytes:
    """An old row as it stands again: with the flag S and otherwise to the byte.

    Args:
        row: An old row of a task. An LF, where it has one, stays.
        task: The task it stands for now, where that bears other numbers than the row.
    """
    if task is None:
        return row[:3] + b"S" + row[4:]
    command_and_all_between = row.split(b"\t", 4)[4]
    return b"%bS\t%d\t%d\t%d\t%b" % (
        row[:3],
        task.id,
        task.line,
        task.repeat,
        command_and_all_between,
    )


def snippet(leak: Leak) -> bytes:
    r"""The first and the last bytes of a leak as the status file shows them.

    >>> from overnight.model.report import Leak
    >>> snippet(Leak(6, b"it's\n\xff")).decode()
    '"it\'s\\n\ufffd"'
    """
    shown = leak.head
    if leak.count > SNIPPET_END:
        # The dots stand there as soon as there are more than 40 bytes, whether or not
        # anything is left out.
        shown = shown + b"..." + leak.tail
    return repr(shown.decode("utf-8", "replace")).encode()


def command_field(command: bytes) -> bytes:
    """A command as it stands in its field (see the head of this module)."""
    if not command.isascii():
        try:
            command.decode()
        except UnicodeDecodeError:
            return repr(command).encode()
    if b"\n" in command or b"\r" in command or command.endswith(TORN):
        return repr(command).encode()
    return command


def is_field_of(field: bytes, command: bytes) -> bool:
    """Whether a row's last field stands for this command.

    A field that is the command byte for byte is taken too, whatever it looks like: text
    that itself begins with ``b'`` is the same text in the list and in the row.
    """
    return field == command or field == command_field(command)


def is_torn_field_of(field: bytes, command: bytes) -> bool:
    """Whether the last field of an unfinished row is this command, cut short."""
    whole = command_field(command)
    return len(field) < len(whole) and whole.startswith(field)


class OldRow:
    """A row that was read, of our files and of disBatch's.

    Attributes:
        fields: The fifteen fields as they stand there.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[bytes]) -> None:
        self.fields = fields

    @property
    def kind(self) -> str:
        """What it is a row of (see ``KINDS``)."""
        return KINDS[self.fields[0]]

    @property
    def flags(self) -> bytes:
        """The first field: four bytes, of a barrier five."""
        return self.fields[0]

    @property
    def id(self) -> int:
        """Task id, or number of the per-engine command."""
        return int(self.fields[1])

    @property
    def line(self) -> int:
        """Physical line of the list, from 1; index of the stream."""
        return int(self.fields[2])

    @property
    def repeat(self) -> int:
        """Repeat index or -1."""
        return int(self.fields[3])

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.fields[4].decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        """Process id, -1 if there was no process."""
        return int(self.fields[5])

    @property
    def code(self) -> int:
        """Exit code, or minus a signal."""
        return int(self.fields[6])

    @property
    def elapsed_s(self) -> float:
        """How long it ran."""
        return float(self.fields[7])

    @property
    def started_at(self) -> float:
        """Unix seconds."""
        return float(self.fields[8])

    @property
    def finished_at(self) -> float:
        """Unix seconds."""
        return float(self.fields[9])

    @property
    def out_count(self) -> int:
        """Bytes of leaked output."""
        return int(self.fields[10])

    @property
    def out_snippet(self) -> str:
        """Leaked output as the row shows it, quoted."""
        return self.fields[11].decode("utf-8", "replace")

    @property
    def err_count(self) -> int:
        """Bytes of leaked error output."""
        return int(self.fields[12])

    @property
    def err_snippet(self) -> str:
        """Leaked error output as the row shows it, quoted."""
        return self.fields[13].decode("utf-8", "replace")

    @property
    def command_field(self) -> bytes:
        """The last field (see ``is_field_of``)."""
        return self.fields[14]


def parse_row(raw: bytes) -> OldRow | None:
    """Read one line of a status file; None where it is no row (a header, a torn line).

    Args:
        raw: The line, with its end or without. A line that ends in CRLF is read too: no
            field can hold a CR.
    """
    match = (_match_row or _make_match_row())(raw.rstrip(b"\r\n"))
    if match is None:
        return None
    fields = match.groups()
    return None if fields[-1].endswith(TORN) else OldRow(fields)


def read_rows(blocks: Iterable[bytes]) -> Iterator[OldRow]:
    """The rows of a status file in its order; what is no row is passed over.

    Args:
        blocks: The file, cut anywhere. A last row without its LF counts here.
    """
    for line in _lines(blocks):
        row = parse_row(line)
        if row is not None:
            yield row


def may_become_row(unfinished: bytes) -> bool:
    """Whether a line that ends without LF may be the beginning of a row or of the header."""
    if HEADER.startswith(unfinished):
        return True
    flags, *rest = unfinished.split(b"\t", 2)
    if not rest:
        return any(known.startswith(flags) for known in KINDS)
    return flags in KINDS and (rest[0].isdigit() or rest == [b""])


def closing(unfinished: bytes) -> bytes:
    """What must be appended to an unfinished last line before the next row.

    >>> closing(b"")
    b''
    """
    if not unfinished:
        return b""
    return TORN + b"\n" if unfinished.count(b"\t") >= _TABS else b"\n"


def is_integer(field: bytes) -> bool:
    """Whether a field is a whole number as rows have it."""
    digits = field[1:] if field.startswith(b"-") else field
    return digits.isdigit() and len(digits) <= _DIGITS


_match_row: Callable[[bytes], re.Match[bytes] | None] | None = None


def _make_match_row() -> Callable[[bytes], re.Match[bytes] | None]:
    """Compile what a whole row looks like; a run that never reads one need not."""
    global _match_row
    import re

    forms = {
        "flags": rb"([R ][O ][E ][PSZ ]|[BC] {4})",
        "natural": rb"([0-9]{1,%d})" % _DIGITS,
        "integer": rb"(-?[0-9]{1,%d})" % _DIGITS,
        "seconds": rb"(-?[0-9]{1,%d}(?:\.[0-9]{1,9})?)" % _DIGITS,
        "text": rb"([^\t\n]*)",
        "command": rb"([^\n]*)",
    }
    fields = (
        "flags natural natural integer text integer integer seconds seconds seconds "
        "natural text natural text command"
    )
    pattern = rb"\t".join(forms[field] for field in fields.split())
    _match_row = re.compile(pattern).fullmatch
    return _match_row


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    unfinished: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        unfinished.append(first)
        if others:
            yield b"".join(unfinished)
            unfinished = [others.pop()]
            yield from others
    yield b"".join(unfinished)
