"""The commands: ``disBatch`` and ``overnight VERB``. Each verb has a file of its own.

A verb's imports happen when it is called: a client that answers at once is worth more
than a tidy import list. Entry points know their own names; nothing looks at argv[0].
"""

from __future__ import annotations

import gc
import os
import sys

from overnight.errors import OvernightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = {
    "run": "run a list of tasks",
    "resume": "run what is left of an earlier run",
    "report": "summarise a status file, and draw it",
    "attach": "show a run that was detached",
    "join": "be an engine of a run that goes on elsewhere",
    "pool": "engines of a run: list, add, drain, stop, set, forget",
}
LATER = {
    "check": "look a list over before the night",
    "monitor": "watch a run in the terminal",
    "web": "watch a run in the browser",
    "add": "add a notebook or a command to the queue",
    "queue": "a lasting queue of notebooks and commands",
    "explain": "why a task waits, or why it ended",
}
"""Verbs that are planned: named when they are called, rather than unknown."""


def disbatch() -> int:
    """The ``disBatch`` command; returns its exit status."""
    from overnight.cli import run

    return _guarded(lambda: run.main(sys.argv[1:], is_compatible=True))


def overnight() -> int:
    """The ``overnight`` command; returns its exit status."""
    return _guarded(lambda: _verb(sys.argv[1:]))


def _verb(arguments: list[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if verb == "--version":
        from overnight.cli.arguments import version_text

        print(version_text("overnight"))
        return 0
    if verb in VERBS:
        from importlib import import_module

        module = import_module(f"overnight.cli.{verb}")
        return int(module.main(arguments[1:]))
    if verb in LATER:
        print(f"overnight: {verb} ({LATER[verb]}) is not there yet", file=sys.stderr)
        return 2
    print(f"overnight: {verb!r} is not a verb. Known: {', '.join(VERBS)}", file=sys.stderr)
    return 2


def _usage() -> str:
    verbs = "\n".join(f"  {verb:<8} {words}" for verb, words in VERBS.items())
    return (
        "usage: overnight VERB ...\n\n"
        "Run long lists of work unattended: one honest record per task.\n\n"
        f"{verbs}\n\novernight VERB --help tells more. disBatch takes disBatch's options."
    )


def _guarded(command: Callable[[], int]) -> int:
    """Call a command; faults become messages, never tracebacks.

    While modules are imported nothing becomes garbage, and looking for it costs a third
    of the start. A run switches the collector on again once it stands (``cli.run``).
    """
    gc.disable()
    _open_streams()
    try:
        return command()
    except OvernightError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except (OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has gone; the interpreter would complain again at exit.
            sys.stdout = None
        else:
            print(f"overnight: {_fault_text(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # the interpreter need not look through all this once more to end


def _open_streams() -> None:
    """Fill descriptors 0 to 2 where the caller closed them.

    The next file that is opened would get such a number, and be taken for a stream.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # until the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _fault_text(error: OSError | MemoryError) -> str:
    """A fault of the system in one line: nothing of ours foresaw it."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"
