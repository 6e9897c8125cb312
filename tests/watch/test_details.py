"""Reading ``_tasks.jsonl``: tolerant, and the quick way no other than the plain one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.formats.tasklog import attempt_line
from overnight.model.outcome import Exited, Signalled
from overnight.watch.details import Detail, Details, read_detail
from tests.watch.kit import report, task

LINE = attempt_line(task(7), report(7, Exited(3), attempt=2), "n1", 0, True)


def values(detail: Detail | None) -> list[object]:
    assert detail is not None
    told = [getattr(detail, name) for name in Detail.__slots__ if name != "outcome"]
    return [*told, detail.outcome.kind, detail.outcome.words()]


@given(
    st.integers(0, 10**9), st.integers(-64, 255), st.floats(0, 1e6), st.booleans(),
    st.sampled_from(["n1", 'odd"node', "ünode"]),
)
def test_a_line_reads_the_same_with_its_keys_in_another_order(
    id: int, code: int, elapsed_s: float, settles: bool, node: str
) -> None:
    outcome = Exited(code) if code >= 0 else Signalled(code)
    line = attempt_line(task(id), report(id, outcome, elapsed_s=elapsed_s), node, 3, settles)
    shuffled = json.dumps(dict(reversed(json.loads(line).items()))).encode()
    assert values(read_detail(line)) == values(read_detail(shuffled))


def test_only_task_start_and_elapsed_must_be_there() -> None:
    detail = read_detail(b'{"task": 3, "start": 5.5, "elapsed": 1, "news": [1, 2]}')
    assert detail is not None
    assert (detail.task_id, detail.started_at, detail.slot, detail.settles) == (3, 5.5, -1, True)


@pytest.mark.parametrize("cut", range(0, len(LINE) - 1, 7))
def test_a_line_cut_anywhere_tells_of_no_attempt(cut: int) -> None:
    assert read_detail(LINE[:cut]) is None


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"null", b"17", b'{"task": "x", "start": 1, "elapsed": 1}',
        b'{"task": 1, "start": 1e999, "elapsed": "soon"}', b"[" * 100_000, b"\xff\xfe\x00",
        b'{"task": 1, "start": 1, "elapsed": 1, "slot": null}',
    ],
    ids=range(8),
)
def test_a_foreign_line_tells_of_no_attempt(line: bytes) -> None:
    assert read_detail(line) is None


def test_unread_lines_are_counted_and_blank_ones_are_not() -> None:
    details = Details([LINE, b"\n", b"torn", b"{}\n"])
    assert details.unread_count == 2
    assert len(details.rest()) == 1


def test_a_detail_is_given_out_once() -> None:
    details = Details([LINE])
    started_at = report(7).started_at
    assert details.take(7, started_at) is not None
    assert details.take(7, started_at) is None
    assert details.take(8, started_at) is None
