"""``overnight pool``: see and change the engines of a run that goes on."""

from __future__ import annotations

import argparse
import os
import re
import time

from overnight.cli.arguments import cores, count, positive
from overnight.cli.ask import ask
from overnight.cli.join import files_of
from overnight.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
DAY_S = 86400.0


def main(arguments: Sequence[str]) -> int:
    """Ask the driver, from any machine that shares the run's folder; 0 when it has answered."""
    parsed = _parser().parse_args(arguments)
    answer = ask(files_of(parsed.run), parsed.question(parsed))
    print(parsed.answer(answer))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="overnight pool", description="See and change the engines of a run that goes on.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    _verb(verbs, "list", "show them", lambda _: {"verb": "list"}, list_text)
    add = _verb(verbs, "add", "start engines on further hosts", _add_question, _added_text)
    add.add_argument("-s", "--ssh-node", action="append", required=True, metavar="HOST:COUNT",
                     help="slots on a host; localhost is the driver's machine")
    add.add_argument("-c", "--cpusPerTask", type=cores, metavar="X", help="cores a task uses")
    add.add_argument("-t", "--tasksPerNode", type=positive, metavar="N",
                     help="most tasks at once per node")
    add.add_argument("-l", "--label", metavar="NAME", help="label of the context")
    add.add_argument("-C", "--context-task-limit", type=count, default=0, metavar="N",
                     help="the context leaves after N tasks (0: no limit)")
    add.add_argument("--until", metavar="HH:MM",
                     help="the hosts are lent until then: engines drain in time, and what"
                          " still runs at that time is ended and run elsewhere")
    for name, does in (
        ("drain", "let engines take nothing more, and leave when their tasks have ended"),
        ("stop", "end the tasks of engines now, to be run elsewhere, and let them leave"),
    ):
        verb = _verb(verbs, name, does, _targets_question(name), _left_text(name))
        verb.add_argument("targets", nargs="+", metavar="ENGINE",
                          help="rank, host, or label of a context")
    sets = _verb(verbs, "set", "change the slots of engines, at once", _set_question, list_text)
    sets.add_argument("targets", nargs="+", metavar="ENGINE",
                      help="rank, host, or label of a context; the last word is jobs=N")
    forget = _verb(verbs, "forget", "say that a machine is gone, with all that ran on it",
                   lambda parsed: {"verb": "forget", "host": parsed.host}, _forgotten_text)
    forget.add_argument("host", metavar="HOST",
                        help="as the messages name it; its tasks are then run elsewhere")
    return parser


def _verb(
    verbs: Any, name: str, does: str, question: object, answer: object
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=does, description=does[0].upper() + does[1:] + ".")
    parser.add_argument("run", metavar="RUN", help="prefix of the run, or one of its files")
    parser.set_defaults(question=question, answer=answer)
    return parser


def _add_question(parsed: argparse.Namespace) -> dict[str, object]:
    return {
        "verb": "add", "ssh_node": list(parsed.ssh_node), "cpus_per_task": parsed.cpusPerTask,
        "tasks_per_node": parsed.tasksPerNode, "label": parsed.label or "",
        "task_limit": parsed.context_task_limit,
        "until": None if parsed.until is None else next_moment(parsed.until, time.time()),
    }


def next_moment(text: str, now: float) -> float:
    """The next time a clock on the wall shows this, Unix seconds.

    Raises:
        UsageError: It is no time of day.
    """
    found = _CLOCK.fullmatch(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise UsageError(f"--until {text}: a time of day is needed, such as 08:00")
    day = time.localtime(now)
    moment = time.mktime((*day[:3], int(found[1]), int(found[2]), 0, 0, 0, -1))
    return moment if moment > now else moment + DAY_S


def _targets_question(verb: str) -> object:
    return lambda parsed: {"verb": verb, "targets": list(parsed.targets)}


def _set_question(parsed: argparse.Namespace) -> dict[str, object]:
    *targets, change = parsed.targets
    name, equals, number = change.partition("=")
    if name != "jobs" or not equals or not number.isdigit() or not targets:
        raise UsageError("set needs an engine and a number: overnight pool set RUN ENGINE jobs=4")
    return {"verb": "set", "targets": targets, "jobs": int(number)}


def list_text(answer: Mapping[str, Any]) -> str:
    """The engines as a table."""
    rows = [("rank", "host", "context", "slots", "tasks", "state")]
    for each in answer["engines"]:
        rank = "-" if each["rank"] < 0 else str(each["rank"])
        rows.append((rank, each["node"] or "-", each["context"], str(each["slots"]),
                     str(each["tasks"]), each["state"]))
    if len(rows) == 1:
        return "No engine is there."
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _added_text(answer: Mapping[str, Any]) -> str:
    notes = "".join(f"{note}\n" for note in answer["notes"])
    return f"{notes}{_engines(answer['count'])} started."


def _left_text(verb: str) -> object:
    does = "leaves when its tasks have ended" if verb == "drain" else "leaves now"

    def text(answer: Mapping[str, Any]) -> str:
        return os.linesep.join(
            f"engine {each['rank']} on {each['node']} {does} ({each['tasks']} tasks)"
            for each in answer["engines"]
        )

    return text


def _forgotten_text(answer: Mapping[str, Any]) -> str:
    return f"{_engines(answer['count'])} forgotten: the tasks are run elsewhere."


def _engines(number: int) -> str:
    return "1 engine is" if number == 1 else f"{number} engines are"
