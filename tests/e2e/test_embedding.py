"""A driver in somebody's program: it leaves the process as it was."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import overnight as package
from tests.e2e.kit import Stage

SOURCES = Path(package.__file__).parent
OWNERS = {"cli", "engine"}
"""What may install signal handlers: the commands, and the engine in its own process."""

PROGRAM = '''
import os, signal, sys, threading
from overnight.model.options import RunOptions
from overnight.wiring import Plan, Run

def state():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    mask = os.umask(0)
    os.umask(mask)
    return handlers, mask, os.getcwd(), dict(os.environ)

def drive():
    run = Run(Plan(RunOptions(task_file="Tasks", prefix="P", jobs=2)))
    run.prepare([])
    verdicts.append(run.drive())

before, verdicts = state(), []
thread = threading.Thread(target=drive)
thread.start()
thread.join()
assert state() == before
assert len(os.listdir("/proc/self/fd")) < 12, os.listdir("/proc/self/fd")
sys.exit(verdicts[0].has_failures)
'''


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_nothing_but_commands_and_engines_installs_signal_handlers() -> None:
    installing = {"signal.signal", "signal.set_wakeup_fd", "signal", "set_wakeup_fd"}
    found = [
        str(path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.py"))
        if installing & set(_calls(path))
    ]
    assert {name.split("/")[0] for name in found} <= OWNERS, found


def test_a_driver_in_a_thread_leaves_the_process_as_it_was(stage: Stage) -> None:
    stage.write("Tasks", *["true"] * 20)
    ended = stage.run([sys.executable, "-c", PROGRAM])
    assert (ended.status, ended.err) == (0, "")
    assert stage.codes("P") == dict.fromkeys(range(20), 0)
    stage.is_empty_soon()
