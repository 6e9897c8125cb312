"""What a user wants where disBatch is at fault, against the command under test.

A mend without ``expect`` in its steps is judged by reading; playing it proves that it ends. One
that may wait for ever by what is wanted is played with what is wanted to happen meanwhile.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.harness import Case, default_command, play, read_cases
from tests.conformance.kit import command_for, must_be_empty, parameters
from tests.conformance.waiting import MENDS

MEANWHILE = {
    "mend-limit": "until grep -q 'no slots are there' said; do sleep 0.1; done;"
                  " ./run_dbUtil.sh -s localhost:1 || exit 90",
}
"""A script for mends that may wait: what is said on the terminal is in the file ``said``."""


def _with_what_happens_meanwhile(case: Case) -> Case:
    if case.id not in MEANWHILE:
        return case
    (step,) = case.steps
    script = (
        f"$DISBATCH {shlex.join(step.args)} 2> said & p=$!; {MEANWHILE[case.id]}; wait $p || exit;"
        " [ $(wc -l < run_status.txt) -eq $(wc -l < tasks) ]"
    )
    return replace(case, steps=(replace(step, script=script, args=(), expect={"exit": 0}),))


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(read_cases("mends"), MENDS))
def test_is_mended(case: Case, tmp_path: Path, plays_original: bool) -> None:
    command = command_for(case, default_command(), plays_original)
    played = _with_what_happens_meanwhile(case)
    must_be_empty(play(played, command, tmp_path), case.want)
