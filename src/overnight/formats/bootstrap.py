"""The command line that makes an interpreter an engine.

``python FILE`` would do, and imports runpy first, which takes as long as everything
else an engine imports. So the file is put on the path by a line of program instead.
"""

from __future__ import annotations

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from overnight.engine.main import main; sys.exit(main(sys.argv[2:]))"
)


def engine_command(python: str, engine_file: str, fd: int) -> list[str]:
    """Program and arguments of an engine whose driver is at a descriptor it inherits.

    >>> engine_command("python3", "Tasks_7f_engine.pyz", 5)[-4:]
    ['Tasks_7f_engine.pyz', 'engine', '--fd', '5']
    """
    return [python, "-I", "-S", "-c", _PROGRAM, engine_file, "engine", "--fd", str(fd)]
