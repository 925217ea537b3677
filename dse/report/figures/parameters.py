"""Pareto designs in parallel coordinates: what distinguishes a fast design from a small one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dse.report import display
from dse.report.data import Facts
from dse.report.figures.style import (
    INK,
    MUTED,
    VERMILLION,
    colour_bar,
    colour_scale,
    is_wide,
    new_figure,
)
from dse.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_AXES = 12
MOST_TICKS = 9
COLOUR_MAP = "viridis"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coordinate:
    """One vertical axis: its title, tick positions (0..1) with labels, the trials' positions."""

    title: str
    ticks: tuple[tuple[float, str], ...]
    positions: dict[int, float]


def draw(facts: Facts) -> Figure | None:
    """``None`` for fewer than two Pareto designs inside the space."""
    inside = [t for t in facts.front if t.overrides]
    if len(inside) < 2:
        return None
    coordinates = [*_parameters(facts, inside), *_objectives(facts, inside)]
    figure = new_figure(4.6)
    axes = figure.subplots()
    _draw_axes(axes, coordinates)
    _draw_lines(axes, facts, coordinates, inside)
    return figure


def _parameters(facts: Facts, trials: Sequence[Trial]) -> list[_Coordinate]:
    """The parameters that matter most and differ among the designs."""
    rank = {p.path: p.drop for i in reversed(facts.importance) for p in i.parameters}
    room = MOST_AXES - len(facts.keys)
    chosen = sorted(
        (p for p in facts.study.space.parameters if len(p.values) > 1),
        key=lambda p: -rank.get(p.path, 0.0),
    )[:room]
    return [
        _Coordinate(
            title=_two_lines(p.path),
            ticks=_thinned([(i / (len(p.values) - 1), _short(v)) for i, v in enumerate(p.values)]),
            positions={
                t.number: p.values.index(t.overrides[p.path]) / (len(p.values) - 1) for t in trials
            },
        )
        for p in facts.study.space.parameters
        if p in chosen
    ]


def _two_lines(path: str) -> str:
    component, dot, name = path.partition(".")
    return f"{component}\n{name.replace('_', ' ')}" if dot else f"{component}\n"


def _short(setting: object) -> str:
    """Long words of unordered parameters in two lines."""
    return display.parameter(setting).replace("_", "\n")


def _thinned(ticks: list[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    step = -(-len(ticks) // MOST_TICKS)
    return tuple(ticks[::step])


def _objectives(facts: Facts, trials: Sequence[Trial]) -> list[_Coordinate]:
    return [_objective(key, trials) for key in facts.keys]


def _objective(key: str, trials: Sequence[Trial]) -> _Coordinate:
    numbers = [t.objectives[key] for t in trials]
    curve = math.log if is_wide(numbers) else float
    low, high = min(numbers), max(numbers)
    span = curve(high) - curve(low) or 1.0
    return _Coordinate(
        title=f"{display.title(key)}\n",
        ticks=((0.0, display.value(key, low)), (1.0, display.value(key, high))),
        positions={t.number: (curve(t.objectives[key]) - curve(low)) / span for t in trials},
    )


def _draw_axes(axes: Axes, coordinates: Sequence[_Coordinate]) -> None:
    for x, coordinate in enumerate(coordinates):
        axes.axvline(x, color=MUTED, lw=0.8, zorder=1)
        for y, text in coordinate.ticks:
            axes.plot([x - 0.015, x], [y, y], color=MUTED, lw=0.8)
            axes.text(
                x - 0.03,
                y,
                text,
                ha="right",
                va="center",
                fontsize=7.5,
                color=INK,
                zorder=6,
                linespacing=1.15,
                bbox={"fc": "white", "ec": "none", "alpha": 0.9, "pad": 0.8},
            )
    axes.set_xticks(range(len(coordinates)), [c.title for c in coordinates])
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0, pad=8)
    axes.set(yticks=[], ylim=(-0.05, 1.05), xlim=(-0.55, len(coordinates) - 1 + 0.45))
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_lines(
    axes: Axes,
    facts: Facts,
    coordinates: Sequence[_Coordinate],
    trials: Sequence[Trial],
) -> None:
    from matplotlib.cm import ScalarMappable

    key = facts.keys[0]
    scale = display.axis_scale(key, [t.objectives[key] for t in trials])
    shades = scale.apply(t.objectives[key] for t in trials)
    mapped = ScalarMappable(colour_scale(shades), COLOUR_MAP)
    for trial, colour in zip(trials, mapped.to_rgba(np.array(shades)), strict=True):
        heights = [c.positions[trial.number] for c in coordinates]
        axes.plot(heights, color=colour, lw=1.2, alpha=0.75, zorder=2)
    colour_bar(mapped, axes, scale.label, shades)
    _draw_chosen(axes, facts, coordinates)


def _draw_chosen(axes: Axes, facts: Facts, coordinates: Sequence[_Coordinate]) -> None:
    chosen = facts.chosen
    if chosen is None or not chosen.overrides:
        return
    heights = [c.positions[chosen.number] for c in coordinates]
    axes.plot(heights, color="white", lw=4.5, zorder=3)
    axes.plot(heights, color=VERMILLION, lw=2.2, marker="o", ms=4, zorder=3)
    axes.text(
        len(heights) - 1 + 0.05,
        heights[-1],
        facts.chosen_name,
        color=INK,
        va="center",
        fontweight="bold",
        zorder=5,
    )
