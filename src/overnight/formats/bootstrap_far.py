"""What makes an interpreter on another machine an engine: everything goes down one stream.

First the command line that a login shell there runs. It is one line that every shell reads
alike: a single-quoted word for ``sh``, without ``!``, backslash or single quote. ``sh``
looks for an interpreter that is new enough, says what it found if there is none, and
becomes it. The interpreter reads exactly the bytes of ``LOADER`` from standard input, one
by one, and runs them; the loader reads the engine file, exactly, and imports it. What
follows in the stream is the link, with the ENTER frame ahead of it.

Nothing is written to a disk there: an engine starts also where /tmp is full.
"""

from __future__ import annotations

from zlib import compress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST = (3, 9)
"""The oldest Python that the far half runs on."""

NEWEST_TRIED = 14

ENGINE_WORD = "overnight_engine.pyz"
"""In the command line of a far engine: by its ending engines and runners are recognised."""

NO_PYTHON_STATUS = 86
"""Exit status of the command where no interpreter is good enough."""

LOADER = b"""\
import marshal, os, sys

def take(size):
    parts = []
    while size:
        data = os.read(0, min(size, 1 << 16))
        if not data:
            sys.exit(1)
        parts.append(data)
        size -= len(data)
    return b"".join(parts)

import zlib
file = zlib.decompress(take(int(sys.argv[2])))
size = int.from_bytes(file[4:8], "little")
if file[:4] == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER:
    codes = marshal.loads(memoryview(file)[8:8 + size])
else:
    import io, zipfile
    codes = {}
    with zipfile.ZipFile(io.BytesIO(file)) as sources:
        for name in sources.namelist():
            if name != "__main__.py":
                stem = name[:-3]
                is_package = stem.endswith("/__init__")
                module = (stem[:-9] if is_package else stem).replace("/", ".")
                codes[module] = is_package, compile(sources.read(name), name, "exec")
space = {"__name__": "preload"}
exec(codes["overnight.engine.preload"][1], space)
space["install"](codes)
del file, codes
from overnight.engine.far import main
sys.exit(main())
"""

_ONE_LINE = "import os,sys;exec(bytes().join([os.read(0,1) for i in range(int(sys.argv[1]))]))"
_IS_NEW_ENOUGH = "import sys;sys.exit(sys.version_info[:2]<(%d,%d))"

_SEARCH = (
    'for p in %(pythons)s; do if command -v "$p" >/dev/null 2>&1 &&'
    ' "$p" -E -s -S -c "%(check)s" </dev/null >/dev/null 2>&1; then'
    ' exec "$p" -I -S -c "%(line)s" %(loader_size)d %(file_size)d %(word)s; fi; done;'
    " for p in %(named)s; do if command -v \"$p\" >/dev/null 2>&1; then"
    ' f="$f; $p is $("$p" -V 2>&1)"; fi; done;'
    ' echo "%(lacking)s is there$f" >&2;'
    " exit %(status)d"
)


def far_file(engine_file: bytes) -> bytes:
    """The engine file as it goes down the stream: a third of its size."""
    return compress(engine_file, 6)


def far_command(pythons: Sequence[str], file_size: int) -> str:
    """The command line for a login shell on another machine.

    Args:
        pythons: Interpreters to try there, in order; each ``is_plain_word``.
        file_size: Bytes of the ``far_file``.

    >>> "'" in far_command(["python3"], 5)[len("exec sh -c '"):-1]
    False
    """
    oldest = ".".join(map(str, OLDEST))
    script = _SEARCH % {
        "pythons": " ".join(pythons),
        "named": " ".join(dict.fromkeys((*pythons, "python3", "python"))),
        "check": _IS_NEW_ENOUGH % OLDEST,
        "line": _ONE_LINE,
        "loader_size": len(LOADER),
        "file_size": file_size,
        "word": ENGINE_WORD,
        "lacking": f"no Python {oldest} or later" if len(pythons) > 1
                   else f"no {pythons[0]} of Python {oldest} or later",
        "status": NO_PYTHON_STATUS,
    }
    return f"exec sh -c '{script}'"


def usual_pythons(own: str) -> list[str]:
    """Interpreters to try where the user has named none: this one's path, then by version."""
    named = [f"python3.{minor}" for minor in range(NEWEST_TRIED, OLDEST[1] - 1, -1)]
    return [*([own] if is_plain_word(own) else []), *named, "python3"]


def is_plain_word(text: str) -> bool:
    """Whether every shell reads this as one word, however it is quoted.

    >>> is_plain_word("/opt/py-3.12/bin/python3"), is_plain_word("my python")
    (True, False)
    """
    return bool(text) and all(
        each.isascii() and (each.isalnum() or each in "/._+-") for each in text
    ) and not text.startswith("-")
