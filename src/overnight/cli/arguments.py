"""The options of a run: those of disBatch to the letter, and ours beside them."""

from __future__ import annotations

import argparse
import os
from math import isfinite, nan

from overnight import __version__
from overnight.errors import UsageError
from overnight.formats.bootstrap_far import is_plain_word
from overnight.formats.hostport import parse_use_address
from overnight.model.options import RunOptions
from overnight.observers.runlog import LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NOT_THERE_YET = {
    "web": "-w (the web page)",
    "taskcommand": "--taskcommand (tasks from a program)",
    "taskserver": "--taskserver (tasks from a key-value client)",
    "kvsserver": "--kvsserver",
    "status_server": "--status-server",
}
"""Options whose part is not built yet: refused, rather than half working."""


CONTRACT = (
    "--context-task-limit", "--cpusPerTask", "--env-resource", "--exit-code", "--fail-fast",
    "--fill", "--force-resume", "--gpu", "--help", "--kvsserver", "--label", "--logfile",
    "--loglevel", "--mailFreq", "--mailTo", "--no-retire", "--prefix", "--resume-from",
    "--retire-cmd", "--retry", "--ssh-node", "--startup-only", "--status-header",
    "--taskcommand", "--taskserver", "--tasksPerNode", "--use-address", "--version", "--web",
)
"""disBatch's own long options: what is short for one of them there is so here."""

SHUFFLE = "--shuffle"
ANY_SEED = "any"


def positive(text: str) -> int:
    """A whole number above zero."""
    return _whole(text, least=1)


def count(text: str) -> int:
    """A whole number, zero included."""
    return _whole(text, least=0)


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return number


def seed(text: str) -> int:
    """What --shuffle starts from; below zero for one that is chosen when the run starts."""
    return -1 if text == ANY_SEED else count(text)


def _number(text: str) -> float:
    """A number; one that is within no bounds where the text is none."""
    try:
        return float(text)
    except ValueError:
        return nan


def seconds(text: str) -> float:
    """A duration: seconds, or with s, m, h, d behind it.

    >>> seconds("1.5h")
    5400.0
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    unit = units.get(text[-1:].lower())
    number = _number(text[:-1] if unit else text) * (unit or 1.0)
    if not 0 <= number < 1e12:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration: seconds, or a number with s, m, h or d behind it"
        )
    return number


def size(text: str) -> int:
    """A number of bytes, with K, M, G, T (powers of 1024) behind it if wanted.

    >>> size("2G")
    2147483648
    """
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    bare = text.upper().removesuffix("B")
    unit = units.get(bare[-1:])
    number = _number(bare[:-1] if unit else bare) * (unit or 1)
    if not 0 <= number < 1e18:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size: bytes, or a number with K, M, G or T behind it"
        )
    return int(number)


def cores(text: str) -> float:
    """Cores a task uses: a number above zero, perhaps a fraction."""
    number = _number(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of cores above zero")
    return number


def load(text: str) -> float:
    """Processes that are running or want to; nothing starts below zero."""
    number = _number(text)
    if not isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a load, a number such as 1.5")
    return number


def parse(
    parser: argparse.ArgumentParser, arguments: Sequence[str], is_compatible: bool
) -> argparse.Namespace:
    """Read a command line; options may stand behind the list of tasks.

    Raises:
        SystemExit: It does not parse (2), or only help or the version was wanted.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [_spelt_out(one, is_compatible) for one in arguments[:end]]
    lists = [_as_path(one) for one in arguments[end + 1:]]
    return parser.parse_intermixed_args([*options, *lists])


def _as_path(name: str) -> str:
    """A list's name that cannot be taken for an option: argparse forgets "--" on its way."""
    return f"./{name}" if name.startswith("-") and name != "-" else name


def _spelt_out(argument: str, is_compatible: bool) -> str:
    """The argument with its option written so that it can be read in one way only.

    For disBatch a name that is short for one of its own options means that, also where one
    of ours begins alike. A seed for --shuffle stands behind "=": what follows the option
    with a blank is the list.
    """
    name, equals, value = argument.partition("=")
    if not name.startswith("--"):
        return argument
    if is_compatible:
        meant = [option for option in CONTRACT if option.startswith(name)]
        return meant[0] + equals + value if len(meant) == 1 else argument
    is_bare_shuffle = len(name) > len("--s") and SHUFFLE.startswith(name) and not equals
    return f"{SHUFFLE}={ANY_SEED}" if is_bare_shuffle else argument


def add_arguments(parser: argparse.ArgumentParser, is_compatible: bool) -> None:
    """Give a parser the options of a run.

    Args:
        parser: Of ``disBatch`` or of ``overnight run``.
        is_compatible: For disBatch: its options, and few of ours.
    """
    _add_what(parser)
    _add_records(parser)
    _add_context(parser)
    _add_shared(parser)
    if not is_compatible:
        _add_ours(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to run")
    group.add_argument("taskfile", nargs="?", metavar="TASKFILE",
                       help="list of tasks, one a line; - is standard input, read live")
    group.add_argument("--taskcommand", metavar="COMMAND",
                       help="tasks come from this program (not there yet)")
    group.add_argument("--taskserver", nargs="?", const="", metavar="HOST:PORT",
                       help="tasks come from a key-value client (not there yet)")
    group.add_argument("--kvsserver", nargs="?", const="", metavar="HOST:PORT",
                       help="use a running key-value server (not there yet)")
    group.add_argument("--directives", choices=("refuse", "lenient"), default="refuse",
                       help="a suspicious #DISBATCH line stops the run before its first task,"
                            " or is read as disBatch reads it (default: refuse)")


def _add_records(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("records and resuming")
    group.add_argument("-p", "--prefix", default=".", metavar="PATH",
                       help="a directory for the run's files, or their whole prefix")
    group.add_argument("-r", "--resume-from", action="append", default=[], metavar="STATUSFILE",
                       help="skip what an earlier run completed; may be repeated")
    group.add_argument("-R", "--retry", action="store_true",
                       help="with -r: run again what failed")
    group.add_argument("--force-resume", action="store_true",
                       help="with -r: go by the task id alone")
    group.add_argument("--by-text", action="store_true",
                       help="with -r: go by the text alone, for lists that were edited")
    group.add_argument("--resume-check-limit", type=count, default=10_000_000, metavar="N",
                       help="with -r: compare lists up to N rows before the first start")
    group.add_argument("--status-header", action="store_true",
                       help="first line of the status file names the columns")
    group.add_argument("--logfile", metavar="FILE", help="driver log")
    group.add_argument("--loglevel", choices=list(LEVELS[::-1]), default="INFO",
                       help="what the driver log keeps (default: INFO)")
    group.add_argument("-e", "--exit-code", action="store_true",
                       help="exit with status 1 when a task failed (overnight run always does)")
    group.add_argument("-f", "--fail-fast", action="store_true",
                       help="the first failure ends the run and the running tasks")
    group.add_argument("--mailTo", metavar="ADDR", help="mail about finished tasks (not there yet)")
    group.add_argument("--mailFreq", type=positive, metavar="N",
                       help="a mail per N finished tasks; needs --mailTo")


def _add_context(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where")
    group.add_argument("-s", "--ssh-node", action="append", default=[], metavar="HOST:COUNT",
                       help="cores of a host that ssh reaches; localhost is this machine;"
                            " commas and ranges (node[01-12]:4) allowed")
    group.add_argument("-c", "--cpusPerTask", type=cores, metavar="X",
                       help="cores a task uses; may be a fraction (default: 1)")
    group.add_argument("-t", "--tasksPerNode", type=positive, metavar="N",
                       help="most tasks at once per node, up to cores/cpusPerTask")
    group.add_argument("--fill", action="store_true",
                       help="use extra cores when more were allocated than asked for")
    group.add_argument("-C", "--context-task-limit", type=count, default=0, metavar="N",
                       help="the context leaves after N tasks (0: no limit)")
    group.add_argument("-g", "--gpu", action="store_true",
                       help="divide CUDA_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL among the slots")
    group.add_argument("-E", "--env-resource", action="append", default=[], metavar="VAR",
                       help="divide the comma-separated values of VAR among the slots")
    group.add_argument("--remote-python", metavar="PATH",
                       help="interpreter on hosts reached by ssh (default: the newest found)")
    group.add_argument("-l", "--label", metavar="NAME", help="label of the context")
    group.add_argument("-K", "--no-retire", action="store_true", help="give no node back")
    group.add_argument("-k", "--retire-cmd", metavar="COMMAND",
                       help="command that gives a node back; '' for none; not with -s")
    group.add_argument("--grace", type=seconds, default=0.0, metavar="T",
                       help="what running tasks get to finish before the end of a Slurm"
                            " allocation: from then on nothing new is started (default: 0)")
    group.add_argument("--keep-slurm-env", action="store_true",
                       help="leave tasks the variables of the Slurm step they run in")
    group.add_argument("-S", "--startup-only", action="store_true",
                       help="start without resources and wait for contexts to be added")
    group.add_argument("--use-address", metavar="HOST:PORT",
                       help="name and port under which this run is reached; port 0 is any,"
                            " localhost:0 is for this machine alone")
    group.add_argument("-w", "--web", action="store_true", help="web page (not there yet)")
    group.add_argument("--status-server", action="store_true",
                       help="key-value face for monitors (not there yet)")


def _add_shared(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how tasks are run")
    group.add_argument("--always-shell", action="store_true",
                       help="start every line through bash, also those without shell syntax")
    group.add_argument("--late-output", type=seconds, metavar="S",
                       help="how long a slot waits for output of a background child")
    group.add_argument("--crash-limit", type=positive, default=3, metavar="N",
                       help="attempts of a task that may be lost with their engine (default: 3)")
    group.add_argument("--keep-reports", type=seconds, default=7 * 86400.0, metavar="T",
                       help="how long reports wait for a resume (default: 7d)")
    group.add_argument("--no-check", action="store_true", help=argparse.SUPPRESS)
    group.add_argument("--reissue-after", type=seconds, metavar="T", help=argparse.SUPPRESS)


def _add_ours(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("this machine, and trying again")
    group.add_argument("-j", "--jobs", type=positive, metavar="N",
                       help="slots on this machine (default: its cores)")
    group.add_argument("--retries", type=count, default=0, metavar="N",
                       help="further attempts for a task that failed, after 1, 2, 4 ... 60 s")
    group.add_argument("--timeout", type=seconds, metavar="T",
                       help="end an attempt after this time (30, 5m, 2h; 0: no limit)")
    group.add_argument("--kill-after", type=seconds, default=2.0, metavar="T",
                       help="between the first signal and SIGKILL (default: 2)")
    group.add_argument("--max-failures", type=positive, metavar="N",
                       help="that many failed tasks end the run")
    group.add_argument("--leave-children", action="store_true",
                       help="processes a task leaves behind live on")
    group.add_argument("--listen", action="store_true",
                       help="let machines join (overnight join) from the start")
    group = parser.add_argument_group("when tasks start")
    group.add_argument("--delay", type=seconds, default=0.0, metavar="T",
                       help="least time between two starts")
    group.add_argument("--load", type=load, metavar="X",
                       help="start nothing above this load")
    group.add_argument("--memfree", type=size, metavar="SIZE",
                       help="start nothing below this much free memory (500M, 2G)")
    group.add_argument(SHUFFLE, nargs="?", type=seed, const=-1, metavar="SEED",
                       help="start tasks in random order, within barriers")
    group = parser.add_argument_group("output and screen")
    group.add_argument("--output", metavar="DIR",
                       help="keep stdout and stderr of every attempt in files there")
    group.add_argument("--print", action="store_true",
                       help="each task's output to the screen, whole, when it ends")
    group.add_argument("--keep-order", action="store_true",
                       help="with --print: in the order of the list")
    group.add_argument("--tag", action="store_true",
                       help="with --print: the task's id before each line")
    group.add_argument("--dry-run", action="store_true",
                       help="show every task with its variables and run nothing")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    group.add_argument("--json", action="store_true",
                       help="one JSON object per event on stdout, the last with the summary")
    group.add_argument("--detach", action="store_true",
                       help="return at once; overnight attach shows the run again")


def options_of(parsed: argparse.Namespace, is_compatible: bool) -> RunOptions:
    """The options as values, checked against each other.

    Raises:
        UsageError: They do not go together, or ask for what is not there yet.
    """
    for name, words in NOT_THERE_YET.items():
        value = getattr(parsed, name)
        if value not in (None, False):
            _refuse_list_as_server(name, value)
            named = f" {value}" if isinstance(value, str) and value else ""
            raise UsageError(f"{words}{named} is not there yet", kept="nothing was started")
    if parsed.taskfile is None:
        raise UsageError("a TASKFILE is required: a list of tasks, or - for standard input")
    _check_pairs(parsed)
    late = 5.0 if is_compatible else 0.2
    chosen: dict[str, Any] = {
        "task_file": parsed.taskfile,
        "directives": parsed.directives,
        "prefix": parsed.prefix,
        "resume_from": tuple(parsed.resume_from),
        "retry": parsed.retry,
        "force_resume": parsed.force_resume,
        "by_text": parsed.by_text,
        "resume_check_limit": parsed.resume_check_limit,
        "status_header": parsed.status_header,
        "logfile": parsed.logfile,
        "loglevel": parsed.loglevel,
        "ssh_node": tuple(parsed.ssh_node),
        "cpus_per_task": parsed.cpusPerTask,
        "tasks_per_node": parsed.tasksPerNode,
        "fill": parsed.fill,
        "context_task_limit": parsed.context_task_limit,
        "gpu": parsed.gpu,
        "env_resource": tuple(parsed.env_resource),
        "label": parsed.label,
        "startup_only": parsed.startup_only,
        "use_address": parsed.use_address,
        "remote_python": parsed.remote_python,
        "no_retire": parsed.no_retire,
        "retire_cmd": parsed.retire_cmd,
        "grace": parsed.grace,
        "keep_slurm_env": parsed.keep_slurm_env,
        "always_shell": parsed.always_shell,
        "late_output": late if parsed.late_output is None else parsed.late_output,
        "exit_code": parsed.exit_code,
        "fail_fast": parsed.fail_fast,
        "crash_limit": parsed.crash_limit,
        "keep_reports": parsed.keep_reports,
        "is_compatible": is_compatible,
    }
    if not is_compatible:
        chosen |= {
            name: getattr(parsed, name)
            for name in ("jobs", "retries", "timeout", "kill_after", "max_failures",
                         "leave_children", "listen", "delay", "load", "memfree", "shuffle",
                         "output", "print", "keep_order", "tag", "quiet", "json")
        }
        chosen["timeout"] = parsed.timeout or None  # 0 is no limit, as for timeout(1)
    return RunOptions(**chosen)


def _refuse_list_as_server(name: str, value: object) -> None:
    """--taskserver and --kvsserver may stand without a value, and then take the list for it."""
    if name in ("taskserver", "kvsserver") and isinstance(value, str) and os.path.isfile(value):
        raise UsageError(
            f"--{name} takes HOST:PORT, and {value} is a file: no list is named",
            kept="nothing was started", do=f"for a list in a file leave --{name} out",
        )


def _check_pairs(parsed: argparse.Namespace) -> None:
    if parsed.ssh_node and parsed.retire_cmd is not None:
        raise UsageError("--retire-cmd gives Slurm nodes back: it does not go with -s")
    if parsed.remote_python is not None and not is_plain_word(parsed.remote_python):
        raise UsageError(
            f"--remote-python {parsed.remote_python!r}: letters, digits and ./_+- alone reach"
            " another machine's shell unharmed", do="name it by a link without blanks",
        )
    if getattr(parsed, "jobs", None) and parsed.ssh_node:
        raise UsageError("--jobs counts slots here, -s HOST:COUNT counts them per host: give one")
    if getattr(parsed, "print", False) and getattr(parsed, "json", False):
        raise UsageError("--print and --json both write to standard output: give one")
    for name in ("keep_order", "tag"):
        if getattr(parsed, name, False) and not parsed.print:
            raise UsageError(f"--{name.replace('_', '-')} says how --print prints: give both")
    if getattr(parsed, "shuffle", None) is not None and parsed.taskfile == "-":
        raise UsageError("--shuffle needs a list in a file: standard input is run as it comes")
    if parsed.use_address is not None:
        parse_use_address(parsed.use_address)
    if parsed.force_resume and parsed.by_text:
        raise UsageError("--force-resume goes by number alone, --by-text by text alone: give one")


def version_text(program: str) -> str:
    """What --version prints."""
    return f"{program} {__version__} (command line of disBatch 3.0)"
