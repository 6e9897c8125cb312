"""``python <prefix>_engine.pyz join <prefix>_join``: an engine that whoever likes has started.

A launcher - mpirun, flux, a batch script, a person - starts this on some host; it calls the
run, and is an engine of it until the run ends or the launcher ends it. The process that was
started stays in front, with its terminal and its signals; the engine is its child, in a
session of its own as every engine is, and ends its tasks when its parent is gone.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIGHUP, SIGINT, SIGTERM, signal  # type: ignore[import-not-found]

from overnight import __version__
from overnight.engine.caller import Caller, call
from overnight.engine.main import (
    be_rank,
    inherited_environment,
    lacks,
    let_go_of_descriptors,
    own_signals,
    start_session,
)
from overnight.engine.supervisor import Supervisor
from overnight.engine.ticket import Ticket
from overnight.errors import LinkBroken, OvernightError
from overnight.guard.adopt import end_with_parent
from overnight.guard.processes import place
from overnight.model.roles import ENGINE
from overnight.net.joinfile import places_of, read_join_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.formats.joinfile import JoinFile

LOOK_EVERY_S = 0.1
SAY_WAITING_AFTER_S = 3.0

USAGE = """\
usage: python RUN_engine.pyz join RUN_join [options]
  -n, --slots N          tasks at once (default: the cores this process may use)
  --label NAME           of the context this engine belongs to
  --node NAME            how rows name this host (default: its own name)
  --cores-per-task N     DISBATCH_CORES_PER_TASK (default: cores / slots)
  --task-limit N         the context leaves after N tasks
  --share VAR=A,B,...    the value of VAR for each slot; may be repeated
  --launch TEXT          handed to the driver, for whoever started this
 and of a step of a manager, from whoever launches it:
  --divide VAR,...       variables whose lists are divided among the slots
  --without VAR,...      variables that tasks do not get; VAR* stands for any ending
  --set VAR=VALUE        a variable that tasks get; may be repeated
  --lends yes            the node is given back when nothing is left for it
"""


class Request:
    """What an engine wants to be.

    Attributes:
        path: The join file as it was named, ``<prefix>_join``.
        slots: Attempts at once.
        cores_per_task: DISBATCH_CORES_PER_TASK.
        label: Of its context; empty for one of its own.
        node: Name of this host as rows have it.
        task_limit: Of its context, 0 for none.
        shares: Values for each slot, by variable.
        launch: Whoever started it knows it by this.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        cores = len(os.sched_getaffinity(0))
        self.slots = cores
        self.cores_per_task = 0
        self.label = ""
        self.node = os.uname().nodename
        self.task_limit = 0
        self.shares: list[tuple[str, list[str]]] = []
        self.launch = ""
        self.divided: list[str] = []
        self.removes: list[str] = []
        self.variables: list[bytes] = []
        self.lends = False

    def about(self) -> dict[str, object]:
        """What HELLO says of it."""
        slots = min([self.slots, *(len(values) for _, values in self.shares)])
        cores = len(os.sched_getaffinity(0))
        return {
            "id": os.urandom(16).hex(), "label": self.label, "node": self.node,
            "place": place(), "slots": slots, "task_limit": self.task_limit,
            "cores_per_task": self.cores_per_task or max(1, cores // max(1, slots)),
            "slot_variables": [
                [f"{name}={values[slot]}".encode("utf-8", "surrogateescape")
                 for name, values in self.shares]
                for slot in range(slots if self.shares else 0)
            ],
            "divided": self.divided, "removes": self.removes, "variables": self.variables,
            "lends": self.lends, "launch": self.launch, "step": _step() if self.launch else "",
        }


def _step() -> str:
    """The step of Slurm that this process is part of, ``JOB.STEP``; empty outside of any."""
    job, step = os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_STEP_ID", "")
    return f"{job}.{step}" if job and step else ""


def parse_request(arguments: Sequence[str]) -> Request | None:
    """The request of a command line; None when that is not understood."""
    words = [part for one in arguments for part in _split(one)]
    if not words or words[0].startswith("-"):
        return None
    request = Request(words[0])
    options = iter(words[1:])
    for name in options:
        value = next(options, None)
        if value is None or not _set(request, name, value):
            return None
    is_whole = request.slots > 0 and all(values for _, values in request.shares)
    return request if is_whole else None


def _split(word: str) -> list[str]:
    """``--label=x`` as two words."""
    return word.split("=", 1) if word.startswith("--") and "=" in word else [word]


def _set(request: Request, name: str, value: str) -> bool:
    numbers = {
        "-n": "slots", "--slots": "slots", "--jobs": "slots", "-j": "slots",
        "--cores-per-task": "cores_per_task", "--task-limit": "task_limit",
    }
    lists = {"--divide": "divided", "--without": "removes"}
    texts = {"--label": "label", "-l": "label", "--node": "node", "--launch": "launch"}
    if name in numbers:
        if not value.isdigit():
            return False
        setattr(request, numbers[name], int(value))
    elif name in texts:
        setattr(request, texts[name], value)
    elif name in lists:
        setattr(request, lists[name], value.split(","))
    elif name == "--set" and "=" in value:
        request.variables.append(os.fsencode(value))
    elif name == "--lends":
        request.lends = value == "yes"
    elif name == "--share" and "=" in value:
        variable, _, values = value.partition("=")
        request.shares.append((variable, values.split(",")))
    else:
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Join and be an engine until it leaves.

    Returns:
        0 when it has left in order, 1 when it could not join, 2 for a command line that is
        not understood, 128 and the number for a signal.
    """
    request = parse_request(arguments)
    if request is None:
        sys.stderr.write(USAGE)
        return 2
    inherited = inherited_environment()
    if request.launch:
        from overnight.engine.ranks import local_rank

        rank = local_rank(inherited)
        if rank is not None:
            return _join_step(request, inherited) if rank == 0 else be_rank(request.launch)
    parent = os.getpid()
    child = os.fork()
    if child:
        return _mind(child)
    status = 1
    try:
        start_session()
        end_with_parent(SIGTERM)
        if os.getppid() == parent:
            status = _join(request, inherited)
    except OvernightError as error:
        os.write(2, f"overnight join: {error}\n".encode("utf-8", "replace"))
    except BaseException:  # noqa: BLE001  # nothing may go on in a copy of the process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _join_step(request: Request, inherited: list[bytes]) -> int:
    """Be the engine of a step whose every process has a slot: this one has the first."""
    start_session()
    try:
        return _join(request, inherited, request.launch)
    except OvernightError as error:
        os.write(2, f"overnight join: {error}\n".encode("utf-8", "replace"))
        return 1


def _mind(child: int) -> int:
    """Pass signals on to the engine, and end as it ends."""
    def pass_on(number: int, frame: object) -> None:
        os.kill(child, SIGTERM)  # not reaped yet: the number is its own

    for number in (SIGTERM, SIGINT, SIGHUP):
        signal(number, pass_on)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _join(request: Request, inherited: list[bytes], step: str = "") -> int:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    let_go_of_descriptors(())
    paths = places_of(request.path)
    join_file = _wait_for_join_file(request.path, paths)
    _check_host(join_file)
    # The caller's pipe first: the link must be the last descriptor to be had.
    caller = Caller(paths, ENGINE)
    stream = call(join_file, ENGINE)
    supervisor = Supervisor(
        stream.fd, stream.fd, own_signals(), inherited, __version__, lacks(),
        Ticket(request.about(), stream, caller), launch=step,
    )
    supervisor.run()
    return 0 if supervisor.was_set_up else 1


def _wait_for_join_file(path: str, paths: Sequence[str]) -> JoinFile:
    """The join file, which a run that has just begun has yet to write."""
    lock = path[: -len("_join")] + "_lock" if path.endswith("_join") else ""
    say_at = time.monotonic() + SAY_WAITING_AFTER_S
    while True:
        # Asked before the file: a run that ends in between is not waited for.
        has_driver = bool(lock) and os.path.exists(lock)
        try:
            found = read_join_file(paths)
        except OSError as error:
            raise LinkBroken(f"cannot be read: {error.strerror}", where=path) from error
        if found is not None:
            return found
        if not has_driver:
            raise LinkBroken(
                "nobody can join: the run has ended, or does not listen", where=path,
                do="start the run with --listen, or with disBatch, which listens",
            )
        if time.monotonic() > say_at:
            os.write(2, b"overnight join: waiting until the run listens\n")
            say_at = float("inf")
        time.sleep(LOOK_EVERY_S)


def _check_host(join_file: JoinFile) -> None:
    """Whether tasks can run here at all, asked before any is given to us."""
    here = os.uname().nodename
    if not os.path.isdir(join_file.cwd):
        raise LinkBroken(
            f"the tasks run in {join_file.cwd}, which is no folder here", where=here,
            kept="nothing was started here; the run goes on without this host",
            do="join from hosts that share that folder",
        )
    if not os.access("/bin/bash", os.X_OK):
        raise LinkBroken("there is no /bin/bash to run tasks with", where=here,
                         kept="nothing was started here; the run goes on without this host")
