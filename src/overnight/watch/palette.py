"""Colours, by the last word of a style: for light ground and for dark.

Done and failed differ in hue along the blue-orange axis, which the common kinds of colour
blindness keep, and in lightness; the rarer endings differ in lightness from both.
"""

from __future__ import annotations

COLOURS: dict[str, tuple[str, str]] = {
    "ground": ("#ffffff", "#14191f"),
    "title": ("#18222d", "#eef2f6"),
    "heading": ("#18222d", "#eef2f6"),
    "label": ("#56636f", "#9aa7b3"),
    "barrier": ("#18222d", "#eef2f6"),
    "lane": ("#edf1f4", "#1f272f"),
    "grid": ("#dde3e8", "#2c363f"),
    "idle": ("#f7e8bf", "#4a3f1d"),
    "wait": ("#dfe6f3", "#2a3650"),
    "fold": ("#c9d1d8", "#3d4852"),
    "done": ("#4aa3bd", "#3c93ad"),
    "failed": ("#cc3d08", "#ff6f3d"),
    "timed-out": ("#e09600", "#f0b13a"),
    "lost": ("#7b3f8f", "#c78adb"),
    "cut-off": ("#66727d", "#93a0ab"),
    "per-engine": ("#9db39a", "#5f7a5b"),
    "middle": ("#18222d", "#eef2f6"),
}

SIZES = {"title": 18.0, "heading": 13.0, "label": 11.0, "barrier": 11.0}
"""Sizes of text in pixels."""

DASHED = frozenset(("barrier", "middle"))
"""Styles of rules that are broken."""


def colour_key(style: str) -> str:
    """The word of a style that names its colour."""
    return style.rpartition(" ")[2]
