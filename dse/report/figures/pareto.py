"""The Pareto front: every pair of objectives, a further objective as colour."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dse.pareto import non_dominated
from dse.report import display
from dse.report.data import Facts
from dse.report.designs import Design, anchor
from dse.report.figures.labels import PointLabel, place_labels
from dse.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    VERMILLION,
    colour_bar,
    colour_scale,
    is_wide,
    log_axis,
    new_figure,
)
from dse.trial import Trial, TrialState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

MOST_PANELS = 6

#: A limit beyond this multiple of the largest feasible value is not drawn.
NEAR_LIMIT = 1.5

#: From so many trials on, points that are not on the front are drawn smaller.
MANY = 400
COLOUR_MAP = "viridis"


def draw(facts: Facts) -> Figure | None:
    """``None`` without any trial that has objectives, or with a single objective."""
    shown = _shown(facts)
    if len(facts.keys) < 2 or not shown:
        return None
    pairs = list(itertools.combinations(facts.keys, 2))[:MOST_PANELS]
    figure, cells = _grid(facts, len(pairs))
    projections = [_projection(pair, shown) for pair in pairs]
    for axes, projection in zip(cells, projections, strict=False):
        _panel(axes, facts, projection, shown)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes, projection in zip(cells, projections, strict=False):
        named = [d for d in facts.compared if d.trial in shown]
        labels = [PointLabel(*projection.points([d.trial])[0], _name(d)) for d in named]
        place_labels(axes, labels, projection.points([*facts.front, *(d.trial for d in named)]))
    return figure


def _shown(facts: Facts) -> list[Trial]:
    """What sets the limits of the panels: what can be built, else whatever has objectives."""
    everything = (facts.study.start, *facts.study.trials)
    known = [t for t in everything if all(key in t.objectives for key in facts.keys)]
    return [t for t in known if t.feasible or t is facts.study.start] if facts.front else known


def _grid(facts: Facts, panels: int) -> tuple[Figure, Sequence[Axes]]:
    """One wide panel, or two columns; the legend stands in a free cell if there is one."""
    columns = min(panels, 2)
    rows = -(-panels // columns)
    figure = new_figure(5.2 if panels == 1 else 4.1 * rows)
    cells = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in cells[panels:]:
        axes.axis("off")
        _legend(axes, facts, loc="center left", ncols=1, labelspacing=0.9)
    if len(cells) == panels:
        _legend(figure, facts, loc="outside lower center", ncols=4)
    return figure, cells


def _projection(keys: tuple[str, str], shown: Sequence[Trial]) -> _Projection:
    x, y = (display.axis_scale(key, [t.objectives[key] for t in shown]) for key in keys)
    return _Projection(keys, (x, y))


@dataclass(frozen=True, slots=True)
class _Projection:
    """Two objectives as the axes of a panel."""

    keys: tuple[str, str]
    scales: tuple[display.AxisScale, display.AxisScale]

    def xy(self, trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
        x, y = (
            scale.apply(t.objectives[key] for t in trials)
            for key, scale in zip(self.keys, self.scales, strict=True)
        )
        return x, y

    def points(self, trials: Sequence[Trial]) -> list[tuple[float, float]]:
        return list(zip(*self.xy(trials), strict=True))


def _panel(axes: Axes, facts: Facts, projection: _Projection, shown: Sequence[Trial]) -> None:
    _set_axes(axes, facts, projection, shown)
    front = {t.number for t in facts.front}
    beaten = [t for t in facts.study.feasible if t.number not in front]
    size = 13 if len(facts.study.trials) < MANY else 5
    axes.scatter(*projection.xy(_infeasible(facts)), s=size, **INFEASIBLE_STYLE)
    axes.scatter(*projection.xy(beaten), s=size, **BEATEN_STYLE)
    _draw_front(axes, facts, projection)
    axes.scatter(*projection.xy([t for t in shown if t is facts.study.start]), **START_STYLE)
    _draw_limits(axes, facts, projection)


def _infeasible(facts: Facts) -> list[Trial]:
    return [
        t
        for t in facts.study.trials
        if t.state is TrialState.INFEASIBLE and all(key in t.objectives for key in facts.keys)
    ]


def _set_axes(axes: Axes, facts: Facts, projection: _Projection, shown: Sequence[Trial]) -> None:
    """The panel shows what can be built and the limits near it, not far infeasible points."""
    columns = projection.xy(shown)
    for which, key, scale, numbers in zip(
        "xy", projection.keys, projection.scales, columns, strict=True
    ):
        numbers += [limit / scale.divisor for limit in _near_limits(facts, key)]
        low, high = min(numbers), max(numbers)
        if is_wide(numbers):
            log_axis(axes, which, numbers)
            pad = (high / low) ** 0.07
            limits = (low / pad, high * pad)
        else:
            pad = 0.07 * (high - low) or 0.07 * high
            limits = (low - pad, high + pad)
        getattr(axes, f"set_{which}lim")(*limits)
        getattr(axes, f"set_{which}label")(scale.label)


def _draw_front(axes: Axes, facts: Facts, projection: _Projection) -> None:
    """The front, each point a link to its row in the page's table."""
    if not facts.front:
        return
    edge = projection.points(non_dominated(facts.front, projection.keys))
    axes.plot(*zip(*sorted(edge), strict=True), drawstyle="steps-post", color=BLUE, lw=0.9)
    axes.scatter(*projection.xy([d.trial for d in facts.designs]), **RING_STYLE)
    third = next((k for k in facts.keys if k not in projection.keys), None)
    points = axes.scatter(*projection.xy(facts.front), **FRONT_STYLE)
    points.set_urls([f"#{anchor(t)}" for t in facts.front])
    if third is None:
        points.set_facecolor(BLUE)
    else:
        _colour_by(axes, points, [t.objectives[third] for t in facts.front], third)


def _colour_by(axes: Axes, points: PathCollection, numbers: Sequence[float], key: str) -> None:
    scale = display.axis_scale(key, numbers)
    shades = scale.apply(numbers)
    points.set(array=shades, cmap=COLOUR_MAP, norm=colour_scale(shades))
    colour_bar(points, axes, scale.label, shades)


def _near_limits(facts: Facts, key: str) -> list[float]:
    """Constraint limits that are not far from the feasible designs."""
    highest = max((t.objectives[key] for t in facts.study.feasible), default=math.inf)
    return [
        c.limit
        for c in facts.study.config.constraints
        if c.quantity.key == key and c.limit <= NEAR_LIMIT * highest
    ]


def _draw_limits(axes: Axes, facts: Facts, projection: _Projection) -> None:
    draw_line = (axes.axvline, axes.axhline)
    for line, key, scale in zip(draw_line, projection.keys, projection.scales, strict=True):
        for limit in _near_limits(facts, key):
            line(limit / scale.divisor, color=VERMILLION, lw=1.0, ls=(0, (5, 3)))


def _name(design: Design) -> str:
    """``#18 compromise``; the start is only called so."""
    roles = ", ".join(role.name for role in design.roles)
    return f"{design.label} {roles}" if roles else design.label


def _legend(target: Axes | Figure, facts: Facts, **options: Any) -> None:
    from matplotlib.lines import Line2D

    entries = [
        ("start design", {"marker": "D", "color": INK, "ms": 6, "ls": ""}),
        ("recommended", {**_HANDLE, "mfc": "none", "mec": VERMILLION, "mew": 1.6, "ms": 10}),
        ("Pareto design", {**_HANDLE, "color": BLUE, "ms": 6}),
        ("front of these two objectives", {"color": BLUE, "lw": 0.9}),
        ("feasible, but beaten", {**_HANDLE, "color": FAINT, "ms": 4}),
        ("infeasible", {"marker": "x", "color": FAINT, "ms": 5, "ls": ""}),
    ]
    if any(_near_limits(facts, key) for key in facts.keys):
        entries.append(("constraint", {"color": VERMILLION, "lw": 1.0, "ls": (0, (5, 3))}))
    handles = [Line2D([], [], label=label, **style) for label, style in entries]
    target.legend(handles=handles, **options)


_HANDLE: dict[str, Any] = {"marker": "o", "ls": ""}
FRONT_STYLE: dict[str, Any] = {"s": 34, "lw": 0.5, "edgecolors": "white", "zorder": 4}
RING_STYLE: dict[str, Any] = {
    "s": 110,
    "facecolors": "none",
    "edgecolors": VERMILLION,
    "lw": 1.6,
    "zorder": 5,
}
START_STYLE: dict[str, Any] = {"marker": "D", "s": 40, "color": INK, "zorder": 5}
BEATEN_STYLE: dict[str, Any] = {"color": FAINT, "lw": 0}
INFEASIBLE_STYLE: dict[str, Any] = {"marker": "x", "lw": 0.8, "color": FAINT}
