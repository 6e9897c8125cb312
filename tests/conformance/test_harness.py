"""The harness itself: it passes what is as recorded, and names everything that is not.

Small shell scripts stand for the command under test.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.harness import play, read_case, stable_name
from tests.conformance.harness_checks import Evidence, holds, most_at_once
from tests.conformance.harness_processes import MARK, marked
from tests.conformance.harness_rows import field_fits, group_rows, parse_row, rows_difference
from tests.conformance.harness_story import Story, read_stories
from tests.conformance.waiting import BUG_AREAS, CASES, MENDS

HERE = Path(__file__).parent
SHA_OF_A = hashlib.sha256(b"a").hexdigest()


def row(task_id: int = 0, flags: str = "    ", command: str = "true", **fields: str) -> list[str]:
    """A row of a task; with ``at`` it ran from that second on, for one second."""
    at = float(fields.get("at", 10))
    return [
        flags, str(task_id), str(task_id + 1), "-1", "node", "41", fields.get("code", "0"),
        "1.000", f"{at:.3f}", f"{at + 1:.3f}", "0", "''", "0", "''", command,
    ]


def recorded(task_id: int = 0, flags: str = "    ", command: str = "true") -> list[str]:
    return [*row(task_id, flags)[:4], "<node>", "<pid>", "0", *["<sec>"] * 3, "0", "''", "0", "''",
            command]


def text_of(rows: list[list[str]]) -> str:
    return "".join("\t".join(fields) + "\n" for fields in rows)


@pytest.mark.parametrize(
    ("expected", "found", "fits"),
    [
        ("<node>", "n1", True),
        ("<node>", "", False),
        ("<pid>", "123", True),
        ("<pid>", "-1", False),
        ("<sec>", "0.100", True),
        ("<sec>", "0.1", False),
        ("<any>", "", True),
        (f"<sha256 {SHA_OF_A} len 1>", "a", True),
        (f"<sha256 {SHA_OF_A} len 1>", "b", False),
        ("R   ", "R  ", False),
    ],
)
def test_a_field_is_the_same_or_of_the_kind_its_placeholder_names(
    expected: str, found: str, fits: bool
) -> None:
    assert field_fits(expected, found) is fits


def test_rows_between_barriers_may_come_in_any_order_and_no_others() -> None:
    barrier = row(2, "B    ", "#DISBATCH BARRIER")
    expected = [
        [recorded(0), recorded(1)],
        [recorded(2, "B    ", "#DISBATCH BARRIER")],
        [recorded(3)],
    ]
    assert rows_difference(expected, [row(1), row(0), barrier, row(3)], "barrier") is None
    assert rows_difference(expected, [row(3), row(0), barrier, row(1)], "barrier")
    assert rows_difference(expected, [row(1), barrier, row(0), row(3)], "barrier")


@pytest.mark.parametrize(
    ("order", "sizes"), [("exact", [1] * 4), ("barrier", [1, 2, 1]), ("any", [4])]
)
def test_what_stands_alone_is_settled_by_the_order(order: Any, sizes: list[int]) -> None:
    rows = [row(0, "   P"), row(0), row(1), row(0, "   P")]
    assert [len(group) for group in group_rows(rows, order)] == sizes


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        ("t_disBatch_251130104200_123_status.txt", "t_disBatch_<stamp>_status.txt"),
        ("run_812_context_launch.log", "run_<pid>_context_launch.log"),
        ("run_SSH0_n_engine_3.log", "run_SSH0_n_engine_<rank>.log"),
        ("run_status.txt", "run_status.txt"),
    ],
)
def test_names_lose_what_differs_from_run_to_run(name: str, stable: str) -> None:
    assert stable_name(name) == stable


def write_case(folder: Path, script: str, expect: dict[str, Any], **step: Any) -> Path:
    files = folder / "case" / "files"
    files.mkdir(parents=True)
    (files / "input").write_text("given\n")
    whole = {"sh": script, "timeout": 30, "order": "barrier", "expect": expect, **step}
    path = folder / "case" / "case.json"
    path.write_text(json.dumps({"id": "x", "title": "x", "steps": [whole]}))
    return path


def played(folder: Path, script: str, expect: dict[str, Any], **step: Any) -> list[str]:
    path = write_case(folder, script, expect, **step)
    stage = folder / "stage"
    stage.mkdir()
    return play(read_case(path), "true", stage)


def test_a_step_that_comes_out_as_recorded_has_no_differences(tmp_path: Path) -> None:
    status = text_of([row(0), row(1)])
    script = (
        f"cat > run_status.txt <<'END'\n{status}END\n"
        'cat input - > o.0; printf "b\\na\\n" > o.1; pwd; echo oops >&2; exit 4'
    )
    expect = {
        "exit": 4,
        "status": {"run_status.txt": [[recorded(1), recorded(0)]]},
        "outputs": {"o.0": "given\n", "o.1": "a\nb\n"},
        "files": {"run_status.txt": "0644"},
        "absent": ["o.2"],
        "check_terminal": True,
        "stdout": "<dir>\n",
        "stderr": "oops\n",
        "max_seconds": 20,
    }
    assert played(tmp_path, script, expect, capture=["o.0", "sort:o.1"]) == []


@pytest.mark.parametrize(
    ("script", "expect", "named"),
    [
        ("exit 3", {"exit": 0}, "exit status 3"),
        ("exit 0", {"exit": "nonzero"}, "exit status 0"),
        ("true", {"status": {"run_status.txt": []}}, "no file run_status.txt"),
        ("echo x > o", {"outputs": {"o": "y\n"}}, "o holds 'x\\n'"),
        ("true", {"outputs": {"o": "y\n"}}, "o holds None"),
        ("touch f; chmod 600 f", {"files": {"f": "0644"}}, "mode 0600"),
        ("touch f", {"absent": ["f"]}, "f exists"),
        ("echo Traceback >&2", {"stderr_lacks": "Traceback"}, "stderr has"),
        ("true", {"stderr_has": "no hosts"}, "lacks 'no hosts'"),
        ("echo x", {"check_terminal": True, "stdout": "", "stderr": ""}, "stdout 'x\\n'"),
        ("sleep 0.3", {"max_seconds": 0.1}, "took"),
    ],
)
def test_a_difference_is_named(
    tmp_path: Path, script: str, expect: dict[str, Any], named: str
) -> None:
    differences = played(tmp_path, script, expect)
    assert len(differences) == 1
    assert named in differences[0]


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    differences = played(tmp_path, "setsid sleep 600 & sleep 600", {}, timeout=0.5)
    assert differences == ["step 0: does not end"]
    assert marked(tmp_path / "stage" / "mark") == []


def test_files_are_looked_at_when_the_last_process_is_gone_or_the_time_is_over(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    expect = {"outputs": {"late": "x\n"}}
    assert played(tmp_path, "(sleep 0.5; echo x > late) & exit", expect, settle=60) == []
    assert time.monotonic() - began < 30


def test_variables_that_would_steer_the_run_do_not_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("DISBATCH_SSH_NODELIST", "far:3")
    script = 'echo "$SLURM_JOB_ID/$DISBATCH_SSH_NODELIST/$KVSSTCP_HOST/$LC_ALL" > o'
    expect = {"outputs": {"o": "//given/C.UTF-8\n"}}
    assert played(tmp_path, script, expect, env={"KVSSTCP_HOST": "given"}) == []


def test_signals_that_the_caller_ignored_are_at_their_defaults(tmp_path: Path) -> None:
    script = "sh -c 'kill -INT $$; echo survived > o'; true"
    assert played(tmp_path, script, {"exit": 0, "absent": ["o"]}) == []


# ------------------------------------------------------------------ stories


def story(folder: Path, script: str, **case: Any) -> Story:
    """A story whose command is a shell script, here ``tool``."""
    tool = folder / "tool"
    tool.write_text(f"#!/bin/bash\n{script}\n")
    tool.chmod(0o755)
    stage = folder / "stage"
    stage.mkdir()
    whole = {"argv": [], "timeout_s": 20, "expect": [], **case}
    return Story(whole, str(tool), stage)


def test_a_story_without_steps_starts_and_waits_for_the_end(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        'cat - input > out; echo "$1 $ODD" >> out; exit 3',
        argv=["word"],
        stdin={"text": "piped\n"},
        files={"input": {"generate": [{"text": "ab", "times": 2}, {"text": "\n"}]}},
        env={"ODD": "a\nb"},
        expect=[
            {"exit": 3},
            {"exit": "nonzero"},
            {"within_s": 15},
            {"content": {"path": "out", "equals": "piped\nabab\nword a\nb\n"}},
        ],
    )
    assert told.play() == []


def test_a_story_tells_each_check_that_does_not_hold(tmp_path: Path) -> None:
    told = story(tmp_path, "exit 3", expect=[{"exit": 0}, {"exists": ["x"]}, {"exit": 3}])
    failures = told.play()
    assert [failure.split(" does not hold")[0] for failure in failures] == [
        "{'exit': 0}",
        "{'exists': ['x']}",
    ]


def test_a_story_waits_for_files_and_sends_signals(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        "trap 'touch told; exit 7' TERM; echo yes > ready; sleep 600 & wait",
        steps=[
            {"start": {}},
            {"wait_file": {"path": "ready", "contains": "yes", "timeout_s": 10}},
            {"signal": {"target": "runner", "sig": "TERM"}},
            {"wait_exit": {"timeout_s": 10, "exit": 7}},
        ],
        expect=[{"exit": 7}, {"exists": ["told"]}],
    )
    assert told.play() == []


def test_a_story_that_waits_in_vain_fails_when_its_time_is_over(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        "true",
        timeout_s=0.5,
        steps=[{"start": {}}, {"wait_rows": {"n": 1, "timeout_s": 60}}, {"wait_exit": {}}],
    )
    assert [failure.split(":")[0] for failure in told.play()] == ["waited in vain"]


def test_a_program_that_is_still_there_at_the_end_fails_and_is_ended(tmp_path: Path) -> None:
    told = story(tmp_path, "setsid sleep 611 & sleep 611", timeout_s=0.5)
    assert len(told.play()) == 1
    assert marked(tmp_path / "stage" / "mark") == []


def test_a_process_left_behind_is_found_by_its_words(tmp_path: Path) -> None:
    check = {"no_process": {"marker": "sleep 612", "grace_s": 0.2}}
    leave = "setsid sleep 612 < /dev/null > /dev/null 2>&1 &"
    until_it_sleeps = "until grep -qz '^612$' /proc/$!/cmdline; do :; done"
    told = story(tmp_path, f"{leave}\n{until_it_sleeps}", expect=[check])
    assert len(told.play()) == 1


def test_processes_of_another_case_are_not_ours(tmp_path: Path) -> None:
    told = story(tmp_path, "true", expect=[{"no_process": {"marker": "sleep 613"}}])
    with subprocess.Popen(["sleep", "613"], env={MARK: str(tmp_path / "other")}) as neighbour:
        try:
            assert told.play() == []
        finally:
            neighbour.kill()


def test_a_wish_that_is_not_met_is_kept_and_no_failure(tmp_path: Path) -> None:
    told = story(tmp_path, "true", expect=[{"wish": [{"exists": ["x"]}]}])
    assert told.play() == []
    assert told.evidence.unmet_wishes == ["{'exists': ['x']}"]


def evidence_of(folder: Path, rows: list[list[str]]) -> Evidence:
    (folder / "run_status.txt").write_text(text_of(rows))
    return Evidence(folder, folder, frozenset())


ROWS = [
    row(0, "   P", "start", code="3"),
    row(0, "R   ", "exit 3", code="3", at="10"),
    row(1, "    ", "true", at="10.5"),
    row(2, "B    ", "#DISBATCH BARRIER", at="11.5"),
    row(3, "   S", "old", at="10.2"),
]


@pytest.mark.parametrize(
    ("check", "is_met"),
    [
        ({"rows": 3}, True),
        ({"rows": 4}, False),
        ({"rows_min": 3}, True),
        ({"rows_min": 4}, False),
        ({"task": {"id": 0, "rc": 3, "flags": "R   ", "cmd": "exit 3", "line": 1}}, True),
        ({"task": {"id": 0, "rc": 0}}, False),
        ({"task": {"id": 0, "rc_in": [2, 3], "flags_has": "R", "flags_lacks": "OE"}}, True),
        ({"task": {"id": 9, "rc": 0}}, False),
        ({"perengine_row": {"rc": 3, "flags_has": "P"}}, True),
        ({"perengine_row": {"rc": 0, "flags_has": "P"}}, False),
        ({"columns": 15}, True),
        ({"columns": 14}, False),
        ({"max_overlap": 2}, True),
        ({"max_overlap": 1}, False),
        ({"overlap_at_least": 2}, True),
        ({"overlap_at_least": 3}, False),
        ({"max_overlap_by_host": {"node": 2}}, True),
        ({"max_overlap_by_host": {"elsewhere": 2}}, False),
        ({"status_header": True}, False),
        ({"any_of": [[{"rows": 9}], [{"rows": 3}, {"columns": 15}]]}, True),
        ({"any_of": [[{"rows": 9}], [{"rows": 3}, {"columns": 14}]]}, False),
        ({"glob_count": {"pattern": "*_status.txt", "n": 1}}, True),
        ({"size": {"path": "run_status.txt", "bytes": 1}}, False),
        ({"reported": ["nowhere", "BARRIER"]}, True),
        ({"reported_all": ["nowhere", "BARRIER"]}, False),
        ({"not_reported": ["nowhere"]}, True),
        ({"content": {"path": "run_status.txt", "count_lines": 5, "contains": "old"}}, True),
        ({"content": {"path": "run_status.txt", "count_lines": 5, "contains": "new"}}, False),
        ({"content": {"path": "absent", "count_lines": 0}}, False),
    ],
)
def test_a_check_holds_when_the_status_file_says_so(
    tmp_path: Path, check: dict[str, Any], is_met: bool
) -> None:
    assert holds(evidence_of(tmp_path, ROWS), check) is is_met


def test_a_task_that_starts_when_another_ends_does_not_overlap_it() -> None:
    rows = [parse_row(row(0, at="1")), parse_row(row(1, at="2"))]
    assert most_at_once(rows) == 1


def test_every_case_that_waits_exists() -> None:
    for waiting, folder in ((CASES, "cases"), (MENDS, "mends")):
        for name in waiting:
            assert (HERE / folder / name).exists(), name


def test_every_area_that_waits_has_cases() -> None:
    assert set(BUG_AREAS) <= {told["area"] for told in read_stories()}
