"""Plain lines started without bash look the same as with it: both lanes, compared.

The first lines of a list go through bash in any case, so each line is run often
enough for the other lane to be taken.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from overnight.core.plain import USUAL_SHELL_WORDS, candidates, plain_words, search_path
from overnight.engine.lane import PLAIN_LINES_FIRST
from overnight.model.report import Report
from tests.engine.kit import started

PROBE = "#!/usr/bin/env python3\n" + """
import os, resource, signal, sys
for name, value in os.environ.items():
    print(f"{name}={value}")
print("argv", sys.argv, "cwd", os.getcwd(), "umask", os.popen("umask").read().strip())
print("session leader", os.getsid(0) == os.getpid(), "group", os.getpgrp() == os.getpid())
print("mask", signal.pthread_sigmask(signal.SIG_BLOCK, []))
print("ignored", open("/proc/self/status").read().split("SigIgn:")[1].split()[0])
print("limits", [resource.getrlimit(n) for n in range(10)])
print("stdin", repr(sys.stdin.read()), "fds", sorted(os.listdir("/proc/self/fd"))[:3])
print("comm of parent", open(f"/proc/{os.getppid()}/comm").read().strip()[:6])
print("nice", os.nice(0), "oom", open("/proc/self/oom_score_adj").read().strip())
"""


def both_lanes(folder: Path, line: str, **changes: Any) -> tuple[Report, Report]:
    """What the line gives through bash, and without it where it can do without."""
    reports = []
    for always_shell in (True, False):
        with started(folder, slots=1, always_shell=always_shell, **changes) as engine:
            engine.driver.open()
            reports.append(engine.driver.run(*[line] * (PLAIN_LINES_FIRST + 1))[-1])
    return reports[0], reports[1]


def said(report: Report) -> tuple[Any, ...]:
    """What a user can see, but for pids and times."""
    leaks = [(leak.count, leak.head, leak.tail) for leak in (report.out, report.err)]
    return report.outcome.words(), *leaks


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def took_the_lane(folder: Path, **changes: Any) -> bool:
    """Whether such a run starts plain lines without bash.

    A process keeps its count of page faults over exec, and bash needs more of them to
    start than cat does.
    """
    line = "cat /proc/self/stat"
    logs = folder / "logs"
    with started(folder, slots=1, output_dir=str(logs), **changes) as engine:
        engine.driver.open()
        engine.driver.run(*[line] * (PLAIN_LINES_FIRST + 1), f"exec {line}")
    plain, through_bash = (page_faults(logs / "0" / f"{PLAIN_LINES_FIRST + n}.out") for n in (0, 1))
    return plain < 0.6 * through_bash


def page_faults(stat_file: Path) -> int:
    return int(stat_file.read_text().split(")")[1].split()[7])


def test_everything_a_program_can_see_of_itself_is_the_same(tmp_path: Path) -> None:
    executable(tmp_path / "probe", PROBE)
    folder = tmp_path / "logs"
    texts = []
    for always_shell in (True, False):
        logs = folder / str(always_shell)
        with started(
            tmp_path, slots=1, always_shell=always_shell, output_dir=str(logs),
            environment={**os.environ, "WEIRD": "a) b\nc=\"d\"", "EMPTY": "", "Z": "1", "A": "2"},
        ) as engine:
            engine.driver.open()
            engine.driver.run(*["./probe a -b c=d"] * (PLAIN_LINES_FIRST + 2))
        texts.append((logs / "0" / f"{PLAIN_LINES_FIRST + 1}.out").read_text())
        assert not (logs / "0" / f"{PLAIN_LINES_FIRST + 1}.err").exists()
    assert texts[0].splitlines() == texts[1].splitlines()
    assert "argv ['./probe', 'a', '-b', 'c=d']" in texts[1]


def test_the_environment_is_the_same_to_the_byte_in_the_same_order(tmp_path: Path) -> None:
    texts = []
    for always_shell in (True, False):
        logs = tmp_path / str(always_shell)
        with started(
            tmp_path, slots=2, always_shell=always_shell, output_dir=str(logs),
            slot_variables=[[b"GPU=a"], [b"GPU=b"]],
        ) as engine:
            engine.driver.open()
            engine.driver.run(*["env -0"] * 10)
        by_id = {}
        for id in range(PLAIN_LINES_FIRST, 10):
            entries = (logs / "0" / f"{id}.out").read_bytes().split(b"\0")
            by_id[id] = [e for e in entries if not e.startswith((b"GPU=", b"DISBATCH_CYLINDER"))]
            assert (b"GPU=a" in entries) == (b"DISBATCH_CYLINDER_RANK=0" in entries)
        texts.append(by_id)
    assert texts[0] == texts[1]
    assert b"_=/usr/bin/env" in texts[1][9]


@pytest.mark.parametrize(
    "line",
    [
        "nosuchprogram a", "./nosuchfile", "./notexecutable", "./folder", "./noshebang a b",
        "./badinterpreter", "false", "sleep 0", "  ls   folder  ", "\tls\tfolder\t",
        "./killsitself", "./exits7 x", "ls /nosuchfolder", "inpath with args", "folder",
        "notexecutable", "noshebang", "a/b/nosuch", "seq 1 3",
    ],
)
def test_status_output_and_messages_are_the_same(tmp_path: Path, line: str) -> None:
    prepare(tmp_path)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    shell, direct = both_lanes(tmp_path, line, environment={**os.environ, "PATH": path})
    assert said(shell) == said(direct)


def prepare(folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "notexecutable").write_text("#!/bin/sh\necho ran\n")
    executable(folder / "noshebang", "echo script $0 $#\n")
    executable(folder / "badinterpreter", "#!/no/such/interpreter\n")
    executable(folder / "killsitself", "#!/bin/sh\nkill -9 $$\n")
    executable(folder / "exits7", "#!/bin/sh\nexit 7\n")
    commands = folder / "bin"
    commands.mkdir()
    executable(commands / "inpath", '#!/bin/sh\necho "$0" "$@"\n')
    (commands / "notexecutable").write_text("#!/bin/sh\necho ran\n")
    (commands / "folder").mkdir()
    executable(commands / "noshebang", "echo script $0 $#\n")


def test_plain_lines_take_the_lane(tmp_path: Path) -> None:
    assert took_the_lane(tmp_path)


@pytest.mark.parametrize(
    ("changes", "variables"),
    [
        pytest.param({"always_shell": True}, {}, id="always shell"),
        pytest.param({}, {"BASH_ENV": "/dev/null"}, id="BASH_ENV"),
        pytest.param({}, {"BASH_FUNC_f%%": "() { :; }"}, id="a function"),
        pytest.param({}, {"PATH": "/usr/bin:/bin:"}, id="an empty element in PATH"),
        pytest.param({}, {"LC_ALL": "no_SUCH.locale"}, id="bash complains"),
    ],
)
def test_where_bash_may_do_more_it_is_started(
    tmp_path: Path, changes: dict[str, Any], variables: dict[str, str]
) -> None:
    assert not took_the_lane(tmp_path, environment={**os.environ, **variables}, **changes)


def test_a_program_that_appears_on_path_later_is_found_then(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    with started(tmp_path, slots=1, environment={**os.environ, "PATH": path}) as engine:
        engine.driver.open()
        engine.driver.run(*["seq 1"] * (PLAIN_LINES_FIRST + 1))
        executable(tmp_path / "bin" / "seq", "#!/bin/sh\necho another seq\n")
        (report,) = engine.driver.run("seq 1")
    assert report.out.head == b"another seq\n"


# ---- which lines are plain


@pytest.mark.parametrize(
    "line",
    [
        b"a > b", b"a | b", b"a; b", b"a & b", b"$A", b"`a`", b"a*", b"a?", b"[a]", b"{a,b}",
        b"~/a", b"a 'b'", b'a "b"', b"a \\b", b"a # b", b"! a", b"A=1 b", b"a\nb", b"a\rb",
        b"(a)", b"%1", b"-a", b"+a", b"", b"   ", b"a ~", b"caf\xc3\xa9", b"a\x0bb",
        b"x" * 4097,
    ],
)
def test_a_line_that_could_mean_more_is_not_plain(line: bytes) -> None:
    assert plain_words(line, USUAL_SHELL_WORDS) is None


@pytest.mark.parametrize(
    "line", [b"echo a", b"true", b":", b". f", b"time a", b"if", b"test a", b"cd a"]
)
def test_a_builtin_or_keyword_is_not_plain(line: bytes) -> None:
    assert plain_words(line, USUAL_SHELL_WORDS) is None


def test_words_are_split_at_blanks_alone() -> None:
    line = b" prog\t-a=b  c,d:e @x %y +z /p/q.r_s "
    words = [b"prog", b"-a=b", b"c,d:e", b"@x", b"%y", b"+z", b"/p/q.r_s"]
    assert plain_words(line, USUAL_SHELL_WORDS) == words


@pytest.mark.parametrize(
    "entry",
    [
        b"BASH_ENV=x", b"BASHOPTS=", b"SHELLOPTS=x", b"POSIXLY_CORRECT=", b"BASH_COMPAT=4",
        b"BASH_FUNC_a%%=() { :; }", b"EXECIGNORE=*", b"RANDOM=3",
    ],
)
def test_an_environment_that_changes_bash_asks_for_bash(entry: bytes) -> None:
    assert search_path([b"PATH=/bin", entry]) is None


@pytest.mark.parametrize("path", [None, b"", b"bin:/bin", b"/bin:", b":/bin", b"/bin::/usr/bin"])
def test_a_path_that_depends_on_the_directory_asks_for_bash(path: bytes | None) -> None:
    assert search_path([] if path is None else [b"PATH=" + path]) is None


def test_programs_are_looked_for_as_bash_spells_them() -> None:
    assert candidates(b"a", [b"/x/", b"/y"]) == [b"/x/a", b"/y/a"]
    assert candidates(b"./a", [b"/x"]) == [b"./a"]
