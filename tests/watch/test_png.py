"""A scene as PNG, and what is said where Pillow is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from overnight.errors import OvernightError
from overnight.watch.palette import COLOURS
from overnight.watch.png import SCALE, write_png
from overnight.watch.scene import Box, Boxes, Label, Panel, Rule, Scene

if TYPE_CHECKING:
    from pathlib import Path

    from overnight.watch.scene import Shape


def scene(*shapes: Shape) -> Scene:
    panel = Panel("slots")
    panel.shapes += shapes
    return Scene(100, 50, "run", "a run", [panel])


def pixel_of(path: Path, x: float, y: float) -> str:
    image = pytest.importorskip("PIL.Image", reason="missing: pillow").open(path)
    return "#{:02x}{:02x}{:02x}".format(*image.getpixel((round(x * SCALE), round(y * SCALE))))


def test_shapes_are_where_the_scene_has_them_and_in_their_colours(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="missing: pillow")
    path = tmp_path / "run.png"
    write_png(
        scene(
            Boxes([(10, 10, 20, 10), (60, 10, 20, 10)], "task done"),
            Box((40, 10, 10, 10), "task failed timed-out"),
            Rule((90, 0), (90, 50), "grid"),
            Label((10, 40), "wörds \x1b☃", "title"),
        ),
        str(path),
    )
    found = [pixel_of(path, x, 15) for x in (5, 15, 45, 70, 90)]
    keys = ["ground", "done", "timed-out", "done", "grid"]
    assert found == [COLOURS[key][0] for key in keys]


def test_a_sliver_is_never_lost(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="missing: pillow")
    path = tmp_path / "run.png"
    write_png(scene(Boxes([(10.0, 10, 0.01, 0.01)], "task failed")), str(path))
    assert pixel_of(path, 10, 10) == COLOURS["failed"][0]


def test_without_pillow_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(OvernightError) as refusal:
        write_png(scene(), str(tmp_path / "run.png"))
    assert refusal.value.what == "a PNG needs Pillow, which is not installed"
    assert "pip install 'overnight[pictures]'" in refusal.value.do
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="missing: pillow")
    with pytest.raises(OvernightError) as refusal:
        write_png(scene(), str(tmp_path / "nowhere" / "run.png"))
    assert refusal.value.what == "it cannot be written: No such file or directory"
