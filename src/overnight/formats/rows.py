"""Attempts, reports and commands as rows: what most bytes of a link are.

Each payload is a count, the fixed parts of all rows side by side, then the variable
parts in the same order. That way one ``iter_unpack`` reads a batch, and a row costs
about a microsecond either way. Numbers are big endian.
"""

from __future__ import annotations

from struct import Struct, error, pack, unpack

from overnight.errors import LinkBroken
from overnight.model.attempt import Attempt
from overnight.model.outcome import (
    Cancelled,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    Skipped,
    TimedOut,
)
from overnight.model.report import NO_LEAK, Leak, Report
from overnight.model.task import PerEngine, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from overnight.model.outcome import Outcome

_COUNT = Struct(">I")
_NUMBER = Struct(">Q")


def _join(fixed: list[bytes], variable: list[bytes]) -> bytes:
    return b"".join((_COUNT.pack(len(fixed)), *fixed, *variable))


def _split(payload: bytes, row: Struct) -> tuple[Iterator[tuple[Any, ...]], int]:
    """The fixed parts, and where the variable ones begin."""
    try:
        (count,) = _COUNT.unpack_from(payload)
    except error as cause:
        raise LinkBroken(f"rows without their count: {cause}") from cause
    start = _COUNT.size + count * row.size
    if start > len(payload):
        raise LinkBroken(f"{count} rows said, {len(payload)} bytes came")
    return row.iter_unpack(payload[_COUNT.size:start]), start


def _check_end(payload: bytes, end: int) -> None:
    if end != len(payload):
        raise LinkBroken(f"rows of {end} bytes in a payload of {len(payload)}")


# ---- attempts: id, line, repeat index, number of the attempt, length of the command

_ATTEMPT = Struct(">QQqII")


def encode_attempts(attempts: Sequence[Attempt]) -> bytes:
    """Rows of an ASSIGN or RUNNING frame.

    Raises:
        struct.error: A repeat index beyond 64 bits; a reader of lists refuses those.
    """
    make = _ATTEMPT.pack
    fixed, commands = [], []
    for attempt in attempts:
        task = attempt.task
        command = task.command
        fixed.append(make(task.id, task.line, task.repeat, attempt.number, len(command)))
        commands.append(command)
    return _join(fixed, commands)


def decode_attempts(payload: bytes) -> list[Attempt]:
    """What ``encode_attempts`` was given.

    Raises:
        LinkBroken: The rows do not fit their payload.
    """
    rows, at = _split(payload, _ATTEMPT)
    attempts = []
    for id, line, repeat, number, size in rows:
        end = at + size
        attempts.append(Attempt(Task(id, line, repeat, payload[at:end]), number))
        at = end
    _check_end(payload, at)
    return attempts


# ---- reports: the fixed part in the order of _report_row, then four snippets and the
# outcome's own part (a reason as text, or a time limit)

_REPORT = Struct(">QIBiiiBIdddQQQBBBBI")
_LIMIT = Struct(">d")

_EXITED, _SIGNALLED, _NOT_STARTED, _TIMED_OUT, _CANCELLED, _LOST, _SKIPPED = range(7)
_KINDS: dict[type, int] = {
    Exited: _EXITED, Signalled: _SIGNALLED, NotStarted: _NOT_STARTED, TimedOut: _TIMED_OUT,
    Cancelled: _CANCELLED, Lost: _LOST, Skipped: _SKIPPED,
}
_LATE, _BY_OOM_KILLER = 1, 2


def _own_part(outcome: Outcome) -> bytes:
    """What an outcome has beside its code."""
    if isinstance(outcome, (Exited, Signalled)):
        return b""
    if isinstance(outcome, TimedOut):
        return _LIMIT.pack(outcome.limit_s)
    return outcome.reason.encode("utf-8", "surrogatepass")


def _outcome(kind: int, code: int, flags: int, own: bytes) -> Outcome:
    if kind == _EXITED:
        return Exited(code)
    if kind == _SIGNALLED:
        return Signalled(code, bool(flags & _BY_OOM_KILLER))
    if kind == _TIMED_OUT:
        return TimedOut(code, _LIMIT.unpack(own)[0])
    reason = own.decode("utf-8", "surrogatepass")
    if kind == _LOST:
        return Lost(reason)
    if kind == _NOT_STARTED:
        return NotStarted(code, reason)
    if kind == _CANCELLED:
        return Cancelled(code, reason)
    if kind == _SKIPPED:
        return Skipped(code, reason)
    raise LinkBroken(f"outcome {kind} is not known here")


def _report_row(report: Report, variable: list[bytes]) -> bytes:
    outcome, out, err = report.outcome, report.out, report.err
    own = _own_part(outcome)
    flags = _LATE if report.late else 0
    if isinstance(outcome, Signalled) and outcome.by_oom_killer:
        flags |= _BY_OOM_KILLER
    if out.count or err.count or own:
        variable += (out.head, out.tail, err.head, err.tail, own)
    return _REPORT.pack(
        report.task_id, report.attempt, _KINDS[type(outcome)], outcome.code, report.pid,
        report.slot, flags, report.left_running, report.started_at, report.elapsed_s,
        report.cpu_s, report.max_rss_kib, out.count, err.count, len(out.head), len(out.tail),
        len(err.head), len(err.tail), len(own),
    )


def _report_rows(reports: Sequence[Report]) -> bytes:
    variable: list[bytes] = []
    fixed = [_report_row(report, variable) for report in reports]
    return _join(fixed, variable)


def _reports(payload: bytes) -> list[Report]:
    rows, at = _split(payload, _REPORT)
    reports = []
    try:
        for (
            task_id, attempt, kind, code, pid, slot, flags, left_running, started_at, elapsed_s,
            cpu_s, max_rss_kib, out_count, err_count, out_head, out_tail, err_head, err_tail, own,
        ) in rows:
            out = err = NO_LEAK
            if out_count:
                out = Leak(
                    out_count, payload[at:at + out_head],
                    payload[at + out_head:at + out_head + out_tail],
                )
                at += out_head + out_tail
            if err_count:
                err = Leak(
                    err_count, payload[at:at + err_head],
                    payload[at + err_head:at + err_head + err_tail],
                )
                at += err_head + err_tail
            outcome = (
                Exited(code) if kind == _EXITED
                else _outcome(kind, code, flags, payload[at:at + own])
            )
            at += own
            reports.append(Report(
                task_id, attempt, outcome, pid, started_at, elapsed_s, out, err, cpu_s,
                max_rss_kib, slot, bool(flags & _LATE), left_running,
            ))
    except (error, UnicodeDecodeError) as cause:
        raise LinkBroken(f"a report cannot be read: {cause}") from cause
    _check_end(payload, at)
    return reports


def encode_reports(sequence: int, reports: Sequence[Report]) -> bytes:
    """An ENDED frame: its sequence number and its reports."""
    return _NUMBER.pack(sequence) + _report_rows(reports)


def decode_reports(payload: bytes) -> tuple[int, list[Report]]:
    """What ``encode_reports`` was given.

    Raises:
        LinkBroken: The rows do not fit their payload, or name an unknown outcome.
    """
    return decode_number(payload[:8]), _reports(payload[8:])


def reports_and_rows(payload: bytes) -> tuple[list[Report], bytes]:
    """Reports of an ENDED frame, and their rows, which ``numbered`` makes a frame of again.

    Raises:
        LinkBroken: As ``decode_reports``.
    """
    rows = payload[_NUMBER.size:]
    return _reports(rows), rows


def numbered(sequence: int, rows: bytes) -> bytes:
    """An ENDED frame with another sequence number."""
    return _NUMBER.pack(sequence) + rows


# ---- reports with their attempts (KEPT), and of per-engine commands (PE_ENDED)


def encode_kept(sequence: int, kept: Sequence[tuple[Attempt, Report]]) -> bytes:
    """A KEPT frame: reports of a time when no driver listened, each with its attempt."""
    attempts = encode_attempts([attempt for attempt, _ in kept])
    head = _NUMBER.pack(sequence) + _NUMBER.pack(len(attempts))
    return head + attempts + _report_rows([report for _, report in kept])


def decode_kept(payload: bytes) -> tuple[int, list[tuple[Attempt, Report]]]:
    """What ``encode_kept`` was given.

    Raises:
        LinkBroken: The rows do not fit their payload or each other.
    """
    sequence = decode_number(payload[:8])
    size = decode_number(payload[8:16])
    attempts = decode_attempts(payload[16:16 + size])
    reports = _reports(payload[16 + size:])
    if len(attempts) != len(reports):
        raise LinkBroken(f"{len(attempts)} attempts kept with {len(reports)} reports")
    return sequence, list(zip(attempts, reports))


def encode_per_engine_reports(sequence: int, rows: Sequence[tuple[bool, Report]]) -> bytes:
    """A PE_ENDED frame; each row says whether it was a START command."""
    sides = bytes(at_start for at_start, _ in rows)
    head = _NUMBER.pack(sequence) + _NUMBER.pack(len(sides))
    return head + sides + _report_rows([report for _, report in rows])


def decode_per_engine_reports(payload: bytes) -> tuple[int, list[tuple[bool, Report]]]:
    """What ``encode_per_engine_reports`` was given.

    Raises:
        LinkBroken: The rows do not fit their payload.
    """
    sequence = decode_number(payload[:8])
    size = decode_number(payload[8:16])
    sides = payload[16:16 + size]
    reports = _reports(payload[16 + size:])
    if len(sides) != len(reports):
        raise LinkBroken(f"{len(sides)} sides said for {len(reports)} reports")
    return sequence, [(side != 0, report) for side, report in zip(sides, reports)]


# ---- per-engine commands: at start, number, line, length of the command

_COMMAND = Struct(">?IQI")


def encode_commands(commands: Sequence[PerEngine]) -> bytes:
    """Rows of a START frame."""
    fixed = [
        _COMMAND.pack(each.at_start, each.number, each.line, len(each.command))
        for each in commands
    ]
    return _join(fixed, [each.command for each in commands])


def decode_commands(payload: bytes) -> list[PerEngine]:
    """What ``encode_commands`` was given.

    Raises:
        LinkBroken: The rows do not fit their payload.
    """
    rows, at = _split(payload, _COMMAND)
    commands = []
    for at_start, number, line, size in rows:
        commands.append(PerEngine(at_start, number, line, payload[at:at + size]))
        at += size
    _check_end(payload, at)
    return commands


# ---- bare numbers


def encode_ids(ids: Sequence[int]) -> bytes:
    """Task ids, as RECALL and RECALLED have them."""
    return pack(f">{len(ids)}Q", *ids)


def decode_ids(payload: bytes) -> list[int]:
    """What ``encode_ids`` was given.

    Raises:
        LinkBroken: Not a whole number of ids.
    """
    count, rest = divmod(len(payload), _NUMBER.size)
    if rest:
        raise LinkBroken(f"ids in {len(payload)} bytes")
    return list(unpack(f">{count}Q", payload))


def encode_number(number: int) -> bytes:
    """The payload of ACK, PING and PONG, and the sequence number of reports."""
    return _NUMBER.pack(number)


def decode_number(payload: bytes) -> int:
    """What ``encode_number`` was given.

    Raises:
        LinkBroken: Not eight bytes.
    """
    if len(payload) != _NUMBER.size:
        raise LinkBroken(f"a number of {len(payload)} bytes")
    return int(_NUMBER.unpack(payload)[0])
