"""A scene as SVG: one file, no script, nothing loaded from elsewhere.

Shapes carry their style as class and what they stand for as ``data-`` attributes. Colours
follow the reader's light or dark mode. Text of tasks is made visible and escaped.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from overnight.core.summary.words import visible
from overnight.watch.palette import COLOURS, DASHED, SIZES
from overnight.watch.picture_file import MADE_BY
from overnight.watch.scene import Box, Boxes, Label, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.watch.scene import Data, Panel, Rect, Scene, Shape


def svg_text(scene: Scene) -> str:
    """The scene as one ``svg`` element."""
    size = f"{_number(scene.width)} {_number(scene.height)}"
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" data-source="{MADE_BY}" viewBox="0 0 {size}" '
        'role="img" class="run" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>{_text(scene.title)}</title>",
        f"<desc>{_text(scene.description)}</desc>",
        f"<style>{style_sheet()}</style>",
        f'<rect class="ground" width="{_number(scene.width)}" height="{_number(scene.height)}"/>',
        *(_panel(panel) for panel in scene.panels),
        "</svg>\n",
    ))


def style_sheet() -> str:
    """The rules for all styles, for light and for dark."""
    light = "".join(_rule(key, colours[0]) for key, colours in COLOURS.items())
    dark = "".join(_rule(key, colours[1]) for key, colours in COLOURS.items())
    sizes = "".join(f"text.{key}{{font-size:{size:g}px}}" for key, size in SIZES.items())
    dashes = "".join(f"line.{key}{{stroke-dasharray:4 3}}" for key in sorted(DASHED))
    return (
        f"{light}{sizes}{dashes}text.title,text.heading{{font-weight:600}}"
        f"line.barrier{{stroke-width:1.5}}@media(prefers-color-scheme:dark){{{dark}}}"
    )


def _rule(key: str, colour: str) -> str:
    return f".{key}{{fill:{colour}}}line.{key},path.{key}{{stroke:{colour}}}"


def _panel(panel: Panel) -> str:
    shapes = "\n".join(_shape(shape) for shape in panel.shapes)
    return f'<g class="panel {panel.name}">\n{shapes}\n</g>'


def _shape(shape: Shape) -> str:
    if isinstance(shape, Box):
        left, top, width, height = map(_number, shape.rect)
        return _element(
            f'rect class="{shape.style}"{_data(shape.data)} x="{left}" y="{top}" '
            f'width="{width}" height="{height}"', shape.tip,
        )
    if isinstance(shape, Boxes):
        return _boxes(shape)
    if isinstance(shape, Rule):
        (x1, y1), (x2, y2) = shape.start, shape.end
        return _element(
            f'line class="{shape.style}"{_data(shape.data)} x1="{_number(x1)}" '
            f'y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}"', shape.tip,
        )
    return _label(shape)


def _boxes(boxes: Boxes) -> str:
    """Boxes of one height are strokes of that width, which take half as many bytes."""
    heights = {rect[3] for rect in boxes.rects}
    if len(heights) > 1:
        path = "".join(map(_outline, boxes.rects))
        return f'<path class="{boxes.style}"{_data(boxes.data)} stroke-width="0" d="{path}"/>'
    height = heights.pop()
    path = "".join(
        f"M{_number(left)} {_number(top + height / 2)}h{_number(width)}"
        for left, top, width, _ in boxes.rects
    )
    return (
        f'<path class="{boxes.style}"{_data(boxes.data)} '
        f'style="fill:none;stroke-width:{height:.2f}" d="{path}"/>'
    )


def _label(label: Label) -> str:
    x, y = map(_number, label.at)
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    return f'<text class="{label.style}" x="{x}" y="{y}"{anchor}>{_text(label.text)}</text>'


def _element(start: str, tip: str) -> str:
    if not tip:
        return f"<{start}/>"
    lines = "\n".join(_text(line) for line in tip.split("\n"))
    return f"<{start}><title>{lines}</title></{start.partition(' ')[0]}>"


def _outline(rect: Rect) -> str:
    left, top, width, height = map(_number, rect)
    return f"M{left} {top}h{width}v{height}h-{width}z"


def _data(data: Data) -> str:
    return "".join(f" data-{name}={quoteattr(visible(str(value)))}" for name, value in data.items())


def _text(text: str) -> str:
    return escape(visible(text))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


