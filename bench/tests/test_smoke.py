"""The whole script, at small numbers, as ``make bench`` calls it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") and Path("/usr/bin/xargs").exists()),
    reason="needs a C compiler and GNU xargs",
)


def run_quickly(results: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark at small numbers against what needs no installation."""
    return subprocess.run(
        [sys.executable, BENCH / "run.py", "--quick", "--results", results, *options],
        capture_output=True, text=True, timeout=120, check=False,
    )


def test_every_sample_is_kept(tmp_path: Path) -> None:
    done = run_quickly(tmp_path, "--workload", "W2", "--only", "cloop,xargs")
    assert done.returncode == 0, done.stderr
    (kept,) = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    (section,) = kept["sections"].values()
    (played,) = section["rounds"]
    assert sorted(played["samples"]) == ["cloop", "xargs"]
    assert played["samples"]["cloop"]["complaint"] == ""


def test_a_quick_run_judges_nothing(tmp_path: Path) -> None:
    done = run_quickly(tmp_path, "--workload", "W2", "--only", "cloop,xargs")
    claims = [line.split() for line in done.stdout.splitlines() if " speed / " in line]
    verdicts = [claim[-2:] for claim in claims if claim[0] == "W2"]
    assert verdicts == [["not", "judged"]] * 2, done.stdout + done.stderr


def test_an_unknown_tool_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    done = run_quickly(tmp_path, "--only", "cloop,nosuch")
    assert done.returncode != 0
    assert "not known: nosuch; known: ours" in done.stderr
