"""``overnight report`` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from overnight.model.outcome import Exited
from tests.e2e.kit import overnight, run
from tests.e2e.options_kit import empties
from tests.watch.kit import Records

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.kit import Stage

FROM_DISBATCH = (
    "ROE[ PSZ]\tTaskID\tLineNum\tRepeatIndex\tNode\tPID\tReturnCode\tElapsed\tStart\tFinish\t"
    "BytesOfLeakedOutput\tOutputSnippet\tBytesOfLeakedError\tErrorSnippet\tCommand\n"
    "   P\t0\t1\t-1\tnode7\t410\t0\t0.004\t1700000000.001\t1700000000.005\t0\t''\t0\t''\tmkdir /x\n"
    "    \t0\t2\t-1\tnode7\t411\t0\t60.500\t1700000001.000\t1700000061.500\t0\t''\t0\t''\t./fit 0\n"
    "R E \t1\t3\t-1\tnode7\t412\t1\t2.000\t1700000001.000\t1700000003.000\t0\t''\t45\t"
    "'Traceback: it is long, and then KeyError...: 17\\n'\t./fit\t1\n"
    "B    \t2\t4\t-1\tnode7\t400\t0\t60.499\t1700000001.001\t1700000061.500\t0\t''\t0\t''\t"
    "#DISBATCH BARRIER\n"
    "R   \t3\t5\t7\tnode8\t-1\t-100\t0.000\t1700000090.000\t1700000090.000\t0\t''\t0\t''\t./fit 2\n"
)
"""A status file as disBatch 3.0 writes it, with header."""


def overnight_report(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overnight", "report", *arguments], cwd=folder,
        env={**os.environ, "TZ": "UTC"}, capture_output=True, text=True, timeout=60, check=False,
    )


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    (tmp_path / "Fits_disBatch_231114221320_007_status.txt").write_text(FROM_DISBATCH)
    return tmp_path


OLD = "Fits_disBatch_231114221320_007_status.txt"


def test_a_status_file_of_disbatch_is_summarised(old_run: Path) -> None:
    told = overnight_report(old_run, OLD)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == """\
3 tasks: 1 done, 2 failed
  took       1 min 29 s
  from       2023-11-14 22:13:21 to 2023-11-14 22:14:50
  task time  1 min 2 s, on average 0.7 at once

The slowest
  1 min  task 0, line 2  ./fit 0
  2.0 s  task 1, line 3  ./fit\\t1

Failed, by cause
  1 x exit code 1, on node7
      Traceback: it is long, and then KeyError: 17
    task 1, line 3: ./fit\\t1
  1 x lost: its engine was lost, on node8
    task 3, line 5, index 7: ./fit 2

Run the failed ones again
  overnight run -R -r Fits_disBatch_231114221320_007_status.txt Fits

note: Fits_disBatch_231114221320_007_tasks.jsonl is not there: no slots, memory,
      CPU time and retries

3 tasks: 1 done, 2 failed
"""


def test_pictures_and_a_page_are_written_where_asked(old_run: Path) -> None:
    pytest.importorskip("PIL", reason="missing: pillow")
    told = overnight_report(
        old_run, OLD, "--svg", "run.svg", "--png", "run.png", "--html", "run.html"
    )
    assert (told.returncode, told.stderr) == (0, "")
    root = ElementTree.parse(old_run / "run.svg").getroot()
    failed = [
        element.get("data-task") for element in root.iter()
        if "task failed" in element.get("class", "")
    ]
    assert failed == ["1", "3"]
    assert (old_run / "run.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (old_run / "run.html").read_text()


def test_the_summary_as_json_is_one_object(old_run: Path) -> None:
    facts = json.loads(overnight_report(old_run, OLD, "--json").stdout)
    assert (facts["done"], facts["failed"], facts["barriers"]) == (1, 2, 1)
    assert facts["rerun"] == f"overnight run -R -r {OLD} Fits"
    assert [cause["words"] for cause in facts["causes"]] == [
        "Traceback: it is long, and then KeyError: 17", "",
    ]


def test_a_run_of_ours_is_told_with_memory_and_slots(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 10, rss_kib=13_000_000, command=b"./big")
    (path,) = records.task(1, 0, 4, Exited(2), slot=1).paths
    told = overnight_report(tmp_path, path, "--svg", "run.svg")
    assert "12.4 GiB  task 0, line 1  ./big" in told.stdout
    assert f"  overnight resume -R {tmp_path}/Tasks_7f\n" in told.stdout
    assert "note:" not in told.stdout
    svg = ElementTree.parse(tmp_path / "run.svg").getroot()
    slots = [e.get("data-slot") for e in svg.iter() if e.get("class") == "lane"]
    assert slots == ["slot 0", "slot 1"]


def test_several_files_are_one_run(tmp_path: Path) -> None:
    first = Records(tmp_path, "a").task(0, 0, 1).task(1, 0, 1, Exited(1))
    second = Records(tmp_path, "b").skipped(0).task(1, 50, 1)
    told = overnight_report(tmp_path, *first.paths, *second.paths)
    assert told.stdout.splitlines()[0] == "2 tasks: 2 done"


def test_nothing_of_a_task_reaches_the_terminal_raw(tmp_path: Path) -> None:
    records = Records(tmp_path).task(
        0, 0, 1, Exited(1), err=b"\x1b]0;owned\x07\n", command=b"echo \x1b[2J \xe2\x80\xae"
    )
    told = overnight_report(tmp_path, *records.paths)
    assert all(line.isprintable() for line in told.stdout.split("\n"))
    assert "\\x1b]0;owned\\x07" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing_status.txt",), "nothing_status.txt: it cannot be read: No such file"),
        (("nothing",), "nothing: it cannot be read: No such file"),
        (("Tasks",), "Tasks: it holds no row of a status file"),
        ((OLD, "--svg", "no/where.svg"), "no/where.svg: it cannot be written: No such file"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_traceback(
    old_run: Path, arguments: tuple[str, ...], words: str
) -> None:
    (old_run / "Tasks").write_text("sleep 1\n")
    told = overnight_report(old_run, *arguments)
    assert told.returncode == 1
    assert told.stderr.startswith(words)
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("option", ["--svg", "--html", "--png"])
@pytest.mark.parametrize("name", ["other_status.txt", OLD, "Tasks"])
def test_a_picture_never_takes_the_place_of_a_record_or_a_list(
    old_run: Path, option: str, name: str
) -> None:
    (old_run / "Tasks").write_text("sleep 1\n")
    (old_run / "other_status.txt").write_text(FROM_DISBATCH)
    before = {path.name: path.read_bytes() for path in old_run.iterdir()}
    told = overnight_report(old_run, OLD, option, name)
    assert told.returncode == 1
    assert told.stderr.startswith(f"{name}: this file is no ")
    assert "  kept:  it is untouched" in told.stderr
    assert told.stdout == ""
    assert {path.name: path.read_bytes() for path in old_run.iterdir()} == before


def test_pictures_of_an_earlier_report_are_replaced_each_by_its_kind(old_run: Path) -> None:
    pytest.importorskip("PIL", reason="missing: pillow")
    pictures = ("--svg", "run.svg", "--png", "run.png", "--html", "run.html")
    for _ in range(2):
        told = overnight_report(old_run, OLD, *pictures)
        assert (told.returncode, told.stderr) == (0, "")
    for option, name in (("--svg", "run.html"), ("--html", "run.png"), ("--png", "run.svg")):
        assert overnight_report(old_run, OLD, option, name).returncode == 1
    assert overnight_report(old_run, OLD, "--svg", "one", "--html", "one").returncode == 2
    assert not (old_run / "one").exists()


def test_without_a_status_file_it_is_a_usage_error(tmp_path: Path) -> None:
    assert overnight_report(tmp_path).returncode == 2


def test_a_report_into_a_pipe_that_closes_early_is_quiet(old_run: Path) -> None:
    code = f"{sys.executable} -m overnight report {OLD} | head -1"
    told = subprocess.run(
        ["bash", "-c", code], cwd=old_run, capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stderr == ""


# -- what is left, and what is asked for in vain ---------------------------------------------


def test_tasks_without_a_row_are_counted_and_the_command_that_runs_them_named(
    stage: Stage,
) -> None:
    stage.write("Tasks", "true", "#DISBATCH BARRIER", "false", "true", "true")
    empties(stage, run("-q", "-j", "1", "-C", "2", "-p", "P", "Tasks"))
    told = stage.run(overnight("report", "P_status.txt"))
    assert told.out.startswith("4 tasks: 1 done, 1 failed, 2 left\n")
    assert "Tasks are left. Go on with:\n  overnight resume P\n" in told.out
    assert told.out.count("overnight resume -R P\n") == 1


def test_a_run_is_named_by_its_prefix_or_its_folder_too(stage: Stage) -> None:
    stage.write("P", "true", "true")  # a list may have the name of its run's prefix
    stage.run(run("-q", "-p", "P", "P"))
    stage.path("empty").mkdir()
    for name in ("P_status.txt", "P", ".", stage.path("P")):
        told = stage.run(overnight("report", name))
        assert told.status == 0
        assert told.out.startswith("2 tasks: 2 done\n")
    refused = stage.run(overnight("report", "empty"))
    assert refused.status == 1
    assert refused.err.startswith(f"{stage.path('empty')}: no run was started in this folder")


def test_a_run_that_goes_on_is_told_as_such(stage: Stage) -> None:
    stage.write("Tasks", "echo > began; until [ -e go ]; do sleep 0.02; done")
    live = stage.start(run("-p", "P", "Tasks"))
    stage.appears("began")
    told = stage.run(overnight("report", "P_status.txt"))
    assert told.out.endswith("\nnote: the run goes on: this is how far it is\n")
    assert "resume" not in told.out
    facts = json.loads(stage.run(overnight("report", "--json", "--html", "P.html", "P")).out)
    assert (facts["goes_on"], facts["rerun"], facts["left"]) == (True, None, 1)
    assert "the run goes on" in stage.read("P.html")
    stage.write("go")
    live.wait()


def test_without_pillow_nothing_is_written(stage: Stage) -> None:
    stage.write("Tasks", "true")
    stage.run(run("-q", "-p", "P", "Tasks"))
    stage.path("none").mkdir()
    stage.path("none/PIL.py").write_text("raise ImportError('hidden by a test')\n")
    told = stage.run(
        overnight("report", "P_status.txt", "--svg", "run.svg", "--png", "run.png"),
        env={"PYTHONPATH": str(stage.path("none"))},
    )
    assert told.status == 1
    assert "a PNG needs Pillow, which is not installed" in told.err
    assert not stage.path("run.svg").exists()
