"""Making a process: the shortest way the interpreter has.

From 3.10 on that is the function below ``subprocess``, which starts the child by vfork:
the price does not grow with this process's memory, and it costs half of ``posix_spawn``
as Python calls it. It is private, and its arguments differ by version; where it is not
known, ``os.posix_spawn`` does the same.

Every child gets a session of its own, standard input from /dev/null, an empty signal
mask and default handlers: the signals that Python ignores are restored here, those that
a background shell had left ignored when the engine began. All other descriptors of this
process are close-on-exec.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Spawn = Callable[[bytes, Sequence[bytes], Sequence[bytes], int, int], int]


class Spawner:
    """Starts children that read nothing and write where they are told."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._errors, self._errors_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.start: Spawn = self._by_vfork() or self._by_posix_spawn

    def _by_posix_spawn(
        self, path: bytes, arguments: Sequence[bytes], environment: Sequence[bytes],
        out: int, err: int,
    ) -> int:
        streams = [
            (os.POSIX_SPAWN_DUP2, self._null, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ]
        variables = dict(entry.split(b"=", 1) for entry in environment)
        return os.posix_spawn(
            path, list(arguments), variables, file_actions=streams, setsid=True,
            setsigdef=_IGNORED_BY_PYTHON, setsigmask=(),
        )

    def _by_vfork(self) -> Spawn | None:
        """``start`` by way of subprocess's own function, where its arguments are known."""
        if sys.version_info < (3, 10):  # forks
            return None
        try:
            from _posixsubprocess import fork_exec
        except ImportError:
            return None
        null, errors, errors_in = self._null, self._errors, self._errors_in
        # gid, groups, uid, umask, preexec_fn
        as_we_are: tuple[Any, ...] = (None, None, None, -1, None)
        rest = as_we_are if sys.version_info < (3, 11) else (-1, *as_we_are, True)
        check = select.poll()
        check.register(errors, select.POLLIN)

        def start(
            path: bytes, arguments: Sequence[bytes], environment: Sequence[bytes],
            out: int, err: int,
        ) -> int:
            try:
                pid = fork_exec(*(
                    arguments, (path,), False, (), None, environment, null, -1, -1, out, -1, err,
                    errors, errors_in, True, True, *rest,
                ))
            except TypeError:  # a version that has other arguments
                self.start = self._by_posix_spawn
                return self.start(path, arguments, environment, out, err)
            # After vfork the child has either become the program or said why not.
            if check.poll(0):
                raise self._exec_error(pid)
            return pid

        return start

    def _exec_error(self, pid: int) -> OSError:
        os.waitpid(pid, 0)
        number = int(os.read(self._errors, 4096).split(b":")[1], 16)
        return OSError(number, os.strerror(number))


_IGNORED_BY_PYTHON = (13, 25)  # SIGPIPE, SIGXFSZ
