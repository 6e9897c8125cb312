"""What tests of options share: lists that show what an option does, and how a run is read."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.kit import Ended, Live, Row, Stage, at_most_at_once, overnight, until

BOUND_S = 30.0
"""For commands that take a second or less where the option under test has its effect."""

WAIT_FOR_GO = "until [ -e go ]; do sleep 0.02; done"


def ends(
    stage: Stage, command: Sequence[str], status: int = 0, *, env: dict[str, str] | None = None,
) -> Ended:
    """Run a command to its end, which must have this status."""
    ended = stage.run(command, env=env, limit_s=BOUND_S)
    assert ended.status == status, f"status {ended.status}, not {status}:\n{ended.err}{ended.out}"
    return ended


def empties(stage: Stage, command: Sequence[str]) -> Ended:
    """Run a command until its context has had all its tasks, and then stop it.

    With tasks left it waits for another context.
    """
    live = stage.start(command)
    live.says("no slots are there to run them on")
    live.signal(signal.SIGTERM)
    ended = live.wait(BOUND_S)
    assert ended.status in (3, 128 + signal.SIGTERM), ended
    return ended


def write_crowd(stage: Stage, slots: int, then: str = "true") -> None:
    """A list ``Tasks`` that ends only with so many slots, and shows when there are more.

    Its first tasks wait for one another. All linger, so that every slot is in use at once.

    Args:
        stage: Where.
        slots: That many tasks must be able to run at once.
        then: What each task does in the end.
    """
    together = f"until [ $(wc -l < crowd) -ge {slots} ]; do sleep 0.02; done"
    stage.write("Tasks", f"#DISBATCH REPEAT {2 * slots} echo >> crowd; {together}; sleep 0.1;"
                         f" {then}")


def slots_used(stage: Stage, command: Sequence[str], slots: int, **env: str) -> int:
    """How many tasks of a crowd ran at once under a command that has the prefix P."""
    write_crowd(stage, slots)
    ends(stage, command, env=env)
    return at_most_at_once(tasks_of(stage, "P"))


def tasks_of(stage: Stage, prefix: str) -> list[Row]:
    """Rows of tasks, in the order of the file."""
    return [row for row in stage.rows(prefix) if row.is_task]


def ids(stage: Stage, prefix: str) -> list[int]:
    """Ids of all rows, in the order of the file."""
    return [row.id for row in stage.rows(prefix)]


def flags(stage: Stage, prefix: str) -> dict[int, str]:
    """Flags of all rows by id."""
    return {row.id: row.flags for row in stage.rows(prefix)}


def events(text: str) -> list[dict[str, Any]]:
    """The objects of ``--json``; a line that is none fails the test."""
    return [json.loads(line) for line in text.splitlines()]


def log_of(stage: Stage, prefix: str) -> str:
    """The driver's log."""
    return stage.read(f"{prefix}_driver.log")


def logs(stage: Stage, live: Live, text: str) -> None:
    """Wait until the driver's log of the run P holds this."""
    until(lambda: text in log_of(stage, "P") or live.is_over, f"{text!r} in the log")
    assert text in log_of(stage, "P"), f"it ended and its log never said {text!r}: {live.err}"


def new_files(stage: Stage, *known: str) -> set[str]:
    """Names in the folder beside these."""
    return {path.name for path in stage.folder.iterdir()} - set(known)


def watching(stage: Stage, prefix: str) -> Live:
    """``overnight attach``, once it looks on."""
    live = stage.start(overnight("attach", prefix))
    status = str(stage.path(f"{prefix}_status.txt"))
    until(lambda: live.is_over or status in _open_files(live.pid), "attach has opened the file")
    return live


def _open_files(pid: int) -> list[str]:
    return [str(link.resolve()) for link in _links(Path(f"/proc/{pid}/fd"))]


def _links(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return  # it has ended in between
