"""The engine file and how an engine begins: any Python from 3.9 on, in little time."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from overnight.driver.package import FAR_HALF, PRELOAD, pack
from overnight.formats.bootstrap import engine_command
from overnight.model.outcome import Exited
from tests.driver.record_kit import file_size_limit
from tests.engine.kit import engine_file, started
from tests.interpreters import find_interpreter

COSTLY = (
    "argparse", "asyncio", "collections", "contextlib", "ctypes", "dataclasses", "enum",
    "importlib.util", "json", "logging", "re", "runpy", "signal", "socket", "subprocess",
    "threading", "traceback", "typing", "zipfile",
)


def test_the_engine_file_is_the_same_each_time(tmp_path: Path) -> None:
    pack(str(tmp_path / "a"))
    pack(str(tmp_path / "b"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_engine_file_is_a_sound_zip_of_the_far_half(tmp_path: Path) -> None:
    pack(str(tmp_path / "file"))
    with zipfile.ZipFile(tmp_path / "file") as file:
        assert file.testzip() is None
        names = {name for name in file.namelist() if name.endswith(".py")}
    modules = {name[:-3].replace("/", ".").removesuffix(".__init__") for name in names}
    assert modules == {*FAR_HALF, PRELOAD, "__main__"}


def test_a_file_that_cannot_be_written_is_not_left_half(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pack(str(tmp_path / "no" / "file"))
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        pack(str(tmp_path / "taken"))
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_that_does_not_fit_is_not_left_half(tmp_path: Path) -> None:
    with file_size_limit(100_000), pytest.raises(OSError, match="too large"):
        pack(str(tmp_path / "file"))
    assert not list(tmp_path.iterdir())


def test_it_can_be_packed_from_a_package_that_lies_in_a_zip(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    pack(str(plain))
    source = Path(__file__).parents[2] / "src"
    whole = tmp_path / "whole.pyz"
    with zipfile.ZipFile(whole, "w") as file:
        for path in (source / "overnight").rglob("*.py"):
            file.write(path, path.relative_to(source))
    script = (
        f"import sys; sys.path.insert(0, {str(whole)!r}); "
        f"from overnight.driver.package import pack; pack({str(tmp_path / 'again')!r})"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True, timeout=60)
    with zipfile.ZipFile(plain) as one, zipfile.ZipFile(tmp_path / "again") as other:
        for name in one.namelist():
            if name.endswith(".py"):
                assert one.read(name) == other.read(name)


def started_with(tmp_path: Path, first: str, last: str = "") -> str:
    """What an engine's command line prints that runs something before and at its end."""
    python, *options, program, file, engine, _, fd = engine_command(
        sys.executable, engine_file(tmp_path), 0
    )
    program = program.replace("sys.exit(main(", f"{last}\nsys.exit(len(")
    done = subprocess.run(
        [python, *options, f"{first}\n{program}", file, engine, fd],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert (done.returncode, done.stderr) == (2, "")
    return done.stdout


def test_an_engine_imports_nothing_that_costs_much(tmp_path: Path) -> None:
    said = started_with(
        tmp_path, "import sys; before = set(sys.modules)",
        "print(*sorted(set(sys.modules) - before))",
    ).split()
    assert {name for name in said if name.startswith("overnight.")} >= {"overnight.engine.runner"}
    assert not set(said) & set(COSTLY)


def test_an_engine_of_the_same_python_compiles_and_looks_up_nothing(tmp_path: Path) -> None:
    said = started_with(
        tmp_path, "import builtins; builtins.compile = None",
        "print(sys.argv[1] in sys.path_importer_cache)",
    )
    assert said == "False\n"


def test_another_python_takes_the_sources(tmp_path: Path) -> None:
    # Written with that number, the cached bytecode of the standard library would be no good to
    # whoever else uses it.
    other = (
        "import sys; sys.dont_write_bytecode = True; "
        "sys.modules['_frozen_importlib_external'].MAGIC_NUMBER = b'old!'"
    )
    said = started_with(tmp_path, other, "print(main.__code__.co_filename)")
    assert said == f"{engine_file(tmp_path)}/overnight/engine/main.py\n"


def test_the_file_can_be_run_as_it_is(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-I", "-S", engine_file(tmp_path), "engine"],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert (said.returncode, said.stderr) == (2, "usage: engine --fd N, or join FILE\n")


OLDEST = pytest.param((3, 9), marks=pytest.mark.needs("python3.9"))
NEWER = [(3, minor) for minor in range(10, 20) if find_interpreter((3, minor))]


@pytest.mark.parametrize("version", [OLDEST, *NEWER], ids=lambda v: ".".join(map(str, v)))
def test_tasks_run_under_every_python_from_the_oldest_on(
    tmp_path: Path, version: tuple[int, int]
) -> None:
    python = find_interpreter(version)
    with started(tmp_path, python=str(python), slots=2) as engine:
        engine.driver.open()
        reports = engine.driver.run(
            "exit 3", "kill -15 $$", "echo hi", "nosuch", "x" * 200_000, b"\0",
            *["/bin/true"] * 60, "sleep 600 > /dev/null 2>&1 & kill $!; true",
        )
        engine.driver.assign_and_end(reports[-1].task_id + 1)
        engine.driver.close()
    assert str(engine.driver.hello["python"]).startswith(f"{version[0]}.{version[1]}.")
    assert [r.outcome.kind for r in reports[:6]] == [
        "exited", "signalled", "exited", "exited", "not started", "not started"
    ]
    assert all(isinstance(r.outcome, Exited) and r.outcome.code == 0 for r in reports[6:])


def test_the_log_of_an_engine_in_a_c_locale_is_empty_and_its_tasks_see_that_locale(
    tmp_path: Path,
) -> None:
    """The interpreter sets LC_CTYPE for itself there; tasks must not see it."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": ""}
    with started(tmp_path, environment=environment) as engine:
        engine.driver.open()
        (report,) = engine.driver.run('echo "${LC_CTYPE-unset}"')
    assert report.out.head == b"unset\n"
