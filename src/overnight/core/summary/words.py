"""Foreign and measured things in words a person can read, and a terminal will not obey."""

from __future__ import annotations

COMMAND_LIMIT = 200
"""Bytes kept of a command."""


def visible(text: str) -> str:
    r"""The text with every character written out that a terminal might obey.

    >>> print(visible("red\x1b[31m\tend"))
    red\x1b[31m\tend
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def command_text(command: bytes) -> str:
    """The beginning of a command for people: one line, nothing a terminal would obey."""
    text = visible(command[:COMMAND_LIMIT].decode("utf-8", "backslashreplace"))
    return text + "…" if len(command) > COMMAND_LIMIT else text


def memory_text(kib: float) -> str:
    """A size as a person says it.

    >>> memory_text(900), memory_text(13000000)
    ('900 KiB', '12.4 GiB')
    """
    for limit, divisor, unit in ((1000, 1, "KiB"), (1024000, 1024, "MiB")):
        if kib < limit:
            return f"{kib / divisor:.0f} {unit}"
    return f"{kib / 1048576:.1f} GiB"


def clip(text: str, width: int) -> str:
    """The beginning of the text that fits into so many columns, with an ellipsis if cut."""
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + "…"
    columns = 0
    fits = 0  # characters that leave room for the ellipsis
    for position, char in enumerate(text):
        columns += _columns(char)
        if columns > width:
            return text[:fits] + "…"
        if columns < width:
            fits = position + 1
    return text


def _columns(char: str) -> int:
    # Imported here: lines that are not ASCII are rare.
    from unicodedata import combining, east_asian_width

    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
