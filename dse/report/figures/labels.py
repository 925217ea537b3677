"""Text labels beside points, placed so that they cover neither points nor each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dse.report.figures.style import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

#: Candidate places around a point: distance in points, then direction in degrees.
DISTANCES = (14.0, 26.0, 42.0, 62.0)
DIRECTIONS = (45, 135, -45, -135, 0, 180, 90, -90, 20, 160, -20, -160)


@dataclass(frozen=True, slots=True)
class PointLabel:
    """A text for the point (x, y) in data coordinates."""

    x: float
    y: float
    text: str


def place_labels(
    axes: Axes, labels: Sequence[PointLabel], obstacles: Sequence[tuple[float, float]]
) -> None:
    """Draws each label at the first place with the least overlap, with a thin line to its point.

    Call it when the layout is final: places are chosen in pixels.
    """
    points = [tuple(axes.transData.transform(p)) for p in obstacles]
    taken: list[Bbox] = []
    for wanted in labels:
        taken.append(_place(axes, wanted, points, taken))


def _place(
    axes: Axes, wanted: PointLabel, points: Sequence[tuple[float, ...]], taken: Sequence[Bbox]
) -> Bbox:
    best = min(
        ((d, a) for d in DISTANCES for a in DIRECTIONS),
        key=lambda place: (
            _badness(axes, _box(axes, wanted, *place), points, taken) + place[0] / 1000
        ),
    )
    _annotate(axes, wanted, *best)
    return _box(axes, wanted, *best)


def _annotate(axes: Axes, wanted: PointLabel, distance: float, degrees: int) -> None:
    dx, dy = _offset(distance, degrees)
    axes.annotate(
        wanted.text,
        (wanted.x, wanted.y),
        xytext=(dx, dy),
        textcoords="offset points",
        ha=_alignment(dx),
        va="center",
        fontsize=8.5,
        color=INK,
        arrowprops={"arrowstyle": "-", "color": MUTED, "lw": 0.7, "shrinkA": 0, "shrinkB": 5},
        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.6},
        zorder=6,
    )


def _offset(distance: float, degrees: int) -> tuple[float, float]:
    radians = math.radians(degrees)
    return distance * math.cos(radians), distance * math.sin(radians)


def _alignment(dx: float) -> str:
    if abs(dx) < 1:
        return "center"
    return "left" if dx > 0 else "right"


def _box(axes: Axes, wanted: PointLabel, distance: float, degrees: int) -> Bbox:
    """Where the text would stand, in pixels; its size is estimated from its length."""
    from matplotlib.transforms import Bbox

    pixel = axes.figure.dpi / 72
    dx, dy = _offset(distance, degrees)
    x, y = axes.transData.transform((wanted.x, wanted.y))
    width, height = 5.4 * len(wanted.text) * pixel, 13 * pixel
    left = {"center": -width / 2, "left": 0.0, "right": -width}[_alignment(dx)]
    return Bbox.from_bounds(x + dx * pixel + left, y + dy * pixel - height / 2, width, height)


def _badness(
    axes: Axes, box: Bbox, points: Sequence[tuple[float, ...]], taken: Sequence[Bbox]
) -> float:
    frame = axes.get_window_extent()
    outside = not (frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1))
    covered = sum(box.contains(*point) for point in points)
    crossed = sum(box.overlaps(other) for other in taken)
    return 50.0 * outside + covered + 20.0 * crossed
