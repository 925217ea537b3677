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


#: The radius of the ring around a named point, with some air, in pixels.
RING_PIXELS = 12.0

Pixel = tuple[float, float]
Leader = tuple[Pixel, Pixel]


@dataclass(frozen=True, slots=True)
class PointLabel:
    """A text for the point (x, y) in data coordinates."""

    x: float
    y: float
    text: str


@dataclass(slots=True)
class _Scene:
    """What a further label should keep clear of, in pixels."""

    axes: Axes
    points: Sequence[Pixel]
    named: Sequence[Pixel]
    boxes: list[Bbox]
    leaders: list[Leader]


def place_labels(
    axes: Axes, labels: Sequence[PointLabel], obstacles: Sequence[tuple[float, float]]
) -> None:
    """Draws each label at the first place with the least overlap, with a thin line to its point.

    Call it when the layout is final: places are chosen in pixels.
    """
    pixels = [_pixel(axes, *point) for point in obstacles]
    named = [_pixel(axes, label.x, label.y) for label in labels]
    scene = _Scene(axes=axes, points=pixels, named=named, boxes=[], leaders=[])
    for wanted in labels:
        places = ((distance, degrees) for distance in DISTANCES for degrees in DIRECTIONS)
        best = min(places, key=lambda place: _badness(scene, wanted, *place))
        _annotate(axes, wanted, *best)
        scene.boxes.append(_box(axes, wanted, *best))
        scene.leaders.append(_leader(axes, wanted, *best))


def _pixel(axes: Axes, x: float, y: float) -> Pixel:
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


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


def _leader(axes: Axes, wanted: PointLabel, distance: float, degrees: int) -> Leader:
    """The line from a point to its label."""
    dx, dy = _offset(distance * axes.figure.dpi / 72, degrees)
    x, y = _pixel(axes, wanted.x, wanted.y)
    return (x, y), (x + dx, y + dy)


def _badness(scene: _Scene, wanted: PointLabel, distance: float, degrees: int) -> float:
    """Covering another label is worst, then leaving the panel, crossing lines, hiding points."""
    box = _box(scene.axes, wanted, distance, degrees)
    leader = _leader(scene.axes, wanted, distance, degrees)
    frame = scene.axes.get_window_extent()
    inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
    through = sum(_enters(leader, other) for other in scene.boxes)
    own = _pixel(scene.axes, wanted.x, wanted.y)
    near = [point for point in scene.named if math.dist(point, own) > RING_PIXELS]
    astray = sum(_passes(leader, point) or _touches(box, point) for point in near)
    struck = sum(_enters(other, box) or _cross(other, leader) for other in scene.leaders)
    return (
        1000.0 * sum(box.overlaps(other) for other in scene.boxes)
        + 500.0 * (not inside)
        + 100.0 * (through + struck + astray)
        + 10.0 * sum(box.contains(*point) for point in scene.points)
        + distance / 10
    )


def _passes(leader: Leader, point: Pixel) -> bool:
    """Whether the line runs through the ring around a point."""
    return any(math.dist(step, point) < RING_PIXELS for step in _steps(leader))


def _touches(box: Bbox, point: Pixel) -> bool:
    """Whether the text stands at the ring around a point, as if it belonged there."""
    return box.padded(RING_PIXELS).contains(*point)


def _steps(leader: Leader) -> list[Pixel]:
    (x0, y0), (x1, y1) = leader
    return [(x0 + (x1 - x0) * part / 8, y0 + (y1 - y0) * part / 8) for part in range(1, 9)]


def _enters(leader: Leader, box: Bbox) -> bool:
    return any(box.contains(*step) for step in _steps(leader))


def _cross(first: Leader, second: Leader) -> bool:
    (a, b), (c, d) = first, second
    return _left(a, b, c) != _left(a, b, d) and _left(c, d, a) != _left(c, d, b)


def _left(a: Pixel, b: Pixel, c: Pixel) -> bool:
    """Whether c lies to the left of the line from a to b."""
    return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])
