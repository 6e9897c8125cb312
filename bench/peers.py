"""Installs the peers, each in an environment of its own under bench/.peers.

    python bench/peers.py            install what is missing, say what is there
    python bench/peers.py --forget   remove them all

Nothing of a peer gets into the project's own environment, and what could not be installed
is reported as missing. Versions are pinned: figures of different ones are not comparable.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.machine import first_line_of

BENCH = Path(__file__).resolve().parent
HOME = BENCH / ".peers"
STEP_LIMIT_S = 300


class Missing(Exception):
    """A peer cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program, ready to be run.

    Attributes:
        path: Its program, or the Python of its environment.
        version: As it names itself.
    """

    path: Path
    version: str


def step(*argv: str | Path, cwd: Path | None = None) -> None:
    """Run one step of an installation; raise Missing with its last words when it fails."""
    try:
        subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip() or f"status {error.returncode}"
        raise Missing(f"{argv[0]} failed: {words.splitlines()[-1]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error


def python_package(name: str, version: str) -> Peer:
    """A package from PyPI in a virtual environment that holds nothing else."""
    folder = HOME / name
    marker = folder / f"installed-{version}"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        step(sys.executable, "-m", "venv", folder)
        step(folder / "bin/pip", "install", "--quiet", f"{name}=={version}")
        marker.touch()
    return Peer(folder / "bin/python", f"{name} {version}")


def dis_batch() -> Peer:
    """DisBatch 3.0, the program ours replaces."""
    peer = python_package("disbatch", "3.0")
    return Peer(peer.path.with_name("disBatch"), peer.version)


def gnu_parallel() -> Peer:
    """GNU parallel: the system's, else Debian's package unpacked without installing it."""
    for path in (Path("/usr/bin/parallel"), HOME / "parallel/usr/bin/parallel"):
        # moreutils has a program of the same name.
        if path.exists() and "GNU parallel" in first_line_of(str(path), "--version"):
            return Peer(path, first_line_of(str(path), "--version"))
    folder = HOME / "parallel"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        step("apt-get", "download", "parallel", cwd=folder)
    except Missing:
        step("apt-get", "update")
        step("apt-get", "download", "parallel", cwd=folder)
    step("dpkg-deb", "-x", *sorted(folder.glob("parallel_*.deb"))[-1:], folder)
    path = folder / "usr/bin/parallel"
    return Peer(path, first_line_of(str(path), "--version"))


def xargs() -> Peer:
    """The system's xargs, if it is GNU's (for -d)."""
    found = shutil.which("xargs", path="/usr/bin:/bin")
    version = first_line_of(found, "--version") if found else ""
    if found is None or "GNU findutils" not in version:
        raise Missing("no xargs of GNU findutils in /usr/bin")
    return Peer(Path(found), version)


def concurrent_futures() -> Peer:
    """concurrent.futures with subprocess, by the Python that runs this."""
    return Peer(Path(sys.executable), f"Python {sys.version.split()[0]}")


def compiled(source: str, target: str, *options: str) -> Path:
    """One of our C files, compiled when it is newer than what is there."""
    HOME.mkdir(parents=True, exist_ok=True)
    built = HOME / target
    if not built.exists() or built.stat().st_mtime < (BENCH / source).stat().st_mtime:
        step("cc", "-O2", "-Wall", *options, "-o", built, BENCH / source)
    return built


def spawn_loop() -> Peer:
    """The C spawn loop."""
    return Peer(compiled("cloop.c", "cloop"), first_line_of("cc", "--version"))


def no_sync_preload() -> Path:
    """The preload that can answer fdatasync at once (bench/nosync.c)."""
    return compiled("nosync.c", "nosync.so", "-shared", "-fPIC")


INSTALLERS: dict[str, Callable[[], Peer]] = {
    "cloop": spawn_loop,
    "xargs": xargs,
    "cf": concurrent_futures,
    "parallel": gnu_parallel,
    "hq": functools.partial(python_package, "hyperqueue", "0.27.0"),
    "disbatch3": dis_batch,
}


def install(names: list[str]) -> tuple[dict[str, Peer], dict[str, str]]:
    """Make these peers ready.

    Returns:
        The peers that are there, and why each of the others is not, both by name.
    """
    there, missing = {}, {}
    for name in names:
        try:
            there[name] = INSTALLERS[name]()
        except Missing as reason:
            missing[name] = str(reason)
    return there, missing


def main() -> int:
    """Install or remove, and say what is there."""
    parser = argparse.ArgumentParser(description="Install the peers of the benchmark.")
    parser.add_argument("--forget", action="store_true", help="remove them all")
    if parser.parse_args().forget:
        shutil.rmtree(HOME, ignore_errors=True)
        return 0
    there, missing = install(list(INSTALLERS))
    for name, peer in there.items():
        print(f"{name:10} {peer.version}  ({peer.path})")
    for name, reason in missing.items():
        print(f"{name:10} MISSING: {reason}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
