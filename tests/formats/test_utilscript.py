"""What the utility script promises until it can do more: it says what it cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from overnight.formats.utilscript import script_text

NASTY = ["run", "my run", "it's", 'a"b', "$HOME", "`id`", "new\nline", "-n", "caf\u00e9", "a;b&c"]


def call(tmp_path: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "dbUtil.sh"
    script.write_text(script_text(f"{tmp_path}/{name}"))
    return subprocess.run(["bash", script], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("name", NASTY)
def test_it_knows_its_run_whatever_the_prefix_is_called(tmp_path, name):
    (tmp_path / f"{name}_lock").touch()
    done = call(tmp_path, name)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.endswith(f"are not there yet: {tmp_path}/{name}\n")


@pytest.mark.parametrize("name", NASTY)
def test_it_says_when_its_run_has_ended(tmp_path, name):
    done = call(tmp_path, name)
    assert done.returncode == 1
    assert done.stderr == f"The run has ended: {tmp_path}/{name}\n"
