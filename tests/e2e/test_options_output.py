"""Options about output: each test fails where its option has no effect."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.kit import Stage, run
from tests.e2e.options_kit import BOUND_S, empties, ends, new_files, tasks_of

SLOW_FIRST = (
    # The second task's row stands in the file before the first one ends.
    "echo slow begins; until grep -q quick P_status.txt; do sleep 0.02; done; echo slow ends",
    "echo quick",
)


def _kept(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*") if path.is_file()
    }


# -- in files ----------------------------------------------------------------------------


def test_output_is_kept_in_files_and_an_empty_stream_has_none(stage: Stage) -> None:
    stage.write("Tasks", "echo a; echo b >&2", "true", "printf 'no line end'")
    ends(stage, run("--output", "out", "-p", "P", "Tasks"))
    assert _kept(stage.path("out")) == {
        "0/0.out": "a\n", "0/0.err": "b\n", "0/2.out": "no line end",
    }


def test_kept_output_stands_in_the_row_as_well(stage: Stage) -> None:
    stage.write("Tasks", "echo a; echo b >&2")
    ends(stage, run("--output", "out", "-p", "P", "Tasks"))
    (row,) = stage.rows("P")
    assert (row.flags, row.out_count, row.out, row.err) == (" OE ", 2, r"'a\n'", r"'b\n'")


def test_the_files_of_a_thousand_tasks_share_a_folder(stage: Stage) -> None:
    stage.write("Tasks", *["#DISBATCH BARRIER"] * 1000, "echo a")
    ends(stage, run("-q", "--output", "out", "-p", "P", "Tasks"))
    assert _kept(stage.path("out")) == {"1/1000.out": "a\n"}


def test_without_output_nothing_is_kept(stage: Stage) -> None:
    stage.write("Tasks", "echo a")
    ends(stage, run("-p", "P", "Tasks"))
    assert all(name.startswith("P_") for name in new_files(stage, "Tasks"))
    assert not any(path.is_dir() for path in stage.folder.iterdir())


# -- on the screen -----------------------------------------------------------------------


def test_output_is_printed_whole_in_order_of_completion(stage: Stage) -> None:
    stage.write("Tasks", *SLOW_FIRST)
    ended = ends(stage, run("-q", "-j", "2", "--print", "-p", "P", "Tasks"))
    assert (ended.out, ended.err) == ("quick\nslow begins\nslow ends\n", "")
    assert not stage.path("P_print").exists()


def test_output_is_printed_in_the_order_of_the_list_if_that_is_wanted(stage: Stage) -> None:
    stage.write("Tasks", *SLOW_FIRST)
    ended = ends(stage, run("-q", "-j", "2", "--print", "--keep-order", "-p", "P", "Tasks"))
    assert ended.out == "slow begins\nslow ends\nquick\n"


def test_each_line_is_tagged_with_its_task(stage: Stage) -> None:
    stage.write("Tasks", "true", "printf 'a\\nb'", "echo c >&2")
    ended = ends(stage, run("-q", "-j", "1", "--print", "--tag", "-p", "P", "Tasks"))
    assert (ended.out, ended.err) == ("1\ta\n1\tb\n", "2\tc\n")


def test_without_print_the_screen_shows_no_output_of_tasks(stage: Stage) -> None:
    stage.write("Tasks", "echo a; echo b >&2")
    ended = ends(stage, run("-q", "-p", "P", "Tasks"))
    assert (ended.out, ended.err) == ("", "")


def test_a_reader_that_leaves_does_not_end_the_run(stage: Stage) -> None:
    stage.write("Tasks", "seq 1 100000", "echo more", "true")
    pipe = f"{' '.join(run('-q', '-j', '1', '--print', '-p', 'P', 'Tasks'))} | head -n 1"
    ended = stage.run(["bash", "-c", f"set -o pipefail; {pipe}"], limit_s=BOUND_S)
    assert (ended.status, ended.out, ended.err) == (0, "1\n", "")
    assert len(stage.codes("P")) == 3


# -- pairs -------------------------------------------------------------------------------


def test_every_attempt_keeps_its_output(stage: Stage) -> None:
    stage.write("Tasks", "echo $OVERNIGHT_ATTEMPT; test $OVERNIGHT_ATTEMPT = 2")
    ends(stage, run("--retries", "1", "--output", "out", "-p", "P", "Tasks"))
    assert _kept(stage.path("out")) == {"0/0.out": "1\n", "0/0.2.out": "2\n"}


def test_only_the_attempt_that_counts_is_printed(stage: Stage) -> None:
    stage.write("Tasks", "echo $OVERNIGHT_ATTEMPT; test $OVERNIGHT_ATTEMPT = 2")
    ended = ends(stage, run("-q", "--retries", "1", "--print", "-p", "P", "Tasks"))
    assert ended.out == "2\n"
    assert not stage.path("P_print").exists(), "output that is not printed is no use to anybody"


def test_what_is_printed_and_kept_stays(stage: Stage) -> None:
    stage.write("Tasks", "echo a")
    ended = ends(stage, run("-q", "--print", "--output", "out", "-p", "P", "Tasks"))
    assert ended.out == "a\n"
    assert _kept(stage.path("out")) == {"0/0.out": "a\n"}


def test_the_order_of_the_list_goes_on_behind_barriers_and_skipped_tasks(stage: Stage) -> None:
    done = ["echo 0", "#DISBATCH BARRIER", "echo 2"]
    stage.write("Tasks", *done)
    ends(stage, run("-q", "-p", "Old", "Tasks"))
    stage.write("Tasks", *done, "until grep -q quick P_status.txt; do sleep 0.02; done; echo 3",
                "echo quick", "#DISBATCH BARRIER", "echo 6")
    ordered = ["--print", "--keep-order", "-r", "Old_status.txt"]
    ended = ends(stage, run("-q", "-j", "2", *ordered, "-p", "P", "Tasks"))
    assert ended.out == "3\nquick\n6\n"


def test_the_order_of_the_list_waits_for_no_task_that_was_never_run(stage: Stage) -> None:
    stage.write("Tasks", "false", "echo 1", "#DISBATCH BARRIER CHECK", "echo 3")
    ordered = ["--print", "--keep-order"]
    ended = ends(stage, run("-q", "-j", "1", *ordered, "-p", "P", "Tasks"), status=1)
    assert ended.out == "1\n"


def test_the_order_of_the_list_holds_for_a_run_that_goes_on_in_its_own_file(stage: Stage) -> None:
    stage.write("Tasks", "echo 0", "echo 1", "echo 2")
    empties(stage, run("-q", "-j", "1", "-C", "1", "-p", "P", "Tasks"))
    ordered = ["--print", "--keep-order", "-r", "P_status.txt"]
    ended = ends(stage, run("-q", "-j", "1", *ordered, "-p", "P", "Tasks"))
    assert ended.out == "1\n2\n"
    assert [row.id for row in tasks_of(stage, "P")] == [0, 1, 2]


def test_the_order_of_the_list_holds_for_a_shuffled_run(stage: Stage) -> None:
    stage.write("Tasks", *[f"echo {id}" for id in range(6)])
    shuffled = ["--shuffle=5", "--print", "--keep-order"]
    ended = ends(stage, run("-q", "-j", "1", *shuffled, "-p", "P", "Tasks"))
    assert ended.out == "".join(f"{id}\n" for id in range(6))
    assert [row.id for row in tasks_of(stage, "P")] != list(range(6))
