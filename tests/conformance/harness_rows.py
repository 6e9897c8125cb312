"""Rows of a status file: read, put into groups whose order is settled, compared with recorded ones.

A recorded row has placeholders where runs differ: ``<node>``, ``<pid>``, ``<sec>``, ``<any>`` and
``<sha256 HEX len N>`` for a long command. Everything else counts to the byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

Row = list[str]
Group = list[Row]
Order = Literal["exact", "barrier", "any"]

FIELD_COUNT = 15
HEADER_FLAGS = "ROE["

_PATTERNS = {
    "<any>": re.compile(r".*", re.DOTALL),
    "<node>": re.compile(r"[^\t]+"),
    "<pid>": re.compile(r"[0-9]+"),
    "<sec>": re.compile(r"[0-9]+\.[0-9]{3}"),
}
_DIGEST = re.compile(r"<sha256 (?P<digest>[0-9a-f]+) len (?P<length>[0-9]+)>")


class StatusRow(NamedTuple):
    """A row with its fields read."""

    flags: str
    task_id: int
    line: int
    repeat: int
    node: str
    pid: int
    exit_code: int
    elapsed_s: float
    started_at: float
    finished_at: float
    out_bytes: int
    out: str
    err_bytes: int
    err: str
    command: str

    @property
    def is_barrier(self) -> bool:
        return self.flags[:1] in ("B", "C")

    @property
    def is_per_engine(self) -> bool:
        return "P" in self.flags

    @property
    def is_skipped(self) -> bool:
        return "S" in self.flags


def parse_row(row: Row) -> StatusRow:
    """Read the fields of a row that is no header."""
    return StatusRow(
        flags=row[0],
        task_id=int(row[1]),
        line=int(row[2]),
        repeat=int(row[3]),
        node=row[4],
        pid=int(row[5]),
        exit_code=int(row[6]),
        elapsed_s=float(row[7]),
        started_at=float(row[8]),
        finished_at=float(row[9]),
        out_bytes=int(row[10]),
        out=row[11],
        err_bytes=int(row[12]),
        err=row[13],
        command=row[14],
    )


def read_rows(path: Path, errors: str = "strict") -> list[Row]:
    """The whole rows of a status file; a torn last line is none."""
    lines = path.read_bytes().decode("utf-8", errors).split("\n")[:-1]
    return [line.split("\t", FIELD_COUNT - 1) for line in lines]


def is_header(row: Row) -> bool:
    return row[0].startswith(HEADER_FLAGS)


def _stands_alone(row: Row, order: Order) -> bool:
    if order == "exact" or is_header(row) or row[0][:1] in ("B", "C"):
        return True
    return order == "barrier" and row[0][3:4] == "P"


def _sorted(group: Group) -> Group:
    """Rows whose order is free, in one that two runs share."""
    if any(is_header(row) or len(row) < FIELD_COUNT for row in group):
        return group
    return sorted(group, key=lambda r: (int(r[1]), int(r[2]), r[0], int(r[3]), r[6]))


def group_rows(rows: Sequence[Row], order: Order) -> list[Group]:
    """Groups in the order they must have; inside one the order is free."""
    groups: list[Group] = []
    for alone, members in groupby(rows, key=lambda row: _stands_alone(row, order)):
        if alone:
            groups += [[row] for row in members]
        else:
            groups.append(list(members))
    return groups


def field_fits(expected: str, found: str) -> bool:
    """Whether a field is what was recorded, or of the kind its placeholder names."""
    if pattern := _PATTERNS.get(expected):
        return pattern.fullmatch(found) is not None
    if match := _DIGEST.fullmatch(expected):
        command = found.encode()
        is_as_long = len(command) == int(match["length"])
        return is_as_long and hashlib.sha256(command).hexdigest() == match["digest"]
    return expected == found


def _row_fits(expected: Row, found: Row) -> bool:
    return len(expected) == len(found) and all(map(field_fits, expected, found))


def rows_difference(expected: Sequence[Group], rows: Sequence[Row], order: Order) -> str | None:
    """The first thing in which rows differ from the recorded groups, in words."""
    found = group_rows(rows, order)
    sizes = [len(group) for group in expected]
    found_sizes = [len(group) for group in found]
    if sizes != found_sizes:
        return f"groups of {found_sizes} rows, expected {sizes}: {found}"
    for expected_group, found_group in zip(expected, found, strict=True):
        pairs = zip(_sorted(expected_group), _sorted(found_group), strict=True)
        for expected_row, found_row in pairs:
            if not _row_fits(expected_row, found_row):
                return f"row {found_row}, expected {expected_row}"
    return None
