"""Calling Slurm's clients: each call has a time limit, and a failure is an answer too."""

from __future__ import annotations

import os
import subprocess

from overnight.formats.slurmclient import UNIX_TIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CALL_S = 30.0
"""A client whose controller is away tries for longer than anybody wants to wait."""


class Answer:
    """What a client answered.

    Attributes:
        code: Its exit status; None where it could not be started or took too long.
        text: What it printed, on either stream.
    """

    __slots__ = ("code", "text")

    def __init__(self, code: int | None, text: str) -> None:
        self.code = code
        self.text = text


def ask(
    command: Sequence[str], within_s: float = CALL_S, cwd: str | None = None,
    without: Sequence[str] = (),
) -> Answer:
    """Call a client, and wait for it; not in the driver's loop.

    Args:
        command: Program and arguments.
        within_s: It is ended after that.
        cwd: Where it is called.
        without: Names of variables that it does not get.
    """
    environment = {**os.environ, **UNIX_TIMES}
    for name in without:
        environment.pop(name, None)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment, cwd=cwd, timeout=within_s, check=False, start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, f"{command[0]} did not answer within {within_s:g} s")
    except OSError as error:
        return Answer(None, f"{command[0]}: {error.strerror}")
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"))
