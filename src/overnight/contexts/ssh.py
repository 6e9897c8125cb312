"""An engine on a host that ssh reaches: one ssh command starts it, one more finds it again.

Everything goes through ssh as the user has set it up: aliases, users, ports, keys and jump
hosts are its business. The driver's end of the link is one end of a socketpair; the other
is standard input and output of ssh. What ssh, or a login file, prints on standard error is
kept for the case that something goes wrong.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from struct import Struct

from overnight.contexts.local import callers_environment
from overnight.contexts.noted import NotedEngine, note
from overnight.contexts.settings import as_entries
from overnight.core.devices import divide
from overnight.errors import NoResources
from overnight.formats import link as frames
from overnight.formats.bootstrap_far import LOADER, far_command, far_file, usual_pythons
from overnight.model import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set
    from typing import Any

    from overnight.core.events import KeptReports
    from overnight.model.messages import Setup
    from overnight.model.run import RunFiles

PROGRAM_VARIABLE = "OVERNIGHT_SSH"
"""A command to use instead of ``ssh``; its options stand before ours, and so win."""

CONNECT_WITHIN_S = 20
ALIVE_EVERY_S = 15
ALIVE_MISSES = 3

OPTIONS = (
    "-e", "none", "-T",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={CONNECT_WITHIN_S}",
    "-o", f"ServerAliveInterval={ALIVE_EVERY_S}",
    "-o", f"ServerAliveCountMax={ALIVE_MISSES}",
    # A master that the user has open is used; to become one would outlive the run.
    "-o", "ControlMaster=no",
    # What a person's sessions want of this host would fail, or disturb, ours.
    "-o", "ClearAllForwardings=yes",
    "-o", "RemoteCommand=none",
    "-o", "LogLevel=INFO",  # "Timeout, server not responding" is of that level
)

WORDS_SHOWN = 400
LINES_SHOWN = 3
SEE_EXIT_WITHIN_S = 0.2
LOOK_EVERY_S = 0.002


class Ssh:
    """How this run reaches hosts."""

    def __init__(self, files: RunFiles, remote_python: str | None, devices: Sequence[str]) -> None:
        """Know what is sent; nothing is dialled.

        Args:
            files: Of the run; its engine file is read when the first host is dialled.
            remote_python: Interpreter on the hosts, or None for whatever is found.
            devices: Names of variables that are divided among the slots of a host.
        """
        self.files = files
        self.devices = devices
        self._pythons = [remote_python] if remote_python else usual_pythons(sys.executable)
        self._engine_file = b""

    def opening(self, wanted: Mapping[str, object]) -> list[bytes]:
        """What goes ahead of the link: loader, engine file and the ENTER frame."""
        return [LOADER, self._file(), frames.frame(m.ENTER, frames.encode_control(wanted))]

    def _file(self) -> bytes:
        if not self._engine_file:
            with open(self.files.engine_file, "rb") as file:
                self._engine_file = far_file(file.read())
        return self._engine_file

    def beacon(self) -> tuple[str, bytes]:
        """A file that a host sees only if it shares the run's folder, and what is in it."""
        with open(self.files.lock, "rb") as file:
            return self.files.lock, file.read()

    def dial(self, host: str, theirs: socket.socket, words_fd: int) -> int:
        """Start ssh; the number of its process.

        Raises:
            OSError: It cannot be started.
        """
        program = _program()
        command = [*program, *OPTIONS, host, far_command(self._pythons, len(self._file()))]
        streams: list[tuple[int, int, int]] = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, words_fd, 2),
        ]
        # A session of its own: a terminal's Ctrl-C is the driver's to act on.
        return os.posix_spawnp(
            command[0], command, dict(callers_environment()), file_actions=streams,
            setsid=True, setsigmask=(), setsigdef=(signal.SIGPIPE,),
        )


def _program() -> list[str]:
    given = os.environ.get(PROGRAM_VARIABLE)
    if not given:
        return ["ssh"]
    import shlex  # 2 ms, and rarely wanted

    return shlex.split(given)


class SshEngine:
    """An engine on a host that ssh reaches."""

    is_far = True

    def __init__(
        self, ssh: Ssh, host: str, label: str, setup: Setup, noted: NotedEngine | None = None,
    ) -> None:
        """Dial nothing yet.

        Args:
            ssh: How.
            host: As ssh calls it, and as rows have it.
            label: Of its context.
            setup: What it will be told.
            noted: The engine, where an earlier driver has started it.
        """
        self.node = host
        self.setup = setup
        self.is_survivor = noted is not None
        self.noted = noted
        self.recorded = b""  # ends of rows, for the proof that a survivor has ended
        self.opening: Sequence[bytes] = ()
        self.read_fd = self.write_fd = -1
        self._ssh = ssh
        self._label = label
        self._has_met = False
        self._pid = -1
        self._status: int | None = None
        self._words_fd = -1
        self._theirs: socket.socket | None = None
        self._renew()

    def _renew(self) -> None:
        ours, self._theirs = socket.socketpair()
        self.read_fd = self.write_fd = ours.detach()

    def begin(self) -> None:
        """Start the engine, or look for the one that was noted.

        Raises:
            NoResources: ssh could not be started.
        """
        if self._pid < 0:
            self._dial(self._engine_wanted if self.noted is None else self._attach_wanted)

    def redial(self, released: Set[int]) -> None:
        """Look for the engine.

        Raises:
            NoResources: ssh could not be started.
        """
        self.end()
        self._renew()
        self._dial(lambda: {**self._attach_wanted(), "released": sorted(released)})

    def _dial(self, wanted: Any) -> None:
        theirs = self._theirs
        assert theirs is not None
        self._theirs = None
        if self._words_fd >= 0:
            os.close(self._words_fd)
        self._words_fd = os.memfd_create("words")
        self._status = None
        with theirs:
            try:
                self.opening = self._ssh.opening(wanted())
                self._pid = self._ssh.dial(self.node, theirs, self._words_fd)
            except OSError as error:
                raise NoResources(
                    f"ssh could not be started: {error.strerror}",
                    where=error.filename or PROGRAM_VARIABLE,
                ) from error

    def _engine_wanted(self) -> dict[str, object]:
        beacon, text = self._ssh.beacon()
        setup = self.setup
        return {
            "verb": "engine", "cwd": setup.cwd, "beacon": beacon, "beacon_text": text,
            "log": self._ssh.files.engine_log(self._label, self.node, setup.rank),
            "tell": list(self._ssh.devices),
        }

    def _attach_wanted(self) -> dict[str, object]:
        noted, setup = self.noted, self.setup
        assert noted is not None
        return {
            "verb": "attach", "pid": noted.pid, "start": noted.start, "boot": noted.boot,
            "place": noted.host, "attach": noted.attach, "spools": list(noted.spools),
            "runs": list(dict.fromkeys((noted.run, setup.run))), "rank": noted.rank,
            "folders": list(noted.folders), "kill_after_s": setup.kill_after_s,
            "released": [], "recorded": self.recorded,
        }

    def meet(self, hello: Mapping[str, Any]) -> Sequence[str]:
        """Give it devices of its own host, and note how it is found again.

        Raises:
            NoResources: There is no device, or it cannot be noted: it must get nothing.
        """
        if self._has_met:
            return ()
        self._has_met = True
        setup = self.setup
        division = divide(self._ssh.devices, hello["values"], setup.slots)
        if division.slots < 1:
            if self.noted is not None:
                return ()  # it runs tasks, and may be given none: that is not decided here
            raise NoResources(f"{', '.join(self._ssh.devices)}: there is no device for any slot")
        setup.slots = division.slots
        setup.slot_variables = as_entries(division.values)
        notes = [f"{self.node}: {each}" for each in division.notes]
        if self.noted is not None:
            return notes
        own = os.path.basename(setup.attach)
        shared = setup.spools[0]
        setup.attach = f"{hello['private']}/{own}"
        setup.spools = [shared, f"{hello['private']}/{os.path.basename(setup.spools[1])}"]
        noted = NotedEngine(
            hello["pid"], hello["start"], hello["boot"], hello["place"], self.node, setup.run,
            setup.rank, setup.attach, setup.spools, [setup.cwd], ssh=self.node,
        )
        try:
            note(self._ssh.files, noted)
        except OSError as error:
            raise NoResources(
                f"its engine cannot be noted: {error.strerror}", where=self._ssh.files.engines
            ) from error
        self.noted = noted
        return notes

    def words(self) -> str:
        """Ssh's last words, or how it ended."""
        until = time.monotonic() + SEE_EXIT_WITHIN_S
        while not self.is_gone() and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)  # its streams have ended: it is about to
        said = _last_lines(self._said())
        if said:
            return said
        if self._status is None:
            return "its link was closed"
        code = os.waitstatus_to_exitcode(self._status)
        return f"ssh ended with status {code}" if code >= 0 else f"ssh ended by signal {-code}"

    def _said(self) -> bytes:
        if self._words_fd < 0:
            return b""
        size = os.fstat(self._words_fd).st_size
        return os.pread(self._words_fd, 4096, max(0, size - 4096))

    def is_gone(self) -> bool:
        """Whether ssh has ended; reaps it."""
        if self._pid < 0:
            return True
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid != self._pid:
                return False
            self._status = status
        self._pid = -1
        return True

    def end(self) -> None:
        """End ssh now. The engine, if it has had tasks, goes on alone."""
        if self._theirs is not None:
            self._theirs.close()
            self._theirs = None
        if not self.is_gone():
            os.kill(self._pid, signal.SIGKILL)  # our child and not reaped: it is this one
            with suppress(ChildProcessError):
                _, self._status = os.waitpid(self._pid, 0)
            self._pid = -1

    def close(self) -> None:
        """Close the driver's end of the link, where no driver has taken it."""
        os.close(self.read_fd)

    def reports_left(self) -> Sequence[KeptReports]:
        """None known here: they come with the proof."""
        return ()

    def prove_ended(self, released: Set[int]) -> Sequence[int]:
        """Nothing can be proved from here: ``redial`` brings the proof."""
        return ()


def row_ends(ends: Mapping[int, float]) -> bytes:
    """Ends of tasks that have rows, as they travel."""
    pack = Struct(m.ROW_END).pack
    return b"".join(pack(task_id, at) for task_id, at in ends.items())


def _last_lines(said: bytes) -> str:
    lines = [
        "".join(each for each in line if each.isprintable()).strip()
        for line in said.decode("utf-8", "replace").splitlines()
    ]
    text = "; ".join([line for line in lines if line][-LINES_SHOWN:])
    return text if len(text) <= WORDS_SHOWN else "..." + text[-WORDS_SHOWN:]
