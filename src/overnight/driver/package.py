"""Packing the far half into the one file that every engine of a run executes.

It is a zip of the sources, which any Python from 3.9 on can run, behind the code of all
modules for the interpreter that packs: an engine of the same Python compiles nothing.
Sources and code come from the loader this package came from: a folder or a zipapp.
"""

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import PathFinder

import overnight
from overnight.formats.bootstrap import MAIN, prefix
from overnight.formats.storedzip import stored_zip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FAR_HALF = (
    "overnight",
    "overnight.errors",
    "overnight.model",
    "overnight.model.attempt",
    "overnight.model.messages",
    "overnight.model.outcome",
    "overnight.model.report",
    "overnight.model.roles",
    "overnight.model.task",
    "overnight.formats",
    "overnight.formats.environment",
    "overnight.formats.joinfile",
    "overnight.formats.knock",
    "overnight.formats.link",
    "overnight.formats.rows",
    "overnight.formats.spool",
    "overnight.core",
    "overnight.core.deadline",
    "overnight.core.devices",
    "overnight.core.engine",
    "overnight.core.engine_events",
    "overnight.core.plain",
    "overnight.core.ranks",
    "overnight.core.runners",
    "overnight.core.slot_events",
    "overnight.core.slots",
    "overnight.net",
    "overnight.net.dial",
    "overnight.net.door",
    "overnight.net.joinfile",
    "overnight.net.link",
    "overnight.net.tls",
    "overnight.guard",
    "overnight.guard.adopt",
    "overnight.guard.group_kin",
    "overnight.guard.kin",
    "overnight.guard.leftovers",
    "overnight.guard.private",
    "overnight.guard.processes",
    "overnight.guard.sweep",
    "overnight.engine",
    "overnight.engine.caller",
    "overnight.engine.capture",
    "overnight.engine.driver_end",
    "overnight.engine.exits",
    "overnight.engine.join",
    "overnight.engine.far",
    "overnight.engine.lane",
    "overnight.engine.main",
    "overnight.engine.oom",
    "overnight.engine.polled",
    "overnight.engine.polled_tls",
    "overnight.engine.relay",
    "overnight.engine.ranks",
    "overnight.engine.runner",
    "overnight.engine.runner_ends",
    "overnight.engine.running",
    "overnight.engine.spawn",
    "overnight.engine.spool",
    "overnight.engine.starter",
    "overnight.engine.supervisor",
    "overnight.engine.sweep",
    "overnight.engine.ticket",
)
"""Modules of the engine file; a package stands before what is in it."""

PRELOAD = "overnight.engine.preload"
"""What imports them from the code that the file begins with; no part of what is imported."""


def pack(path: str) -> None:
    """Write the engine file; it is whole or not there.

    Raises:
        OSError: It cannot be written.
    """
    data = _contents()
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(fd, "wb") as file:  # buffered: a short write is gone on with, or fails
            file.write(data)
        os.rename(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise


def _contents() -> bytes:
    places: dict[str, Sequence[str] | None] = {"": None}
    sources = [("__main__.py", MAIN.encode())]
    codes = {}
    for name in FAR_HALF:
        loader, is_package = _find(name, places)
        stem = name.replace(".", "/") + ("/__init__" if is_package else "")
        sources.append((f"{stem}.py", loader.get_data(loader.get_filename(name))))
        codes[name] = is_package, loader.get_code(name)
    loader, _ = _find(PRELOAD, places)
    codes[PRELOAD] = False, loader.get_code(PRELOAD)
    # Far away another Python may have to make all code itself.
    stem = PRELOAD.replace(".", "/")
    sources.append((f"{stem}.py", loader.get_data(loader.get_filename(PRELOAD))))
    # importlib.util has it too, and costs a run's start 5 ms
    magic_number: bytes = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    return stored_zip(sources, prefix(magic_number, marshal.dumps(codes)))


def _find(name: str, places: dict[str, Sequence[str] | None]) -> tuple[Any, bool]:
    """The loader of a module, and whether it is a package; packages' places are noted."""
    if name == "overnight":
        places[name] = overnight.__path__
        return overnight.__spec__.loader, True
    spec = PathFinder.find_spec(name, places[name.rpartition(".")[0]])
    if spec is None:
        raise ImportError(f"{name} belongs to the engine file and is not installed")
    places[name] = spec.submodule_search_locations
    return spec.loader, places[name] is not None
