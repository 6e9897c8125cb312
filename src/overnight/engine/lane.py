"""Starting plain lines without bash, in exactly the environment bash would hand on.

Bash is asked twice, once: for its builtins and keywords, and for the environment it
gives a program, order included. That costs milliseconds, so it waits for the fourth
line that would use the answer; until then, and whenever anything is unusual, bash
itself is started.
"""

from __future__ import annotations

import os
import select
import time

from overnight.core.plain import (
    PLAIN,
    USUAL_SHELL_WORDS,
    candidates,
    plain_words,
    search_path,
)
from overnight.formats.environment import (
    PER_ATTEMPT_NAMES,
    attempt_variables,
    name_of,
    slot_variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.engine.spawn import Spawner
    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup

    Program = tuple[bytes, list[bytes], list[bytes]]

BASH = b"/bin/bash"
PLAIN_LINES_FIRST = 3
"""Plain lines that bash gets before it is asked."""

ANSWER_WITHIN_S = 10.0


class Lane:
    """The way past bash for one runner."""

    def __init__(self, spawner: Spawner, setup: Setup) -> None:
        self._spawner = spawner
        self._setup = setup
        self._is_off = setup.always_shell
        self._seen = 0
        self._shell_words = USUAL_SHELL_WORDS
        self._handed_on: bytes | None = None  # output of env -0, once asked
        self._environments: dict[int, _Environment | None] = {}  # by slot

    def program(
        self, attempt: Attempt, slot: int, environment: Sequence[bytes]
    ) -> Program | None:
        """Path, arguments and environment to start instead of bash; None to start bash.

        Args:
            attempt: What is to be started.
            slot: Where.
            environment: What bash would be given, the attempt's variables included.
        """
        command = attempt.task.command
        # What most lines are is seen without a further call: a builtin, or shell syntax.
        if self._is_off or command.partition(b" ")[0] in self._shell_words:
            return None
        if command.translate(None, PLAIN) or plain_words(command, self._shell_words) is None:
            return None
        self._seen += 1
        if self._seen <= PLAIN_LINES_FIRST:
            return None
        if self._handed_on is None:
            self._ask_bash(environment)
        if slot not in self._environments:
            self._environments[slot] = self._environment(slot, environment)
        base = self._environments[slot]
        words = plain_words(command, self._shell_words)
        if base is None or words is None:
            return None
        path = _executable(words[0], base.folders)
        return None if path is None else (path, words, base.of(attempt, path))

    def _ask_bash(self, environment: Sequence[bytes]) -> None:
        self._handed_on = b""
        if search_path(environment) is not None:
            words = self._ask(b"compgen -bk", environment).split()
            self._shell_words |= frozenset(words)
            if words:
                self._handed_on = self._ask(b"env -0", environment)
        self._is_off = not self._handed_on

    def _environment(self, slot: int, environment: Sequence[bytes]) -> _Environment | None:
        folders = search_path(environment)
        if folders is None or not self._handed_on:
            return None
        return _Environment.parse(self._handed_on, folders, slot_variables(self._setup, slot))

    def _ask(self, command: bytes, environment: Sequence[bytes]) -> bytes:
        """What bash prints; nothing if it complains, fails, or does not answer."""
        out, err = _Answer(), _Answer()
        try:
            pid = self._spawner.start(
                BASH, (BASH, b"-c", command), environment, out.write_fd, err.write_fd
            )
        except OSError:
            out.read_until(0.0)
            err.read_until(0.0)
            return b""
        give_up_at = time.monotonic() + ANSWER_WITHIN_S
        said, complaint = out.read_until(give_up_at), err.read_until(give_up_at)
        if said is None or complaint is None:
            os.kill(pid, 9)  # our child and not reaped: its number is its own
        _, status = os.waitpid(pid, 0)
        return said if said and complaint == b"" and status == 0 else b""


class _Answer:
    """A pipe that is read to its end."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)

    def read_until(self, give_up_at: float) -> bytes | None:
        """All that was written; None when the writers outlived the time."""
        os.close(self.write_fd)
        poll = select.poll()
        poll.register(self.read_fd, select.POLLIN)
        said = b""
        try:
            while poll.poll(max(0.0, give_up_at - time.monotonic()) * 1000):
                data = os.read(self.read_fd, 65536)
                if not data:
                    return said
                said += data
            return None
        finally:
            os.close(self.read_fd)


class _Environment:
    """What bash hands on in one slot, with the places of what differs by attempt.

    Attributes:
        folders: Where programs are looked for.
    """

    def __init__(
        self, entries: list[bytes], places: dict[bytes, int], folders: list[bytes]
    ) -> None:
        self.folders = folders
        self._entries = entries
        self._places = [places[name] for name in PER_ATTEMPT_NAMES]
        self._path_place = places[b"_"]

    @classmethod
    def parse(
        cls, said: bytes, folders: list[bytes], of_slot: Sequence[bytes]
    ) -> _Environment | None:
        """From the output of ``env -0``; None when a variable is missing there."""
        entries = said.rstrip(b"\0").split(b"\0")
        places = {name_of(entry): place for place, entry in enumerate(entries)}
        needed = {*PER_ATTEMPT_NAMES, *map(name_of, of_slot), b"_"}
        if not places.keys() >= needed:
            return None
        for entry in of_slot:
            entries[places[name_of(entry)]] = entry
        return cls(entries, places, folders)

    def of(self, attempt: Attempt, path: bytes) -> list[bytes]:
        """The whole of it for this attempt of this program."""
        entries = self._entries.copy()
        for place, entry in zip(self._places, attempt_variables(attempt)):
            entries[place] = entry
        entries[self._path_place] = b"_=" + path
        return entries


def _executable(word: bytes, folders: Sequence[bytes]) -> bytes | None:
    """The file bash would take. A directory may come back: then exec fails, and bash is asked."""
    for path in candidates(word, folders):
        if b"/" in word or os.access(path, os.X_OK, effective_ids=True):
            return path
    return None
