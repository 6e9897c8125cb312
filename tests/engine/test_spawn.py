"""Both ways to make a process give the same process, and the same errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from overnight.engine.spawn import Spawner

Start = Callable[[bytes, Sequence[bytes], Sequence[bytes], int, int], int]
ENVIRONMENT = [b"PATH=/usr/bin:/bin", b"A=b=c", b"EMPTY="]


@pytest.fixture(params=["vfork", "posix_spawn"])
def start(request: pytest.FixtureRequest) -> Start:
    spawner = Spawner()
    if request.param == "vfork":
        assert spawner.start != spawner._by_posix_spawn
        return spawner.start
    return spawner._by_posix_spawn


def run(start: Start, path: bytes, *arguments: bytes) -> tuple[int, bytes, bytes]:
    """Wait status, standard output and standard error of a short program."""
    out, err = os.pipe(), os.pipe()
    try:
        pid = start(path, arguments, ENVIRONMENT, out[1], err[1])
    finally:
        os.close(out[1])
        os.close(err[1])
    with open(out[0], "rb") as out_pipe, open(err[0], "rb") as err_pipe:
        said = out_pipe.read(), err_pipe.read()
    return os.waitpid(pid, 0)[1], *said


def bash(start: Start, command: bytes) -> tuple[int, bytes, bytes]:
    return run(start, b"/bin/bash", b"/bin/bash", b"-c", command)


def test_both_streams_and_the_status_are_its_own(start: Start) -> None:
    assert bash(start, b"echo out; echo err >&2; exit 3") == (0x300, b"out\n", b"err\n")


def test_it_leads_a_session_and_reads_nothing(start: Start) -> None:
    command = b"[ $(ps -o sid= -p $$) -eq $$ ] && echo leader; cat; readlink /proc/self/fd/0"
    assert bash(start, command)[1] == b"leader\n/dev/null\n"


def test_its_environment_is_what_was_given(start: Start) -> None:
    said = run(start, b"/usr/bin/env", b"env", b"-0")[1]
    assert said.rstrip(b"\0").split(b"\0") == ENVIRONMENT


def test_signals_that_python_ignores_are_at_their_defaults(start: Start) -> None:
    said = run(start, b"/bin/grep", b"grep", b"SigIgn", b"/proc/self/status")[1]
    # glibc's posix_spawn leaves its own two internal signals ignored, which harms nobody
    assert int(said.split()[1], 16) & ~0x180000000 == 0


@pytest.mark.parametrize(
    ("path", "errno"), [(b"/no/such/program", 2), (b"/etc/passwd", 13), (b"/etc", 13)]
)
def test_what_cannot_be_executed_is_an_error_and_no_child(
    start: Start, path: bytes, errno: int
) -> None:
    with pytest.raises(OSError, match=os.strerror(errno)) as caught:
        start(path, [b"x"], ENVIRONMENT, 1, 2)
    assert caught.value.errno == errno


def test_an_argument_too_long_is_an_error(start: Start) -> None:
    with pytest.raises(OSError, match=os.strerror(7)):
        start(b"/bin/true", [b"true", b"x" * 131_072], ENVIRONMENT, 1, 2)


def test_a_nul_byte_is_an_error(start: Start) -> None:
    with pytest.raises(ValueError, match="null byte"):
        start(b"/bin/true", [b"a\0b"], ENVIRONMENT, 1, 2)


def test_a_script_without_first_line_is_an_error(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    with pytest.raises(OSError, match=os.strerror(8)):
        start(os.fsencode(script), [b"script"], ENVIRONMENT, 1, 2)


def test_an_error_of_one_start_is_not_taken_for_one_of_the_next(start: Start) -> None:
    with pytest.raises(OSError, match=os.strerror(2)):
        start(b"/no/such/program", [b"x"], ENVIRONMENT, 1, 2)
    assert bash(start, b"exit 255") == (0xFF00, b"", b"")
