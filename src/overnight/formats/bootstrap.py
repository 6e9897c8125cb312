"""The command line that makes an interpreter an engine, and how the engine file begins.

The file is a zip of sources that any Python from 3.9 on can run. In front of them lies
the code of all modules, marshalled for one interpreter: magic number of its bytecode,
length, code. ``python FILE`` works too, and costs 10 ms more: it imports runpy first.
"""

from __future__ import annotations

PREFIX_HEAD_SIZE = 8
"""Four bytes of magic number, four of length (little endian)."""

_PROGRAM = """\
import marshal, sys
with open(sys.argv[1], "rb") as file:
    head = file.read(8)
    if head[:4] == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER:
        codes = marshal.loads(file.read(int.from_bytes(head[4:], "little")))
        space = {"__name__": "preload"}
        exec(codes["overnight.engine.preload"][1], space)
        space["install"](codes)
    else:
        sys.path.insert(0, sys.argv[1])
from overnight.engine.main import main
sys.exit(main(sys.argv[2:]))
"""


def engine_command(python: str, engine_file: str, fd: int) -> list[str]:
    """Program and arguments of an engine whose driver is at a descriptor it inherits.

    >>> engine_command("python3", "Tasks_7f_engine.pyz", 5)[-4:]
    ['Tasks_7f_engine.pyz', 'engine', '--fd', '5']
    """
    return [python, "-I", "-S", "-c", _PROGRAM, engine_file, "engine", "--fd", str(fd)]


MAIN = "import sys\nsys.argv.insert(1, sys.path[0])\n" + _PROGRAM
"""Source of the file's ``__main__``, for whom ``python FILE`` is easier to say."""


def prefix(magic_number: bytes, codes: bytes) -> bytes:
    """What the engine file begins with.

    Args:
        magic_number: Of the bytecode.
        codes: Marshalled: for each module's name whether it is a package, and its code.
    """
    return magic_number + len(codes).to_bytes(PREFIX_HEAD_SIZE - 4, "little") + codes
