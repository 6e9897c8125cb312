"""Attempts, reports and commands as rows: round trips, cuts, garbage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import LinkBroken
from overnight.formats import rows
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
from overnight.model.report import Leak, Report
from overnight.model.task import PerEngine, Task

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(allow_nan=False)
REASONS = st.text(max_size=40)
COMMANDS = st.binary(max_size=60)

ATTEMPTS = st.builds(
    Attempt,
    st.builds(Task, U64, U64, st.integers(-(2**63), 2**63 - 1), COMMANDS),
    U32,
)
OUTCOMES = st.one_of(
    st.builds(Exited, st.integers(0, 255)),
    st.builds(Signalled, st.integers(-64, -1), st.booleans()),
    st.builds(NotStarted, I32, REASONS),
    st.builds(TimedOut, I32, FLOATS),
    st.builds(Cancelled, I32, REASONS),
    st.builds(Lost, REASONS),
    st.builds(Skipped, I32, REASONS),
)
LEAKS = st.builds(
    lambda count, head, tail: Leak(count, head, tail) if count else Leak(),
    U64, st.binary(max_size=40), st.binary(max_size=40),
)
REPORTS = st.builds(
    Report, U64, U32, OUTCOMES, I32, FLOATS, FLOATS, LEAKS, LEAKS, FLOATS, U64, I32,
    st.booleans(), U32,
)
PER_ENGINE = st.builds(PerEngine, st.booleans(), U32, U64, COMMANDS)


def said(value: object) -> Any:
    """A value as plain data, to be compared."""
    if isinstance(value, (list, tuple)):
        return [said(each) for each in value]
    if hasattr(type(value), "__slots__"):
        return type(value).__name__, {
            name: said(getattr(value, name)) for name in type(value).__slots__
        }
    return value


@given(st.lists(ATTEMPTS, max_size=8))
def test_attempts_travel(attempts: list[Attempt]) -> None:
    assert said(rows.decode_attempts(rows.encode_attempts(attempts))) == said(attempts)


@given(U64, st.lists(REPORTS, max_size=6))
def test_reports_travel_with_every_kind_of_outcome(sequence: int, reports: list[Report]) -> None:
    back = rows.decode_reports(rows.encode_reports(sequence, reports))
    assert said(back) == said((sequence, reports))


@given(U64, st.lists(st.tuples(ATTEMPTS, REPORTS), max_size=5))
def test_kept_reports_travel_with_their_attempts(
    sequence: int, kept: list[tuple[Attempt, Report]]
) -> None:
    back = rows.decode_kept(rows.encode_kept(sequence, kept))
    assert said(back) == said((sequence, kept))


@given(U64, st.lists(st.tuples(st.booleans(), REPORTS), max_size=5))
def test_reports_of_commands_say_whether_they_are_of_the_start(
    sequence: int, reports: list[tuple[bool, Report]]
) -> None:
    back = rows.decode_per_engine_reports(rows.encode_per_engine_reports(sequence, reports))
    assert said(back) == said((sequence, reports))


@given(st.lists(PER_ENGINE, max_size=6))
def test_commands_travel(commands: list[PerEngine]) -> None:
    assert rows.decode_commands(rows.encode_commands(commands)) == commands


@given(st.lists(U64, max_size=20))
def test_ids_travel(ids: list[int]) -> None:
    assert rows.decode_ids(rows.encode_ids(ids)) == ids


@given(U64)
def test_numbers_travel(number: int) -> None:
    assert rows.decode_number(rows.encode_number(number)) == number


TASK = Task(7, 8, -1, b"echo")
REPORT = Report(7, 1, NotStarted(2, "no such file"), 1, 2.0, 3.0, Leak(3, b"abc"), Leak(1, b"x"))

SAMPLES: list[tuple[Callable[[bytes], object], bytes]] = [
    (rows.decode_attempts, rows.encode_attempts([Attempt(TASK, 1), Attempt(TASK, 2)])),
    (rows.decode_reports, rows.encode_reports(4, [REPORT, REPORT])),
    (rows.decode_kept, rows.encode_kept(4, [(Attempt(TASK, 1), REPORT)])),
    (rows.decode_per_engine_reports, rows.encode_per_engine_reports(4, [(True, REPORT)])),
    (rows.decode_commands, rows.encode_commands([PerEngine(True, 0, 1, b"x")])),
    (rows.decode_ids, rows.encode_ids([1])),
    (rows.decode_number, rows.encode_number(1)),
]
BY_NAME = [pytest.param(*each, id=each[0].__name__) for each in SAMPLES]


@pytest.mark.parametrize(("decode", "payload"), BY_NAME)
def test_rows_cut_anywhere_break_the_link(
    decode: Callable[[bytes], object], payload: bytes
) -> None:
    for cut in range(len(payload)):
        if cut or decode is not rows.decode_ids:  # no ids at all are ids, too
            with pytest.raises(LinkBroken):
                decode(payload[:cut])


@pytest.mark.parametrize(("decode", "payload"), BY_NAME)
def test_rows_with_something_behind_them_break_the_link(
    decode: Callable[[bytes], object], payload: bytes
) -> None:
    with pytest.raises(LinkBroken):
        decode(payload + b"\0")


@pytest.mark.parametrize("decode", [each[0] for each in SAMPLES])
@given(data=st.binary(max_size=200))
def test_garbage_is_read_or_breaks_the_link(
    decode: Callable[[bytes], object], data: bytes
) -> None:
    with contextlib.suppress(LinkBroken):
        decode(data)


def test_an_outcome_of_a_later_version_breaks_the_link() -> None:
    payload = bytearray(rows.encode_reports(1, [REPORT]))
    payload[8 + 4 + 8 + 4] = 99
    with pytest.raises(LinkBroken, match="outcome 99"):
        rows.decode_reports(bytes(payload))
