"""A scene as SVG: whole, safe, and in the reader's colours."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from overnight.watch.palette import COLOURS
from overnight.watch.scene import Box, Boxes, Label, Panel, Rule, Scene
from overnight.watch.svg import svg_text

if TYPE_CHECKING:
    from overnight.watch.scene import Shape

HOSTILE = "</svg><script>alert(1)</script>\x00\x1b[2J & \"'\ud800\uffff"
SVG = "{http://www.w3.org/2000/svg}"


def scene(*shapes: Shape, title: str = "run") -> Scene:
    panel = Panel("slots")
    panel.shapes += shapes
    return Scene(100, 50, title, title, [panel])


@given(st.text(max_size=40))
def test_whatever_a_task_wrote_the_picture_is_well_formed(text: str) -> None:
    svg = svg_text(scene(
        Box((0, 0, 1, 1), "task failed", {"outcome": text}, text),
        Rule((0, 0), (1, 1), "barrier", {"line": 1}, text), Label((0, 0), text), title=text,
    ))
    assert ElementTree.fromstring(svg) is not None


def test_hostile_text_is_shown_and_does_nothing() -> None:
    svg = svg_text(scene(Box((0, 0, 1, 1), "task failed", {"outcome": HOSTILE}, HOSTILE)))
    root = ElementTree.fromstring(svg)
    assert [element.tag for element in root.iter() if "script" in element.tag] == []
    ground, box = list(root.iter(SVG + "rect"))
    assert ground.get("class") == "ground"
    assert "\\x1b[2J" in box.get("data-outcome", "")


def test_nothing_is_loaded_and_nothing_runs() -> None:
    svg = svg_text(scene(Box((0, 0, 1, 1), "task done"), Label((0, 0), "words")))
    assert "href" not in svg
    assert "url(" not in svg
    assert "<script" not in svg


def test_boxes_of_one_height_are_strokes() -> None:
    svg = svg_text(scene(Boxes([(1, 2, 3, 4), (10, 2, 0.5, 4)], "task done", {"node": "n1"})))
    (path,) = ElementTree.fromstring(svg).iter(SVG + "path")
    assert path.get("d") == "M1 4h3M10 4h0.5"
    assert path.get("data-node") == "n1"
    assert "stroke-width:4" in path.get("style", "")


def test_boxes_of_several_heights_are_outlines() -> None:
    svg = svg_text(scene(Boxes([(1, 2, 3, 4), (5, 6, 7, 8)], "column done")))
    (path,) = ElementTree.fromstring(svg).iter(SVG + "path")
    assert path.get("d") == "M1 2h3v4h-3zM5 6h7v8h-7z"


def test_every_colour_has_its_match_on_dark_ground() -> None:
    svg = svg_text(scene())
    light, dark = svg.split("@media(prefers-color-scheme:dark)")
    for key, (on_light, on_dark) in COLOURS.items():
        assert f".{key}{{fill:{on_light}}}" in light
        assert f".{key}{{fill:{on_dark}}}" in dark
