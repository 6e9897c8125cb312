"""What a picture is made of, before anything is drawn: one scene, several back-ends.

Coordinates are pixels from the upper left corner; back-ends may scale. A style is a few
words as in a class attribute, from the general to the particular; its last word names the
colour (``palette``). Later shapes cover earlier ones.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Rect = tuple[float, float, float, float]  # left, top, width, height
    Data = dict[str, str | int]  # what a shape stands for, by name
    Shape: TypeAlias = "Box | Boxes | Rule | Label"


class Box:
    """A rectangle that stands for something.

    Attributes:
        rect: Where it is.
        style: What it is of.
        data: What it stands for, by name.
        tip: What it says when pointed at; may be empty.
    """

    __slots__ = ("data", "rect", "style", "tip")

    def __init__(
        self, rect: Rect, style: str, data: Data | None = None, tip: str = ""
    ) -> None:
        self.rect = rect
        self.style = style
        self.data = data or {}
        self.tip = tip


class Boxes:
    """Many rectangles of one kind, of which none needs to be told from another."""

    __slots__ = ("data", "rects", "style")

    def __init__(
        self, rects: list[Rect], style: str, data: Data | None = None
    ) -> None:
        self.rects = rects
        self.style = style
        self.data = data or {}


class Rule:
    """A straight line that stands for something."""

    __slots__ = ("data", "end", "start", "style", "tip")

    def __init__(
        self, start: tuple[float, float], end: tuple[float, float], style: str,
        data: Data | None = None, tip: str = "",
    ) -> None:
        self.start = start
        self.end = end
        self.style = style
        self.data = data or {}
        self.tip = tip


class Label:
    """One line of text.

    Attributes:
        at: Where its base line starts, has its middle or ends, as ``anchor`` says.
        anchor: ``start``, ``middle`` or ``end``.
    """

    __slots__ = ("anchor", "at", "style", "text")

    def __init__(
        self, at: tuple[float, float], text: str, style: str = "label", anchor: str = "start"
    ) -> None:
        self.at = at
        self.text = text
        self.style = style
        self.anchor = anchor


class Panel:
    """A part of the picture with a name of its own."""

    __slots__ = ("name", "shapes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.shapes: list[Shape] = []


class Scene:
    """A whole picture.

    Attributes:
        width, height: Its size.
        title: What it shows, in a few words.
        description: What there is to be seen, in a sentence.
        panels: Its parts, lowest first.
    """

    __slots__ = ("description", "height", "panels", "title", "width")

    def __init__(
        self, width: float, height: float, title: str, description: str, panels: list[Panel]
    ) -> None:
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self.panels = panels


def text_width(text: str, size: float) -> float:
    """About how wide a text comes out, whatever the font."""
    return len(text) * size * 0.56
