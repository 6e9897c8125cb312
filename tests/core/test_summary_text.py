"""The summary as it stands on the screen in the morning."""

from __future__ import annotations

import pytest

from overnight.core.summary import Summary, ends_with_counts, headline, summary_facts, summary_text
from overnight.core.summary.text import CAUSES_TOLD
from overnight.model.outcome import Cancelled, Exited, Signalled, TimedOut
from tests.watch.kit import report, task


def clock(at: float) -> str:
    minutes = int(at - 1_700_000_000) // 60 + 23 * 60
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def a_night() -> Summary:
    summary = Summary()
    for id in range(1, 995):
        summary.add(task(id, b"./align s%d" % id), report(id, after_s=id * 8, elapsed_s=60), "n1")
    long = report(995, after_s=100, elapsed_s=3700, rss_kib=13_000_000, cpu_s=3600)
    summary.add(task(995, b"./align big"), long, "n2")
    for id in (996, 997, 998, 999):
        bad = report(id, Exited(1), elapsed_s=2, err=b"ValueError: bad value in row %d\n" % id)
        summary.add(task(id, b"./align s%d" % id), bad, "n1")
    killed = report(1000, Signalled(-9, by_oom_killer=True), elapsed_s=30, rss_kib=64_000_000)
    summary.add(task(1000, b"./align huge", repeat=4), killed, "n2")
    summary.add(task(1001, b"sleep 99999"), report(1001, TimedOut(-15, 50), elapsed_s=50), "n1")
    cut = report(1002, Cancelled(-15, "interrupt"), elapsed_s=1)
    summary.add(task(1002, b"sleep 99998"), cut, "n1")
    for _ in range(250):
        summary.skip()
    return summary


A_NIGHT = """\
1,252 tasks: 995 done, 6 failed, 1 cut off, 250 done before
  took       2 h 14 min
  from       23:00 to 01:13
  task time  17 h 37 min, on average 7.9 at once
  CPU time   1 h

The slowest
  1 h 2 min  task 995, line 996  ./align big
      1 min  task 1, line 2      ./align s1
      1 min  task 2, line 3      ./align s2
      1 min  task 3, line 4      ./align s3
      1 min  task 4, line 5      ./align s4

The most memory
  61.0 GiB  task 1000, line 1001, index 4  ./align huge
  12.4 GiB  task 995, line 996             ./align big

Failed or cut off, by cause
  4 x exit code 1, all on n1
      ValueError: bad value in row 996
    task 996, line 997: ./align s996
    task 997, line 998: ./align s997
    task 998, line 999: ./align s998
    and 1 more
  1 x killed by the kernel: out of memory, on n2
    task 1000, line 1001, index 4: ./align huge
  1 x over its time limit of 50 s, on n1
    task 1001, line 1002: sleep 99999
  1 x cut off: interrupt, on n1
    task 1002, line 1003: sleep 99998

Run the failed ones again
  overnight resume -R Tasks_7f
"""


def test_a_night_is_told_whole() -> None:
    assert summary_text(a_night(), "overnight resume -R Tasks_7f", clock) == A_NIGHT


def test_a_run_without_failures_is_told_in_few_lines_and_offers_no_rerun() -> None:
    summary = Summary()
    summary.add(task(0, b"make all"), report(0, elapsed_s=0.25), "n1")
    assert summary_text(summary, "overnight resume -R x") == (
        "1 task: 1 done\n"
        "  took       250 ms\n"
        "  task time  250 ms, on average 1.0 at once\n"
        "\n"
        "The slowest\n"
        "  250 ms  task 0, line 1  make all\n"
    )


def test_a_run_of_nothing_is_told_in_one_line() -> None:
    assert summary_text(Summary()) == "0 tasks: 0 done\n"


def test_what_was_not_run_is_said() -> None:
    summary = Summary()
    summary.without_row = 40
    assert summary_text(summary) == "40 tasks: 0 done, 40 left\n"


def test_what_was_cut_off_is_left_where_the_length_of_the_list_is_known() -> None:
    summary = a_night()
    assert summary.left is None
    summary.without_row = 40
    assert headline(summary) == (
        "1,292 tasks: 995 done, 6 failed, 250 done before, 41 left (1 of them cut off)"
    )
    assert summary_facts(summary)["left"] == 41


@pytest.mark.parametrize(("lines", "is_said"), [(15, False), (16, True)])
def test_the_counts_of_a_long_text_stand_at_its_end_too(lines: int, is_said: bool) -> None:
    summary = Summary()
    summary.without_row = 3
    text = "\n".join([headline(summary), *["more"] * (lines - 1)])
    said = ends_with_counts(text + "\n", summary)
    assert said == (f"{text}\n\n3 tasks: 0 done, 3 left" if is_said else text)


def test_the_rerun_command_is_never_cut() -> None:
    summary = Summary()
    summary.add(task(), report(outcome=Exited(1)), "n1")
    command = "overnight resume -R " + "/deep" * 40
    assert summary_text(summary, command).endswith(f"  {command}\n")


def test_many_causes_are_told_in_short() -> None:
    summary = Summary()
    for code in range(1, 31):
        summary.add(task(code), report(code, Exited(code)), "n1")
    text = summary_text(summary, report="overnight report P_status.txt")
    assert text.count(" x exit code ") == CAUSES_TOLD
    assert f"  18 x of {30 - CAUSES_TOLD} rarer causes, told by\n" in text
    assert text.endswith("\n    overnight report P_status.txt\n")


def test_a_report_tells_all_of_them() -> None:
    summary = Summary()
    for code in range(1, 31):
        summary.add(task(code), report(code, Exited(code)), "n1")
    text = summary_text(summary)
    assert text.count(" x exit code ") == 30
    assert "rarer" not in text


def test_colour_is_used_only_when_asked_for() -> None:
    plain, coloured = summary_text(a_night()), summary_text(a_night(), colour=True)
    assert "\x1b" not in plain
    headline = plain.partition("\n")[0]
    assert coloured.startswith(f"\x1b[1;31m{headline}\x1b[0m\n")
