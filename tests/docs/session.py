"""A session of a page, typed into a real bash, and what it showed beside what the page shows.

All that is typed goes to one bash in an empty folder, which the page calls ``/scratch``. What
the page shows is compared with what came, standard output and error together:

* ``...`` stands for anything in its line; alone in a line, for any lines, or none.
* Amounts of time and memory, rates, clock times, and the stamp in a default name are not
  compared; nor is how many blanks stand between two words.
* Where the page shows nothing, anything may come.

A command must end with status 0, unless the next thing typed is ``echo $?``.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.harness_processes import MARK, end_marked
from tests.docs.pages import Block, Page

SHOWN_FOLDER = "/scratch"
LIMIT_S = 120
ASKS_STATUS = "echo $?"
_STEERING = ("DISBATCH_", "SLURM_", "OVERNIGHT_", "KVSSTCP_", "CUDA_", "GPU_", "PYTHON")
_SIGN = "\x1e"

_VARYING = (
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d:\d\d\b", "<time>"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?", "<time>"),
    (r"\b[\d.,]+/(s|min|h)\b", "<rate>"),
    (r"\b[\d.,]+( min [\d.]+)? (ms|s|min|h|KiB|MiB|GiB)\b", "<amount>"),
    (r"\b\d+\.\d{3}\b", "<seconds>"),
    (r"_disBatch_\d{12}_\d{3}\b", "_disBatch_<stamp>"),
    (r"[ \t]+", " "),
)


@dataclass(frozen=True, slots=True)
class Typed:
    """Something that is typed, and what the page shows for it."""

    line: int  # where it stands in the page
    command: str
    shown: str


@dataclass(frozen=True, slots=True)
class File:
    """A file that is in the folder from here on."""

    name: str
    text: str


Step = Typed | File


@dataclass(frozen=True, slots=True)
class Session:
    """What a page has somebody do, from top to bottom."""

    name: str
    steps: tuple[Step, ...]
    is_slow: bool


def session_of(page: Page) -> Session | None:
    """The session of a page, if it has anything typed.

    It is one, in one folder: whoever follows a page goes through it from top to bottom, and
    what a section leaves behind is there in the next.
    """
    steps = tuple(step for block in page.blocks for step in _steps(block))
    is_slow = any("slow" in block.attributes for block in page.blocks)
    has_typed = any(isinstance(step, Typed) for step in steps)
    return Session(page.name, steps, is_slow) if has_typed else None


def _steps(block: Block) -> Iterator[Step]:
    if block.file is not None:
        yield File(block.file, block.text)
    elif block.language == "console":
        yield from _typed(block)


def _typed(block: Block) -> Iterator[Typed]:
    number, command, shown = 0, "", ""
    for place, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            if command:
                yield Typed(number, command, shown)
            number, command, shown = place, line[2:], ""
        elif line.startswith(">") and command and not shown:
            command += "\n" + line[2:]
        else:
            assert command, f"line {place}: a session begins with something typed"
            shown += line + "\n"
    yield Typed(number, command, shown)


def play(session: Session, folder: Path, kept: Path) -> list[str]:
    """Type a session in this folder; what came otherwise than the page shows.

    Args:
        session: What to type.
        folder: An empty one, where it is typed.
        kept: Another, for the script and for what is shown.
    """
    script, screen = kept / "script", kept / "screen"
    script.write_text(_script(session), "utf-8")
    try:
        with screen.open("ab") as out:
            subprocess.run(
                ["bash", str(script)], cwd=folder, env=_environment(kept),
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=LIMIT_S, check=False,
            )
    except subprocess.TimeoutExpired:
        return [f"not over after {LIMIT_S} s; it showed\n{screen.read_text('utf-8', 'replace')}"]
    finally:
        end_marked(kept)
    text = screen.read_text("utf-8", "replace").replace(str(folder), SHOWN_FOLDER)
    return list(_differences(session, text))


def _script(session: Session) -> str:
    """The session for bash; a sign on the screen parts what each command shows."""
    parts = []
    for step in session.steps:
        if isinstance(step, File):
            text = base64.b64encode(step.text.encode()).decode()
            parts.append(f"base64 -d <<< {text} > '{step.name}'")
        else:
            # The status of the last command is still what the next one sees.
            parts.append(f"_s=$?; printf '{_SIGN}%d{_SIGN}' $_s; (exit $_s)\n{step.command}")
    return "\n".join([*parts, f"printf '{_SIGN}%d{_SIGN}' $?", ""])


def _environment(kept: Path) -> dict[str, str]:
    here = str(Path(sys.executable).parent)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_STEERING)}
    path = os.pathsep.join([here, inherited.get("PATH", os.defpath)])
    return {**inherited, "PATH": path, "LC_ALL": "C.UTF-8", "TERM": "dumb", MARK: str(kept)}


def _differences(session: Session, text: str) -> Iterator[str]:
    typed = [step for step in session.steps if isinstance(step, Typed)]
    parts = text.split(_SIGN)[1:]
    statuses, outputs = parts[0::2], parts[1::2]
    assert len(outputs) == len(typed) + 1, f"the shell ended early; it showed\n{text}"
    for place, step in enumerate(typed):
        came, status = outputs[place], int(statuses[place + 1])
        asks = place + 1 < len(typed) and typed[place + 1].command == ASKS_STATUS
        if step.shown and not is_as_shown(step.shown, came):
            yield (f"line {step.line}, $ {step.command}\n--- the page shows\n{step.shown}"
                   f"--- what came\n{came}")
        elif status and not asks:
            yield f"line {step.line}, $ {step.command}\nended with status {status}:\n{came}"


def is_as_shown(shown: str, came: str) -> bool:
    r"""Whether what came is what a page shows, by the rules of this module.

    >>> is_as_shown("took 1.2 s\n...\nend\n", "took 310 ms\na\nb\nend\n")
    True
    """
    pattern = "".join(_pattern(line) for line in _steady(shown))
    return re.fullmatch(pattern, "".join(line + "\n" for line in _steady(came))) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*"
    return re.escape(line).replace(r"\.\.\.", ".*") + r"\n"


def _steady(text: str) -> list[str]:
    """The lines of a text without what is not compared."""
    for pattern, name in _VARYING:
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.strip("\n").split("\n")]
