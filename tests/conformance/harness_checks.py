"""The checks of a bug case: each looks at the evidence of its run and says whether it holds.

``CHECKS`` has them by the name they bear in the data. Their meaning is the data's; what they look
at is an ``Evidence``: a folder, the files in it, and what was said and how it ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.harness_processes import processes, wait_until
from tests.conformance.harness_rows import (
    FIELD_COUNT,
    Row,
    StatusRow,
    is_header,
    parse_row,
    read_rows,
)

TIMEOUT = "TIMEOUT"
GRACE_S = 0.0


@dataclass(slots=True)
class Evidence:
    """What there is to be looked at, at this moment, of a run."""

    folder: Path  # where it runs
    stub_dir: Path  # logs of the stand-ins, and what was written to the terminal
    bystanders: frozenset[int]  # processes that were there before it
    exit_status: int | str | None = None  # of the last run; None while it lasts
    took_s: float | None = None  # the last run
    unmet_wishes: list[str] = field(default_factory=list)

    def said(self, *streams: str) -> str:
        """All that the started commands wrote to these streams (``out``, ``err``)."""
        return "".join(
            path.read_bytes().decode("utf-8", "replace")
            for stream in streams
            for path in sorted(self.stub_dir.glob(f"*.{stream}"))
        )

    def told(self) -> str:
        """Everything a user can read: the terminal, the logs, the status files."""
        written = [*self.folder.rglob("*.log"), *self.folder.rglob("*_status.txt")]
        return self.said("out", "err") + "".join(
            path.read_bytes().decode("utf-8", "replace") for path in written
        )

    def raw_rows(self) -> list[Row]:
        """The rows of the newest status file."""
        files = list(self.folder.rglob("*_status.txt"))
        if not files:
            return []
        newest = max(files, key=lambda path: path.stat().st_mtime)
        return read_rows(newest, errors="replace")

    def rows(self) -> list[StatusRow]:
        return [
            parse_row(row)
            for row in self.raw_rows()
            if len(row) == FIELD_COUNT and not is_header(row)
        ]

    def task_rows(self) -> list[StatusRow]:
        return [row for row in self.rows() if not row.is_barrier and not row.is_per_engine]

    def text_of(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else None

    def lines_of(self, name: str) -> list[str]:
        text = self.text_of(name)
        return [] if text is None else text.removesuffix("\n").split("\n") if text else []


Check = Callable[[Evidence, Any], bool]


def holds(evidence: Evidence, check: Mapping[str, Any]) -> bool:
    """Whether one check, a mapping of its name to what it asks, holds."""
    ((name, asked),) = check.items()
    return CHECKS[name](evidence, asked)


def _exit(evidence: Evidence, wanted: int | str) -> bool:
    if wanted == "nonzero":
        return evidence.exit_status not in (0, None, TIMEOUT)
    return evidence.exit_status == wanted


def _within(evidence: Evidence, limit_s: float) -> bool:
    is_over = evidence.exit_status not in (None, TIMEOUT)
    return is_over and evidence.took_s is not None and evidence.took_s <= limit_s


def _exists(evidence: Evidence, names: Sequence[str]) -> bool:
    return all((evidence.folder / name).exists() for name in names)


def _absent(evidence: Evidence, names: Sequence[str]) -> bool:
    return not any(os.path.lexists(evidence.folder / name) for name in names)


_CONTENT: dict[str, Callable[[str, list[str], Any], bool]] = {
    "equals": lambda text, lines, wanted: text == wanted,
    "one_of": lambda text, lines, wanted: text in wanted,
    "contains": lambda text, lines, wanted: wanted in text,
    "lines_sorted": lambda text, lines, wanted: sorted(lines) == sorted(wanted),
    "count_lines": lambda text, lines, wanted: len(lines) == wanted,
    "unique_lines": lambda text, lines, wanted: len(set(lines)) == wanted,
    "lacks_line": lambda text, lines, wanted: wanted not in lines,
}


def _content(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    name = asked["path"]
    text = evidence.text_of(name)
    if text is None:
        return False
    lines = evidence.lines_of(name)
    return all(
        _CONTENT[kind](text, lines, wanted) for kind, wanted in asked.items() if kind != "path"
    )


def _content_hex_name(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    name = os.fsdecode(bytes.fromhex(asked["name_hex"]))
    content = {key: value for key, value in asked.items() if key != "name_hex"}
    return _content(evidence, {"path": name, **content})


def _size(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    path = evidence.folder / str(asked["path"])
    return path.exists() and path.stat().st_size == int(asked["bytes"])


def _newer(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    newer, older = evidence.folder / str(asked["path"]), evidence.folder / str(asked["than"])
    if not (newer.exists() and older.exists()):
        return False
    return newer.stat().st_mtime - older.stat().st_mtime >= float(asked["by_s"])


_ROW_CHECKS: dict[str, Callable[[StatusRow, Any], bool]] = {
    "rc": lambda row, wanted: row.exit_code == wanted,
    "rc_in": lambda row, wanted: row.exit_code in wanted,
    "line": lambda row, wanted: row.line == wanted,
    "rep": lambda row, wanted: row.repeat == wanted,
    "cmd": lambda row, wanted: row.command == wanted,
    "flags": lambda row, wanted: row.flags == wanted,
    "flags_has": lambda row, wanted: all(letter in row.flags for letter in wanted),
    "flags_lacks": lambda row, wanted: not any(letter in row.flags for letter in wanted),
    "out_bytes": lambda row, wanted: row.out_bytes == wanted,
    "err_bytes": lambda row, wanted: row.err_bytes == wanted,
    "elapsed_lt": lambda row, wanted: row.elapsed_s < wanted,
}


def _row_fits(row: StatusRow, asked: Mapping[str, Any]) -> bool:
    return all(_ROW_CHECKS[kind](row, wanted) for kind, wanted in asked.items() if kind != "id")


def _task(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    rows = [row for row in evidence.task_rows() if row.task_id == asked["id"]]
    return bool(rows) and _row_fits(rows[-1], asked)


def _per_engine_row(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    return any(row.is_per_engine and _row_fits(row, asked) for row in evidence.rows())


def _columns(evidence: Evidence, count: int) -> bool:
    rows = evidence.raw_rows()
    return bool(rows) and all(len(row) == count for row in rows)


def _snippet_max(evidence: Evidence, length: int) -> bool:
    quotes = 2
    return all(len(row.out) - quotes <= length for row in evidence.task_rows())


def _status_header(evidence: Evidence, wanted: bool) -> bool:
    rows = evidence.raw_rows()
    return (bool(rows) and is_header(rows[0])) is wanted


def _host(row: StatusRow) -> str:
    return row.node.partition(".")[0]


def most_at_once(rows: Sequence[StatusRow]) -> int:
    """Most tasks at work at one time, from their start and finish times."""
    ran = [row for row in rows if not row.is_skipped]
    moments = [(row.started_at, 1) for row in ran] + [(row.finished_at, -1) for row in ran]
    at_once = most = 0
    for _, change in sorted(moments):  # of one moment, ends come before starts
        at_once += change
        most = max(most, at_once)
    return most


def _max_overlap(evidence: Evidence, limit: int) -> bool:
    return 0 < most_at_once(evidence.task_rows()) <= limit


def _overlap_at_least(evidence: Evidence, count: int) -> bool:
    return most_at_once(evidence.task_rows()) >= count


def _max_overlap_by_host(evidence: Evidence, limits: Mapping[str, int]) -> bool:
    rows = evidence.task_rows()
    if not all(_host(row) in limits for row in rows):
        return False
    return all(
        most_at_once([row for row in rows if _host(row) == host]) <= limit
        for host, limit in limits.items()
    )


def _order(evidence: Evidence, asked: Mapping[str, str]) -> bool:
    words = (evidence.text_of(asked["path"]) or "").split()
    before, after = asked["before"], asked["after"]
    return before in words and after in words and words.index(before) < words.index(after)


def _not_order(evidence: Evidence, asked: Mapping[str, str]) -> bool:
    return not _order(evidence, asked)


def _stdout_has(evidence: Evidence, texts: Sequence[str]) -> bool:
    left = evidence.said("out")
    for text in texts:
        _, found, left = left.partition(text)
        if not found:
            return False
    return True


def _no_process(evidence: Evidence, asked: Mapping[str, Any]) -> bool:
    """Nobody has these words in the command line, bystanders and other cases' tasks apart."""
    ours = (None, str(evidence.stub_dir))

    def none_left() -> bool:
        return not any(
            asked["marker"] in process.command
            and process.mark in ours
            and process.pid not in evidence.bystanders
            for process in processes()
        )

    return wait_until(none_left, float(asked.get("grace_s", GRACE_S)))


def _stub_log_lacks(evidence: Evidence, asked: Mapping[str, str]) -> bool:
    log = evidence.stub_dir / asked["log"]
    return not log.exists() or asked["text"] not in log.read_text(errors="replace")


def _any_of(evidence: Evidence, alternatives: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    return any(all(holds(evidence, check) for check in checks) for checks in alternatives)


def _wish(evidence: Evidence, checks: Sequence[Mapping[str, Any]]) -> bool:
    """Better, but not required: kept to be told, never a failure."""
    evidence.unmet_wishes += [str(check) for check in checks if not holds(evidence, check)]
    return True


CHECKS: dict[str, Check] = {
    "exit": _exit,
    "within_s": _within,
    "exists": _exists,
    "absent": _absent,
    "content": _content,
    "content_hex_name": _content_hex_name,
    "size": _size,
    "glob_count": lambda e, asked: len(list(e.folder.glob(asked["pattern"]))) == asked["n"],
    "newer": _newer,
    "rows": lambda e, count: len(e.task_rows()) == count,
    "rows_min": lambda e, count: len(e.task_rows()) >= count,
    "task": _task,
    "perengine_row": _per_engine_row,
    "columns": _columns,
    "snippet_max": _snippet_max,
    "status_header": _status_header,
    "max_overlap": _max_overlap,
    "overlap_at_least": _overlap_at_least,
    "max_overlap_by_host": _max_overlap_by_host,
    "order": _order,
    "not_order": _not_order,
    "reported": lambda e, texts: any(text in e.told() for text in texts),
    "reported_all": lambda e, texts: all(text in e.told() for text in texts),
    "not_reported": lambda e, texts: not any(text in e.told() for text in texts),
    "reported_stderr": lambda e, texts: any(text in e.said("err") for text in texts),
    "stderr_lacks": lambda e, text: text not in e.said("err"),
    "stdout_has": _stdout_has,
    "no_process": _no_process,
    "stub_log_lacks": _stub_log_lacks,
    "stub_log_absent": lambda e, name: not (e.stub_dir / name).exists(),
    "any_of": _any_of,
    "wish": _wish,
}
