"""Real parts that some tests cannot do without, and how to see whether they are here.

A test says ``@pytest.mark.needs("root", "fuse")``. Where a part is missing the test is skipped
and the run says so at its end; in strict mode (``CI=true`` or ``OVERNIGHT_TEST_STRICT=1``) a
missing part is a failure, because there everything is meant to be here.

``PARTS`` is the table: a name for each part, and a probe that returns what is missing, or None.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache

from tests.interpreters import find_interpreter
from tests.ssh_lab import lab_folder

Probe = Callable[[], str | None]


def _root() -> str | None:
    return None if os.geteuid() == 0 else "not root"


def _mounts() -> str | None:
    """Whether a file system can be mounted, tried where nobody else sees it."""
    if missing := _root():
        return missing
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return None if tried.returncode == 0 else f"cannot mount: {tried.stderr.strip()}"


def _fuse() -> str | None:
    if missing := _mounts():
        return missing
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse"
    if ctypes.util.find_library("fuse") is None:
        return "libfuse2 not found"
    return None if importlib.util.find_spec("fuse") else "Python package fusepy not found"


def _namespaces() -> str | None:
    """Whether a command can be run as if on another machine: name, processes, mounts."""
    if missing := _root():
        return missing
    tried = subprocess.run(
        ["unshare", "--uts", "--pid", "--fork", "--mount-proc", "hostname", "elsewhere"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return None if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


def _ps() -> str | None:
    return None if shutil.which("ps") else "ps not found"


SLURM_PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")


def _slurm() -> str | None:
    """What a real cluster on this machine lacks: its daemons run in namespaces of their own."""
    if missing := _mounts():
        return missing
    if not (lab_folder() / "slurm").exists():
        return f"no lab in {lab_folder()}"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [name for name in SLURM_PROGRAMS if not shutil.which(name, path=path)]
    return f"not installed: {', '.join(lacking)}" if lacking else None


def _python(version: tuple[int, int]) -> Probe:
    def probe() -> str | None:
        name = "python" + ".".join(map(str, version))
        return None if find_interpreter(version) else f"{name} not found"

    return probe


def _ssh_hosts() -> str | None:
    """Whether hosts can be made of namespaces; the lab's scripts do that."""
    if missing := _mounts():
        return missing
    if not (lab_folder() / "hosts").exists():
        return f"no lab in {lab_folder()}"
    absent = [name for name in ("ssh", "/usr/sbin/sshd", "ip", "nsenter", "nft")
              if not shutil.which(name)]
    return f"{', '.join(absent)} not found" if absent else None


def _mpirun() -> str | None:
    return None if shutil.which("mpirun") else "mpirun not found"


PARTS: dict[str, Probe] = {
    "fuse": _fuse,
    "mounts": _mounts,
    "mpirun": _mpirun,
    "namespaces": _namespaces,
    "ps": _ps,
    "python3.9": _python((3, 9)),
    "root": _root,
    "ssh hosts": _ssh_hosts,
    "slurm": _slurm,
}


@cache
def missing(part: str) -> str | None:
    """What keeps a part from being used here, None when it is here.

    >>> missing("the moon")
    Traceback (most recent call last):
    KeyError: 'the moon'
    """
    return PARTS[part]()
