"""What is taken for a list, by its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from overnight.formats.listhead import BINARY, LIST, STATUS, TASK_LOG, kind_of_head
from overnight.formats.statusfile import HEADER, TORN
from overnight.formats.tasklog import attempt_line
from overnight.model.outcome import Exited
from tests.watch.kit import Records, report, task

if TYPE_CHECKING:
    from pathlib import Path

ROW = b"    \t0\t1\t-1\tnode1\t4711\t0\t1.000\t1.000\t2.000\t0\t''\t0\t''\techo a > a"


@pytest.mark.parametrize(
    "head",
    [ROW + b"\n", ROW + b"\r\n", ROW, ROW + TORN + b"\n", ROW + b"\nROW", HEADER,
     HEADER.replace(b"\n", b"\r\n"), HEADER + ROW, ROW.replace(b"    ", b"R  Z", 1),
     ROW.replace(b"    ", b"B    ", 1), ROW.replace(b"    ", b"   P", 1), ROW + b"x" * 70_000],
)
def test_a_status_file_is_told_by_its_first_row_or_its_header(head: bytes) -> None:
    assert kind_of_head(head) == STATUS


def test_a_task_log_is_told_too() -> None:
    assert kind_of_head(attempt_line(task(0), report(0, Exited(1)), "n1", 0, True)) == TASK_LOG


@pytest.mark.parametrize(
    "head", [b"\x7fELF\x02\x01\x01\0", b"echo a\necho b\0c\n", "echo a\n".encode("utf-16")]
)
def test_what_holds_a_nul_byte_is_no_text(head: bytes) -> None:
    assert kind_of_head(head) == BINARY


@pytest.mark.parametrize(
    "head",
    [b"", b"\n", b"echo a\n", b"\xef\xbb\xbfecho a\n", "echo ä\n".encode("latin-1"),
     b"#DISBATCH PREFIX cd x; \n" + ROW, ROW.replace(b"\t", b" "), b"\t" * 20,
     b"run\t" + b"\t".join(b"%d" % n for n in range(20)), b'{"task": 1}\n'],
)
def test_all_other_text_is_a_list(head: bytes) -> None:
    assert kind_of_head(head) == LIST


def test_every_kind_of_row_that_is_written_is_known(tmp_path: Path) -> None:
    for number, written in enumerate((
        Records(tmp_path, "a").task(0, 0, 1), Records(tmp_path, "b").task(0, 0, 1, Exited(3)),
        Records(tmp_path, "c").barrier(0, 1), Records(tmp_path, "d").barrier(0, 1, checks=True),
        Records(tmp_path, "e").command(0, 0), Records(tmp_path, "f").skipped(0),
    )):
        assert kind_of_head(written.status.read_bytes()) == STATUS, number
