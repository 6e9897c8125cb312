"""The tables of docs/reference/options.md, made of what the commands say for ``--help``.

A table stands between two comments. The first names the commands it is true of, and the group of
options: ``<!-- options of disBatch, overnight run: where -->``. After an option has changed, the
page is brought up to date with

    python -m tests.docs.options_page
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "options.md"
COMMANDS = (
    "disBatch", "overnight run", "overnight resume", "overnight report", "overnight attach",
    "overnight join",
)
_TABLE = re.compile(
    r"<!-- options of (?P<commands>[^:\n]+): (?P<group>[^\n]+) -->\n(?P<rows>.*?)<!-- end -->",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option as ``--help`` has it, whichever Python wrote that.

    Attributes:
        names: Of an option, in order; empty for what has no name of its own.
        value: What follows it, or stands in its place.
        help: What it says.
    """

    names: tuple[str, ...]
    value: str
    help: str

    @property
    def row(self) -> str:
        """Its row in the page."""
        value = re.sub(r"[{}]", "", self.value.replace(",", r"\|"))  # {a,b}: one of them
        called = [", ".join(f"`{name}`" for name in self.names), f"`{value}`" if value else ""]
        meaning = self.help.replace("<", r"\<").replace("|", r"\|")
        return f"| {' '.join(called).strip()} | {meaning} |"


def table_text(rows: list[str]) -> str:
    """A table of these rows."""
    return "\n".join(["| option | meaning |", "|---|---|", *rows, ""])


@cache
def help_text(command: str) -> str:
    """What a command says for ``--help``, each option in one line."""
    program, *verb = command.split()
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *verb, "--help"],
        env={**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=60, check=True,
    )
    return done.stdout


@cache
def groups(command: str) -> dict[str, list[Option]]:
    """The options of a command, by their group's title."""
    found: dict[str, list[Option]] = {}
    lines: list[str] = []
    for line in help_text(command).splitlines():
        if re.fullmatch(r"\S.*:", line):
            lines = []
            found[line[:-1]] = []
            title = line[:-1]
        elif found and line.startswith("  "):
            lines.append(line)
            found[title] = list(_options(lines))
    return found


def _options(lines: list[str]) -> Iterator[Option]:
    text = "\n".join(lines)
    for entry in re.split(r"\n(?=  \S)", text):
        called, _, words = entry.strip().partition("  ") if "\n" not in entry else (
            entry.strip().partition("\n")
        )
        yield _option(called, " ".join(words.split()))


def _option(called: str, words: str) -> Option:
    """Read ``-p PATH, --prefix PATH``, or ``-p, --prefix PATH`` as newer Pythons write it.

    >>> _option("-j N, --jobs N", "slots") == _option("-j, --jobs N", "slots")
    True
    """
    if not called.startswith("-"):
        return Option((), called, words)
    parts = re.split(r", (?=-)", called)
    names = tuple(part.partition(" ")[0] for part in parts)
    return Option(names, parts[-1].partition(" ")[2], words)


def tables() -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The tables of the page: of which commands, of which group, and the rows."""
    for match in _TABLE.finditer(PAGE.read_text("utf-8")):
        yield tuple(match["commands"].split(", ")), match["group"], match["rows"]


def wanted_rows(commands: tuple[str, ...], group: str) -> str:
    """A table as it has to be."""
    options = [groups(command).get(group) for command in commands]
    assert options[0] is not None, f"{commands[0]} has no options under {group!r}"
    for command, others in zip(commands, options, strict=True):
        assert others == options[0], f"{command} and {commands[0]} differ under {group!r}"
    return table_text([option.row for option in options[0]])


def main() -> None:
    """Bring the page up to date."""

    def renewed(match: re.Match[str]) -> str:
        commands, group = match["commands"], match["group"]
        rows = wanted_rows(tuple(commands.split(", ")), group)
        return f"<!-- options of {commands}: {group} -->\n{rows}<!-- end -->"

    PAGE.write_text(_TABLE.sub(renewed, PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
