"""Packing the far half into the one file that every engine of a run executes.

Beside each module's source lies its bytecode for the interpreter that packs, so that an
engine of the same Python compiles nothing; any other, from 3.9 on, takes the source.
Sources and code come from the loader this package came from: a folder or a zipapp.
"""

from __future__ import annotations

import marshal
import os
from importlib.machinery import PathFinder
from importlib.util import MAGIC_NUMBER, source_hash

import overnight
from overnight.formats.storedzip import stored_zip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

FAR_HALF = (
    "overnight",
    "overnight.errors",
    "overnight.model",
    "overnight.model.attempt",
    "overnight.model.messages",
    "overnight.model.outcome",
    "overnight.model.report",
    "overnight.model.task",
    "overnight.formats",
    "overnight.formats.environment",
    "overnight.formats.link",
    "overnight.formats.rows",
    "overnight.core",
    "overnight.core.engine",
    "overnight.core.engine_events",
    "overnight.core.plain",
    "overnight.core.runners",
    "overnight.core.slot_events",
    "overnight.core.slots",
    "overnight.net",
    "overnight.net.link",
    "overnight.guard",
    "overnight.guard.adopt",
    "overnight.guard.group_kin",
    "overnight.guard.kin",
    "overnight.guard.processes",
    "overnight.guard.sweep",
    "overnight.engine",
    "overnight.engine.attach",
    "overnight.engine.capture",
    "overnight.engine.driver_end",
    "overnight.engine.exits",
    "overnight.engine.lane",
    "overnight.engine.main",
    "overnight.engine.oom",
    "overnight.engine.polled",
    "overnight.engine.runner",
    "overnight.engine.runner_ends",
    "overnight.engine.running",
    "overnight.engine.spawn",
    "overnight.engine.spool",
    "overnight.engine.starter",
    "overnight.engine.supervisor",
)
"""Modules of the engine file; a package stands before what is in it."""

MAIN = b"""import sys

from overnight.engine.main import main

sys.exit(main(sys.argv[1:]))
"""

_HASH_UNCHECKED = (1).to_bytes(4, "little")  # PEP 552: never compare with the source


def pack(path: str) -> None:
    """Write the engine file; it is whole or not there.

    Raises:
        OSError: It cannot be written.
    """
    data = stored_zip([("__main__.py", MAIN), *_entries()])
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(fd, "wb", buffering=0) as file:
            file.write(data)
        os.rename(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise


def _entries() -> Iterator[tuple[str, bytes]]:
    places: dict[str, Sequence[str] | None] = {"": None}
    for name in FAR_HALF:
        loader, is_package = _find(name, places)
        source = loader.get_data(loader.get_filename(name))
        stem = name.replace(".", "/") + ("/__init__" if is_package else "")
        yield f"{stem}.py", source
        code = marshal.dumps(loader.get_code(name))
        yield f"{stem}.pyc", MAGIC_NUMBER + _HASH_UNCHECKED + source_hash(source) + code


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
