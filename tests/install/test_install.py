"""Installing, tried where users are: pip, uv, one file, a clone, a copy in a spool folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.install import ways
from tests.install.ways import Environment, call, prove_disbatch, prove_overnight
from tests.interpreters import Version, interpreters

# One after the other on one worker: they share a wheel, and each of them loads the machine.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]

each_python = pytest.mark.parametrize(
    "version", ways.pythons(), ids=lambda version: "python" + ".".join(map(str, version))
)
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    call(sys.executable, *build, "--wheel-dir", folder, ways.ROOT)
    (built,) = folder.glob("overnight-*.whl")
    return built


@pytest.fixture(scope="session", params=ways.pythons(), ids=lambda v: "python{}.{}".format(*v))
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with the wheel and nothing else, not even rich."""
    environment = ways.make_environment(tmp_path_factory.mktemp("installed") / "env", request.param)
    environment.install("--no-deps", wheel)
    return environment


@pytest.mark.parametrize("name", ["disBatch", "disbatch"])
def test_pip_gives_the_compatible_commands(
    installed: Environment, tmp_path: Path, name: str
) -> None:
    prove_disbatch(tmp_path / "run", installed.command(name))


def test_pip_gives_the_command_of_our_own(installed: Environment, tmp_path: Path) -> None:
    prove_overnight(tmp_path / "run", installed.command("overnight"))


def test_the_package_can_be_run_as_a_module(installed: Environment, tmp_path: Path) -> None:
    prove_overnight(tmp_path / "run", installed.python, "-m", "overnight")


def test_a_copy_of_the_command_in_a_spool_folder_runs(
    installed: Environment, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    script = spool / "slurm_script"
    script.write_bytes(installed.command("disBatch").read_bytes())
    script.chmod(0o500)
    prove_disbatch(tmp_path / "run", script)


def test_the_package_says_that_it_is_typed(installed: Environment) -> None:
    where = "import overnight, os; print(os.path.dirname(overnight.__file__))"
    package = Path(call(installed.python, "-I", "-c", where).strip())
    assert (package / "py.typed").exists()


@each_python
def test_pip_with_what_it_depends_on(version: Version, wheel: Path, tmp_path: Path) -> None:
    environment = ways.make_environment(tmp_path / "env", version)
    environment.install(wheel)
    prove_overnight(tmp_path / "run", environment.command("overnight"))


@each_python
def test_uv_installs_it_into_an_environment(version: Version, wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "env"
    call(UV, "venv", "--quiet", "--python", interpreters()[version], folder)
    call(UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", wheel)
    prove_disbatch(tmp_path / "run", folder / "bin" / "disBatch")


@each_python
def test_uv_runs_it_as_a_tool(version: Version, wheel: Path, tmp_path: Path) -> None:
    tool = (UV, "tool", "run", "--quiet", "--python", interpreters()[version], "--from", wheel)
    prove_disbatch(tmp_path / "run", *tool, "disBatch")


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("zipapp") / "overnight.pyz"
    call(sys.executable, ways.ROOT / "tools" / "build_zipapp.py", target)
    return target


@each_python
def test_one_file_is_the_whole_program(version: Version, zipapp: Path, tmp_path: Path) -> None:
    prove_overnight(tmp_path / "run", interpreters()[version], zipapp)


@each_python
def test_a_clone_runs_without_installing(version: Version, tmp_path: Path) -> None:
    command = ways.copy_clone(tmp_path / "a clone")
    prove_disbatch(tmp_path / "run", interpreters()[version], command)


@each_python
def test_a_link_to_the_command_of_a_clone_does_as_well(version: Version, tmp_path: Path) -> None:
    link = tmp_path / "disBatch"
    link.symlink_to(ways.copy_clone(tmp_path / "clone"))
    prove_disbatch(tmp_path / "run", interpreters()[version], link)


def test_a_copy_of_a_clones_command_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "slurm_script"
    script.write_bytes((ways.ROOT / "disBatch").read_bytes())
    tried = subprocess.run(
        [sys.executable, str(script), "Tasks"], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 1
    assert f"{script} is a copy" in tried.stderr
    assert "sbatch --wrap" in tried.stderr


@pytest.mark.needs("python3.9")
def test_a_clones_command_names_the_python_it_takes(tmp_path: Path) -> None:
    old = interpreters()[3, 9]
    tried = subprocess.run(
        [str(old), str(ways.ROOT / "disBatch")], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 1
    assert "needs Python 3.11 or later" in tried.stderr
