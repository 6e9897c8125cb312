"""How an engine's process begins.

    engine --fd N                   with the driver at descriptor N
    engine --fd N --launch NAME     the same, as the first rank of the step of that name
    rank --launch NAME              as another rank of that step: a runner of its engine
    sweep RUN ...                   end what an engine has left here (``engine/sweep``)

Or ``join FILE``: one that calls its driver itself (``engine/join``).

The process makes itself independent of whoever started it: a session of its own,
signals of its own, no descriptors but its own. What it starts gets default signals and
the environment this process was started with, not what the interpreter made of it.
"""

from __future__ import annotations

import os
import sys
from _signal import (  # type: ignore[import-not-found]  # not in typeshed
    NSIG,
    SIG_DFL,
    SIG_IGN,
    SIG_SETMASK,
    SIGHUP,
    SIGINT,
    SIGPIPE,
    SIGQUIT,
    SIGTERM,
    SIGXFSZ,
    getsignal,
    pthread_sigmask,
    set_wakeup_fd,
    signal,
)

from overnight import __version__
from overnight.engine.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LACKS = ("PIDFD", "SUBREAPER", "PROC")
"""OVERNIGHT_TEST_NO_<this> in the environment makes an engine do without it."""


def main(arguments: Sequence[str]) -> int:
    """Be an engine until it leaves.

    Args:
        arguments: As above.

    Returns:
        Exit status of the process.
    """
    if arguments and arguments[0] == "join":
        from overnight.engine.join import main as join  # sockets and TLS: 40 ms, for whoever joins

        return join(arguments[1:])
    if arguments[:1] == ["sweep"]:
        from overnight.engine.sweep import main as sweep

        return sweep(arguments[1:])
    if arguments[:1] == ["rank"] and arguments[1:2] == ["--launch"] and len(arguments) == 3:
        return be_rank(arguments[2])
    is_engine = arguments[:2] == ["engine", "--fd"]
    has_launch = len(arguments) == 5 and arguments[3] == "--launch"
    if not is_engine or not (len(arguments) == 3 or has_launch):
        sys.stderr.write("usage: engine --fd N, or join FILE\n")
        return 2
    fd = int(arguments[2])
    launch = arguments[4] if has_launch else ""
    inherited = inherited_environment()
    let_go_of_descriptors((fd,))
    start_session()
    signal_fd = own_signals()
    Supervisor(fd, fd, signal_fd, inherited, __version__, lacks(), launch=launch).run()
    return 0


def be_rank(launch: str) -> int:
    """Be a runner of the engine on this node until it lets go, or is gone."""
    from overnight.engine.ranks import connect_to_engine
    from overnight.engine.runner import Runner

    inherited = inherited_environment()
    let_go_of_descriptors()
    start_session()
    own_signals()
    set_wakeup_fd(-1)
    try:
        fd = connect_to_engine(launch)
    except OSError as error:
        sys.stderr.write(f"overnight: no engine on {os.uname().nodename}: {error}\n")
        return 1
    Runner(fd, inherited, lacks()).run()
    return 0


def lacks() -> frozenset[str]:
    """What to do without although the kernel may have it."""
    return frozenset(each for each in LACKS if f"OVERNIGHT_TEST_NO_{each}" in os.environ)


def inherited_environment() -> list[bytes]:
    """What stood in the environment before the interpreter set LC_CTYPE for itself."""
    try:
        with open("/proc/self/environ", "rb", buffering=0) as file:
            text = file.read() or b""
    except OSError:
        return [name + b"=" + value for name, value in os.environb.items()]
    return [entry for entry in text.split(b"\0") if b"=" in entry]


def let_go_of_descriptors(kept: Sequence[int] = ()) -> None:
    """Close what was left open by whoever started us; tasks would inherit it."""
    try:
        held = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        held = list(range(256))
    for fd in held:
        if fd > 2 and fd not in kept:
            try:  # noqa: SIM105  # contextlib costs a start 2 ms
                os.close(fd)
            except OSError:
                pass  # it was the listing's own
    for fd in kept:
        os.set_inheritable(fd, False)
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def start_session() -> None:
    """A terminal's Ctrl-C and hang-up are the driver's to act on."""
    try:  # noqa: SIM105  # contextlib costs a start 2 ms
        os.setsid()
    except OSError:
        pass  # it leads its group already: whoever started it saw to that


def own_signals() -> int:
    """Take signals without being ended by them; a descriptor that gives their numbers.

    What a background shell had left ignored is no longer ignored: a handler that does
    nothing keeps this process as safe, and is gone after exec.
    """
    pthread_sigmask(SIG_SETMASK, ())
    for number in range(1, NSIG):
        if getsignal(number) == SIG_IGN and number not in (SIGPIPE, SIGXFSZ):
            signal(number, SIG_DFL)
    for number in (SIGINT, SIGQUIT, SIGHUP):
        signal(number, _pass)
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal(SIGTERM, _pass)
    set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    return read_fd


def _pass(number: int, frame: object) -> None:
    """Take a signal and do nothing."""
