"""Plays the recorded cases and mends: files into an empty folder, steps, and what came out.

``play`` gives the list of differences, empty when all is as recorded. What a ``case.json`` holds
is said at the classes here; rows are compared by ``harness_rows``.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tests.conformance.harness_processes import MARK, end_marked, marked, wait_until
from tests.conformance.harness_rows import Order, read_rows, rows_difference

HERE = Path(__file__).parent
HANG = "HANG"
SETTLE_S = 0.3

OPTIONS_BY_NEED = {
    "lenient": "--directives lenient",
    "status-server": "--status-server",
}
"""Options of ours without which a case cannot come out as with disBatch."""

_FOREIGN = ("SLURM_", "DISBATCH_", "KVSSTCP_")

_VOLATILE_NAMES = (
    (re.compile(r"_disBatch_\d{12}_\d{3}"), "_disBatch_<stamp>"),
    (re.compile(r"_\d+_context_launch\.log$"), "_<pid>_context_launch.log"),
    (re.compile(r"_engine_\d+\.log$"), "_engine_<rank>.log"),
)


def default_command() -> str:
    """The command under test: ``DISBATCH``, else the disBatch of this environment."""
    installed = Path(sys.executable).with_name("disBatch")
    return os.environ.get("DISBATCH") or shlex.quote(str(installed))


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a case, and what must come of it."""

    args: tuple[str, ...]  # of the command under test; unused with a script
    script: str | None  # for bash; $DISBATCH there is the command
    timeout_s: float
    settle_s: float  # how long what it left running may still change files
    order: Order
    env: Mapping[str, str]
    stdin: str | None  # a file of the case; None is an empty input
    capture: tuple[str, ...]  # globs of compared outputs, "sort:" before them frees the lines
    ignore: tuple[str, ...]
    expect: Mapping[str, Any]

    def argv(self, command: str) -> list[str]:
        if self.script is not None:
            return ["bash", "-c", self.script]
        return [*shlex.split(command), *self.args]


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded case: an empty folder, its files, its steps in order."""

    id: str
    title: str
    need: str | None  # a key of OPTIONS_BY_NEED
    files: Path
    steps: tuple[Step, ...]
    want: str = ""  # of a mend: what a user would expect, in words


@dataclass(frozen=True, slots=True)
class Ending:
    """What a step left behind."""

    exit_status: int | str
    stdout: str
    stderr: str
    took_s: float
    new_files: frozenset[str]


@dataclass(slots=True)
class Stage:
    """Where a case is played: its working folder, and one for what the harness keeps."""

    root: Path
    command: str
    folder: Path = field(init=False)
    mark: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.root / "work"
        self.mark = self.root / "mark"
        self.mark.mkdir()


def _read_step(data: Mapping[str, Any]) -> Step:
    expect = data.get("expect", {})
    return Step(
        args=tuple(data.get("args", ())),
        script=data.get("sh"),
        timeout_s=data["timeout"],
        settle_s=data.get("settle", SETTLE_S),
        order=cast("Order", data["order"]),
        env=data.get("env", {}),
        stdin=data.get("stdin"),
        capture=tuple(data.get("capture", ())),
        ignore=tuple(data.get("ignore", ())),
        expect=expect,
    )


def read_case(path: Path) -> Case:
    """Read one ``case.json``."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Case(
        id=data["id"],
        title=data["title"],
        need=data.get("needs"),
        files=path.parent / "files",
        steps=tuple(_read_step(step) for step in data["steps"]),
        want=data.get("want", ""),
    )


def read_cases(kind: str) -> Iterator[Case]:
    """The cases of the folder ``cases`` or ``mends``, by name."""
    for path in sorted((HERE / kind).glob("*/case.json")):
        yield read_case(path)


def environment(mark: Path, added: Mapping[str, str | None]) -> dict[str, str]:
    """The caller's environment without what would steer the run; None takes a variable away."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    kept[MARK] = str(mark)
    for key, value in added.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value
    return kept


def start(argv: list[str], stage: Stage, name: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, its output going to ``<name>.out`` and ``.err``.

    ``env`` puts the signals back that this process's caller may have had ignored, and then is
    the command itself, by exec: the process id is that of the command.
    """
    with (
        (stage.mark / f"{name}.out").open("wb") as out,
        (stage.mark / f"{name}.err").open("wb") as err,
    ):
        return subprocess.Popen(
            ["env", "--default-signal=HUP,INT,QUIT", *argv],
            stdout=out,
            stderr=err,
            umask=0o022,
            start_new_session=True,
            **options,
        )


def said(stage: Stage, name: str, stream: str, shown: Path) -> str:
    """What a command wrote, with ``<dir>`` for its working folder."""
    text = (stage.mark / f"{name}.{stream}").read_bytes().decode("utf-8", "replace")
    return text.replace(os.path.realpath(shown), "<dir>")


def _files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def stable_name(name: str) -> str:
    """A file's name without what differs from run to run."""
    for pattern, replacement in _VOLATILE_NAMES:
        name = pattern.sub(replacement, name)
    return name


def run_step(step: Step, stage: Stage, name: str) -> Ending:
    """Play one step, and wait until what it left running is over or its time to settle is."""
    before = _files_in(stage.folder)
    added = {"DISBATCH": stage.command, "LC_ALL": "C.UTF-8", **step.env}
    started = time.monotonic()
    with open(stage.folder / step.stdin if step.stdin else os.devnull, "rb") as source:
        process = start(
            step.argv(stage.command),
            stage,
            name,
            cwd=stage.folder,
            env=environment(stage.mark, added),
            stdin=source,
        )
    exit_status: int | str
    try:
        exit_status = process.wait(step.timeout_s)
    except subprocess.TimeoutExpired:
        exit_status = HANG
        end_marked(stage.mark)
        process.wait()
    took_s = time.monotonic() - started
    wait_until(lambda: not marked(stage.mark), step.settle_s)
    new = _files_in(stage.folder) - before
    return Ending(
        exit_status=exit_status,
        stdout=said(stage, name, "out", stage.folder),
        stderr=said(stage, name, "err", stage.folder),
        took_s=took_s,
        new_files=frozenset(
            file for file in new if not any(fnmatch.fnmatch(file, glob) for glob in step.ignore)
        ),
    )


def _content(path: Path, is_sorted: bool, folder: Path) -> Any:
    data = path.read_bytes()
    if is_sorted:
        data = b"".join(sorted(data.splitlines(keepends=True)))
    try:
        return data.decode("utf-8").replace(os.path.realpath(folder), "<dir>")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def _is_sorted(name: str, step: Step) -> bool:
    return any(
        fnmatch.fnmatch(name, glob.removeprefix("sort:"))
        for glob in step.capture
        if glob.startswith("sort:")
    )


def _exit_differences(expect: Mapping[str, Any], ending: Ending) -> Iterator[str]:
    found, wanted = ending.exit_status, expect.get("exit")
    if found == HANG and wanted != HANG:
        yield "does not end"
    elif (wanted == "nonzero" and found == 0) or (
        wanted not in (None, "nonzero") and found != wanted
    ):
        yield f"exit status {found!r}, expected {wanted!r}; stderr {ending.stderr[-600:]!r}"


def _file_differences(step: Step, ending: Ending, folder: Path) -> Iterator[str]:
    found = {stable_name(name): name for name in ending.new_files}
    for name, groups in step.expect.get("status", {}).items():
        path = folder / found.get(name, name)
        if not path.exists():
            yield f"no file {name}"
        elif difference := rows_difference(groups, read_rows(path), step.order):
            yield f"{name}: {difference}"
    for name, text in step.expect.get("outputs", {}).items():
        path = folder / name
        content = _content(path, _is_sorted(name, step), folder) if path.exists() else None
        if content != text:
            yield f"{name} holds {content!r}, expected {text!r}"
    for name, mode in step.expect.get("files", {}).items():
        path = folder / found.get(name, name)
        found_mode = f"{stat.S_IMODE(path.stat().st_mode):04o}" if path.exists() else None
        if found_mode != mode:
            yield f"file {name} has mode {found_mode}, expected {mode}"
    for name in step.expect.get("absent", ()):
        if (folder / name).exists():
            yield f"{name} exists"


def _terminal_differences(expect: Mapping[str, Any], ending: Ending) -> Iterator[str]:
    if expect.get("check_terminal"):
        for stream in ("stdout", "stderr"):
            found = getattr(ending, stream)
            if found != expect[stream]:
                yield f"{stream} {found!r}, expected {expect[stream]!r}"
    if expect.get("stderr_has", "") not in ending.stderr:
        yield f"stderr {ending.stderr[-400:]!r} lacks {expect['stderr_has']!r}"
    if "stderr_lacks" in expect and expect["stderr_lacks"] in ending.stderr:
        yield f"stderr has {expect['stderr_lacks']!r}: {ending.stderr[-400:]!r}"
    if ending.took_s > expect.get("max_seconds", float("inf")):
        yield f"took {ending.took_s:.1f} s, at most {expect['max_seconds']} allowed"


def step_differences(step: Step, ending: Ending, folder: Path) -> list[str]:
    """Everything in which a step's ending is not as recorded."""
    return [
        *_exit_differences(step.expect, ending),
        *_file_differences(step, ending, folder),
        *_terminal_differences(step.expect, ending),
    ]


def play(case: Case, command: str, root: Path) -> list[str]:
    """Play a case in an empty folder below ``root``; what differs, and nothing left running."""
    stage = Stage(root, command)
    if case.files.is_dir():
        shutil.copytree(case.files, stage.folder)
    else:
        stage.folder.mkdir()
    differences = []
    try:
        for number, step in enumerate(case.steps):
            ending = run_step(step, stage, f"step{number}")
            found = step_differences(step, ending, stage.folder)
            differences += [f"step {number}: {difference}" for difference in found]
    finally:
        end_marked(stage.mark)
    return differences
