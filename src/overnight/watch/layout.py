"""The measures of the picture, in pixels."""

from __future__ import annotations

WIDTH = 1200.0
LEFT, RIGHT = 108.0, WIDTH - 24.0
"""Where time begins and ends in every panel."""

HEAD_HEIGHT = 76.0
HEADING_HEIGHT = 34.0
AXIS_HEIGHT = 22.0
CHART_HEIGHT = 92.0
LANE_HEIGHT_LIMIT = 20.0
LANES_HEIGHT_LIMIT = 480.0


class Stack:
    """Panels from the top of the page down."""

    def __init__(self) -> None:
        self.height = 0.0

    def take(self, height: float) -> float:
        """Give out so much of the page; its top."""
        top = self.height
        self.height += height
        return top
