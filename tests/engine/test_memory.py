"""A task that the kernel ends for want of memory, in a real memory cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from overnight.engine.oom import OomCounter
from overnight.model.outcome import Exited, Signalled
from tests.engine.kit import started

LIMIT = 120 * 1024 * 1024
ROOT = Path("/sys/fs/cgroup")


@contextmanager
def memory_cgroup(name: str) -> Iterator[Path]:
    """A cgroup whose processes have little memory; skips where none can be made."""
    places = [
        (ROOT / "memory" / name, "memory.limit_in_bytes"), (ROOT / name, "memory.max"),
    ]
    for group, limit in places:
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(LIMIT))
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no memory cgroup can be made here")


@pytest.mark.needs("root")
def test_a_kill_by_the_kernel_is_a_cause_of_its_own_and_the_engine_lives(tmp_path: Path) -> None:
    with memory_cgroup(f"overnight_test_{os.getpid()}") as group:
        enter = ["/bin/bash", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "enter"]
        with started(tmp_path, slots=2, through=enter) as engine:
            engine.driver.open()
            killed, by_hand, child, after = engine.driver.run(
                "exec tail /dev/zero", "sleep 0.5; kill -9 $$", "tail /dev/zero; exit $?", "exit 3"
            )
            engine.driver.close()
    assert isinstance(killed.outcome, Signalled)
    assert killed.outcome.by_oom_killer
    assert killed.outcome.words() == "killed by the kernel: out of memory"
    assert isinstance(by_hand.outcome, Signalled)
    assert isinstance(child.outcome, Exited)
    assert child.outcome.code == 137
    assert isinstance(after.outcome, Exited)


def test_nothing_has_grown_where_nobody_was_killed() -> None:
    counter = OomCounter()
    assert not counter.has_grown()
    counter.refresh(1e9)
    assert not counter.has_grown()
