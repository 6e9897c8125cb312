"""CPU that was used must be counted, whoever used it.

Each measurement runs in a Python of its own: adopting orphans would make the test
runner the parent of processes that it knows nothing of.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent

SCRIPT = """
import dataclasses, json, pathlib, sys
from harness import process
process.adopt_orphans()
here = pathlib.Path.cwd()
command = process.Command(("/bin/bash", "-c", sys.argv[1]))
print(json.dumps(dataclasses.asdict(process.measure(command, here, here, float(sys.argv[2])))))
"""
BUSY = "for ((i = 0; i < 100000; i++)); do :; done"


def measured(folder: Path, line: str, limit_s: float = 60) -> dict[str, Any]:
    """What measuring this line of bash says."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, line, str(limit_s)], cwd=folder, check=True, timeout=90,
        capture_output=True, text=True, env={"PYTHONPATH": str(BENCH)},
    )
    usage: dict[str, Any] = json.loads(done.stdout)
    return usage


def test_a_process_that_outlives_its_command_is_counted(tmp_path: Path) -> None:
    waited_for = measured(tmp_path, BUSY)
    left_behind = measured(tmp_path, f"setsid bash -c '{BUSY}' & exit 0")
    assert waited_for["stray_count"] == 0
    assert left_behind["stray_count"] == 1
    assert left_behind["user_s"] > 0.3 * waited_for["user_s"]


def test_what_runs_past_its_limit_is_ended_and_told(tmp_path: Path) -> None:
    usage = measured(tmp_path, "setsid sleep 987 & sleep 987", limit_s=0.2)
    assert usage["was_cut_off"]
    assert usage["status"] == -9
    assert usage["wall_s"] < 60


def test_the_exit_status_is_the_commands_own(tmp_path: Path) -> None:
    assert measured(tmp_path, "exit 3")["status"] == 3
