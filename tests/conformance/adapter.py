"""Recorded facts, put to the package.

Each function takes a fact as it is recorded (what it expects may be missing) and gives what
the package makes of it under the fact's own keys; the two that read one text give its value
or raise ValueError. Nothing is needed but the package: this module may be imported from
anywhere to check facts that are not kept here.

In the facts each character of a string is one byte (latin-1).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from overnight.core.allocate import NodeShare, slurm_shares, ssh_shares
from overnight.errors import OvernightError, ResumeRefused
from overnight.formats import statusfile
from overnight.formats.hostlist import expand_nodelist, read_ssh_nodes
from overnight.formats.slurm import per_node_counts, read_jobs
from overnight.formats.taskfile import Suspicion, TaskReader
from overnight.model.report import SNIPPET_END, Leak
from overnight.model.task import Barrier, DoneBefore, PerEngine, Task
from overnight.sources.earlier import Earlier
from overnight.sources.listfile import ListFile
from overnight.sources.resumed import Resumed

__all__ = [
    "arithmetic", "expand_nodelist", "grammar", "parse_nvidia_smi", "per_node_counts",
    "resume", "row", "snippet",
]  # fmt: skip

Fact = dict[str, Any]

THIS_HOST = "thishost"
RECORDED_JOB = "77"  # the Slurm job in which the facts were recorded
BARRIER_FLAGS = {"B": b"B    ", "C": b"C    "}
LAST_FLAG = {"N": b" ", "P": b"P", "S": b"S"}


def grammar(fact: Fact) -> Fact:
    """What a list, or the items of a stream, are read as.

    disBatch stops at a PERENGINE behind the first task. Ours reads on, so facts are given
    up to that line only.
    """
    reader = TaskReader()
    tasks = []
    for line, piece in _pieces(fact):
        for made in reader.read_piece(piece, line):
            if not isinstance(made, Suspicion):
                tasks.append(_item(made))
        if reader.perengine_late:
            break
    return {
        "tasks": tasks, "unknown": reader.unknown, "perengine_late": reader.perengine_late,
    }  # fmt: skip


def snippet(fact: Fact) -> Fact:
    """How the status file shows what a task has written."""
    written = _bytes(fact["bytes"])
    leak = Leak(len(written), written[:SNIPPET_END], written[SNIPPET_END:][-SNIPPET_END:])
    return {"count": leak.count, "snippet": statusfile.snippet(leak).decode()}


def row(fact: Fact) -> Fact:
    """The row of a report, and its flags."""
    kind, code = fact["kind"], fact["returncode"]
    out, err = fact["outbytes"], fact["errbytes"]
    flags = BARRIER_FLAGS.get(kind) or statusfile.flags_of(code, out, err, LAST_FLAG[kind])
    start, end = fact["start"], fact["end"]
    text = statusfile.ROW % (
        flags, fact["taskid"], fact["line"], fact["repeat"], fact["host"].encode(), fact["pid"],
        code, end - start, start, end,
        out, repr(fact["outdata"]).encode(), err, repr(fact["errdata"]).encode(),
        statusfile.command_field(_bytes(fact["cmd"])),
    )  # fmt: skip
    return {"flags": flags.decode(), "row": text.decode().removesuffix("\n")}


def resume(fact: Fact) -> Fact:
    """What a resumed list runs and what it skips, or that it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}_status.txt") for number in range(len(fact["status"]))]
        for path, text in zip(paths, fact["status"], strict=True):
            path.write_bytes(_bytes(text))
        try:
            return {"tasks": list(_judged(fact, Path(folder, "Tasks"), list(map(str, paths))))}
        except ResumeRefused:
            return {"mismatch": True}


def arithmetic(fact: Fact) -> Fact:
    """The slots of each node, and the cores of a task in them."""
    try:
        if fact["system"] == "ssh":
            cores = read_ssh_nodes(fact["nodes_arg"], THIS_HOST)
            shares, _ = ssh_shares(cores, fact["c"], fact["t"])
            return _shares(shares)
        (job,) = read_jobs(fact["env"])
        shares, warnings = slurm_shares(job, fact["c"], fact["t"], fact["fill"])
    except (OvernightError, ValueError) as error:
        return {"error": str(error)}
    label = "J" + fact["env"].get("SLURM_JOBID", RECORDED_JOB)
    return {**_shares(shares), "warnings": warnings, "label": label}


def parse_nvidia_smi(text: str) -> list[Fact]:
    """GPU listings are not read yet."""
    raise NotImplementedError


def _pieces(fact: Fact) -> Iterator[tuple[int, bytes]]:
    """Each piece of a list with the number of its line, of a stream with that of its item."""
    lines = fact["items"] if "items" in fact else fact["file"].split("\n")
    for number, line in enumerate(lines, 1):
        for piece in _bytes(line).splitlines():
            yield number, piece


def _item(item: Task | Barrier | PerEngine | DoneBefore) -> list[Any]:
    if isinstance(item, Task):
        return ["N", item.id, item.line, item.repeat, _text(item.command)]
    if isinstance(item, Barrier):
        kind = "C" if item.checks else "B"
        key = None if item.key is None else _text(item.key)
        return [kind, item.id, item.line, _text(item.text), key]
    assert isinstance(item, PerEngine)
    return ["P", "START" if item.at_start else "STOP", item.number, item.line, _text(item.command)]


def _judged(fact: Fact, tasks: Path, paths: list[str]) -> Iterator[list[Any]]:
    # The facts say what rows mean; refusing a file without any is the command's decision.
    earlier = Earlier(
        paths, retry=fact["retry"], force=fact["force"], refuses_foreign=False
    )
    tasks.write_bytes(_bytes(fact["file"]))
    source = ListFile(str(tasks), is_lenient=True, warn=lambda _: None)
    earlier.check(TaskReader().read_blocks(source.blocks()))
    resumed = Resumed(source, earlier)
    is_over = False
    while not is_over:
        items, is_over = resumed.read(1_000)
        for item in items:
            yield from _judged_item(item)
    resumed.close()


def _judged_item(item: Task | Barrier | PerEngine | DoneBefore) -> Iterator[list[Any]]:
    if isinstance(item, Barrier):
        yield [item.id, "C" if item.checks else "B", None]
    elif isinstance(item, Task):
        yield [item.id, "N", None]
    elif isinstance(item, DoneBefore):
        for id, row in enumerate(item.rows.split(b"\n")[:-1], item.id):
            yield [id, "S", _text(row)]


def _shares(shares: list[NodeShare]) -> Fact:
    return {
        "nodes": [share.node for share in shares],
        "slots": [share.slots for share in shares],
        "cores_per_task": [share.cores_per_task for share in shares],
    }


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")
