"""Where sockets and spools lie that must not be reached by anybody else."""

from __future__ import annotations

import os
import stat


def private_directory() -> str:
    """A directory of this user's alone on this machine, for sockets and spools."""
    usual = f"/tmp/overnight-{os.getuid()}"
    for path in (usual, f"{usual}-{os.urandom(8).hex()}"):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            found = os.lstat(path)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() \
                    or found.st_mode & 0o077:
                continue  # somebody else got there first, or left it open
        except OSError:
            continue  # an engine that needs it will say so
        return path
    return usual
