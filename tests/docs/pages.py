"""The documents as the tests see them: pages with links, headings, tables and fenced blocks.

What a fenced block is for stands behind its three backquotes:

``console``
    A session: lines that begin with ``$`` are typed (``>`` goes on with them), the lines below
    are what that shows. It is run. With ``slow`` beside it, its test is marked so.
``... file=NAME``
    The contents of a file that the session finds in its folder from there on.
anything else
    To be read, and left alone.

A page is one session from top to bottom, in a folder that is empty at its head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = "```"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    line: int  # of its first fence, from 1
    language: str
    attributes: tuple[str, ...]
    text: str  # with a line feed at the end of each line

    @property
    def file(self) -> str | None:
        """The file whose contents these are, if they are."""
        names = [word[5:] for word in self.attributes if word.startswith("file=")]
        return names[0] if names else None


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file of the project."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Its path from the project's root."""
        return str(self.path.relative_to(ROOT))

    @property
    def blocks(self) -> list[Block]:
        """Its fenced blocks, in order."""
        return list(_blocks(self.text))

    @property
    def prose(self) -> list[str]:
        """Its lines, those of fenced blocks left empty."""
        return list(_prose(self.text))

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return [target for line in self.prose for target in _LINK.findall(_without_code(line))]

    @property
    def anchors(self) -> set[str]:
        """What a link to a place in it may say behind ``#``."""
        return {_anchor(line.lstrip("#")) for line in self.prose if line.startswith("#")}

    def rows_under(self, heading: str) -> list[list[str]]:
        """The cells of the table rows below a heading, up to the next heading.

        The head of a table is left out.
        """
        rows: list[list[str]] = []
        is_there = False
        for line in self.prose:
            if line.startswith("#"):
                is_there = line.lstrip("# ") == heading
            elif is_there and line.startswith("|"):
                rows.append(cells(line))
        rules = {place for place, row in enumerate(rows) if all(set(cell) <= {"-"} for cell in row)}
        heads = {place - 1 for place in rules}
        return [row for place, row in enumerate(rows) if place not in rules | heads]


def page(name: str) -> Page:
    """The page at this path from the project's root."""
    path = ROOT / name
    return Page(path, path.read_text("utf-8"))


@cache
def pages() -> list[Page]:
    """Every page there is for readers of the project."""
    paths = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
    return [Page(path, path.read_text("utf-8")) for path in paths]


def cells(row: str) -> list[str]:
    r"""The cells of a table row; a bar in a cell is written ``\|``.

    >>> cells(r"| `a \| b` | c |")
    ['`a | b`', 'c']
    """
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _prose(text: str) -> Iterator[str]:
    """The lines, those of fenced blocks left empty."""
    is_fenced = False
    for line in text.splitlines():
        is_fence = line.startswith(_FENCE)
        is_fenced = is_fenced != is_fence
        yield "" if is_fenced or is_fence else line


def _blocks(text: str) -> Iterator[Block]:
    begun: tuple[int, list[str]] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(_FENCE):
            lines.append(line + "\n")
        elif begun is None:
            begun, lines = (number, line.removeprefix(_FENCE).split()), []
        else:
            first, words = begun
            begun = None
            yield Block(first, words[0] if words else "", tuple(words[1:]), "".join(lines))


def _without_code(line: str) -> str:
    return re.sub(r"`[^`]*`", "``", line)


def _anchor(heading: str) -> str:
    """What a heading is called in a link, as the usual forges do it.

    >>> _anchor(" The fourth flag: `Z`")
    'the-fourth-flag-z'
    """
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")
