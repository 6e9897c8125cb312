"""The utility script of a run: the ticket by which others join or watch it.

It holds paths and nothing else: who may read it learns no secret. Every path is absolute
and quoted, and nothing looks at the script's own name, since batch systems copy scripts.
"""

from __future__ import annotations

_START = "import sys; sys.path.append(sys.argv.pop(1)); " \
    "from overnight.cli.utility import main; sys.exit(main(sys.argv[1:]))"


def script_text(prefix: str, python: str, package_folder: str) -> str:
    """The script of the run with this prefix.

    Args:
        prefix: Of the run, absolute.
        python: The driver's interpreter, absolute.
        package_folder: What its import path needs for this package: a folder or a zip file.
    """
    return f"""#!/bin/bash
# Utility script of an overnight run.
#   -s HOST:N ...   adds a context: slots on these hosts; localhost is the machine it runs on
#   --engine        makes this machine an engine of the run
#   --mon           watches the run
run={_quoted(prefix)}
python={_quoted(python)}
package={_quoted(package_folder)}
if [ ! -x "$python" ]; then
    echo "The Python of this run is not here: $python" >&2
    exit 1
fi
exec "$python" -I -c '{_START}' "$package" "$run" "$@"
"""


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
