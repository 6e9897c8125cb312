"""A scene as PNG, at twice its size. Needs Pillow, which is an extra: ``overnight[pictures]``."""

from __future__ import annotations

from overnight.core.summary.words import visible
from overnight.errors import OvernightError
from overnight.watch.palette import COLOURS, DASHED, SIZES, colour_key
from overnight.watch.picture_file import MADE_BY, PNG, write_picture
from overnight.watch.scene import Box, Boxes, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from overnight.watch.scene import Label, Rect, Scene, Shape

SCALE = 2
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
_DASH, _SPACE = 4.0, 3.0


def check_pillow(path: str) -> None:
    """Make sure, before anything is written, that a PNG can be drawn.

    Args:
        path: Where it is wanted.

    Raises:
        OvernightError: Pillow is not installed.
    """
    try:
        import PIL.ImageDraw  # noqa: F401  # only whether it can be
    except ImportError as error:
        raise OvernightError(
            "a PNG needs Pillow, which is not installed", where=path, kept="no file was written",
            do="pip install 'overnight[pictures]', or take --svg or --html, which need nothing",
        ) from error


def write_png(scene: Scene, path: str) -> None:
    """Write the scene, on light ground.

    Raises:
        OvernightError: Pillow is not installed, something else lies there, or the file cannot
            be written.
    """
    check_pillow(path)
    write_picture(path, PNG, _png(scene))


def _png(scene: Scene) -> bytes:
    from io import BytesIO

    from PIL import Image, ImageDraw, PngImagePlugin

    size = round(scene.width * SCALE), round(scene.height * SCALE)
    image = Image.new("RGB", size, COLOURS["ground"][0])
    canvas = _Canvas(ImageDraw.Draw(image))
    for panel in scene.panels:
        for shape in panel.shapes:
            canvas.draw(shape)
    mark = PngImagePlugin.PngInfo()
    mark.add_text("Software", MADE_BY)
    data = BytesIO()
    image.save(data, "PNG", pnginfo=mark)
    return data.getvalue()


class _Canvas:
    """Shapes onto pixels."""

    def __init__(self, pen: Any) -> None:  # PIL.ImageDraw.ImageDraw, which is an extra
        self._pen = pen
        self._fonts: dict[str, Any] = {}

    def draw(self, shape: Shape) -> None:
        colour = COLOURS[colour_key(shape.style)][0]
        if isinstance(shape, Box):
            self._fill(shape.rect, colour)
        elif isinstance(shape, Boxes):
            for rect in shape.rects:
                self._fill(rect, colour)
        elif isinstance(shape, Rule):
            self._rule(shape, colour)
        else:
            self._label(shape, colour)

    def _fill(self, rect: Rect, colour: str) -> None:
        left, top, width, height = rect
        x, y = round(left * SCALE), round(top * SCALE)
        right = max(x, round((left + width) * SCALE) - 1)  # a sliver is a pixel at least
        bottom = max(y, round((top + height) * SCALE) - 1)
        self._pen.rectangle((x, y, right, bottom), fill=colour)

    def _rule(self, rule: Rule, colour: str) -> None:
        (x1, y1), (x2, y2) = rule.start, rule.end
        key = colour_key(rule.style)
        width = 3 if key == "barrier" else SCALE
        if key not in DASHED:
            self._line(x1, y1, x2, y2, colour, width)
            return
        y = y1
        while y < y2:
            self._line(x1, y, x2, min(y + _DASH, y2), colour, width)
            y += _DASH + _SPACE

    def _line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: int) -> None:
        ends = (x1 * SCALE, y1 * SCALE, x2 * SCALE, y2 * SCALE)
        self._pen.line(ends, fill=colour, width=width)

    def _label(self, label: Label, colour: str) -> None:
        x, y = label.at
        self._pen.text(
            (x * SCALE, y * SCALE), visible(label.text), fill=colour, font=self._font(label.style),
            anchor=_ANCHORS[label.anchor],
        )

    def _font(self, style: str) -> Any:
        from PIL import ImageFont

        if style not in self._fonts:
            self._fonts[style] = ImageFont.load_default(SIZES[colour_key(style)] * SCALE)
        return self._fonts[style]
