"""The chosen design against the starting one, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dse.report import display
from dse.report.data import Facts
from dse.report.figures.style import (
    INK,
    MUTED,
    colour_of,
    component_colours,
    new_figure,
)
from dse.report.layers import LayerPair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LAYERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One pair of bars; a row that sums several layers has no bound."""

    name: str
    start_ps: float
    chosen_ps: float
    start_bound: str
    chosen_bound: str


def draw(facts: Facts) -> Figure | None:
    """``None`` where there is no other design, or nothing was simulated."""
    if not facts.pairs or facts.chosen is facts.study.start:
        return None
    rows = layer_rows(facts.pairs)
    figure = new_figure(1.1 + 0.29 * len(rows))
    axes = figure.subplots()
    _bars(axes, facts, rows)
    _legend(figure, facts, rows)
    return figure


def layer_rows(pairs: Sequence[LayerPair]) -> list[_Row]:
    """The longest layers in execution order, then the sum of the rest."""
    ranked = sorted(pairs, key=lambda p: -max(p.start.latency_ps, p.chosen.latency_ps))
    most = MOST_LAYERS if len(ranked) > MOST_LAYERS + 1 else len(ranked)
    shown, rest = ranked[:most], ranked[most:]
    rows = [_row(p) for p in pairs if any(p is s for s in shown)]
    if rest:
        rows.append(
            _Row(
                name=f"{len(rest)} other layers",
                start_ps=sum(p.start.latency_ps for p in rest),
                chosen_ps=sum(p.chosen.latency_ps for p in rest),
                start_bound="",
                chosen_bound="",
            )
        )
    return rows


def _row(pair: LayerPair) -> _Row:
    return _Row(
        name=pair.name,
        start_ps=pair.start.latency_ps,
        chosen_ps=pair.chosen.latency_ps,
        start_bound=pair.start.bound_by,
        chosen_bound=pair.chosen.bound_by,
    )


def _bars(axes: Axes, facts: Facts, rows: Sequence[_Row]) -> None:
    colours = component_colours(facts.base)
    scale = display.axis_scale("latency_ps", [max(r.start_ps, r.chosen_ps) for r in rows])
    for y, row in enumerate(rows):
        start, chosen = row.start_ps / scale.divisor, row.chosen_ps / scale.divisor
        pale: dict[str, Any] = {"alpha": 0.45, "hatch": "////", "edgecolor": "white", "lw": 0}
        axes.barh(y - 0.2, start, 0.36, color=colour_of(colours, row.start_bound), **pale)
        axes.barh(y + 0.2, chosen, 0.36, color=colour_of(colours, row.chosen_bound), lw=0)
        axes.annotate(
            display.change("latency_ps", row.start_ps, row.chosen_ps).replace(display.EQUAL, ""),
            (max(start, chosen), y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=MUTED,
        )
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel(scale.label)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _legend(figure: Figure, facts: Facts, rows: Sequence[_Row]) -> None:
    from matplotlib.patches import Patch

    colours = component_colours(facts.base)
    used = {row.start_bound for row in rows} | {row.chosen_bound for row in rows}
    known = [name for name in colours if name in used]
    names = [*known, *sorted(used - set(known) - {""})]
    handles = [
        Patch(facecolor="white", hatch="////", edgecolor=INK, label="start"),
        Patch(facecolor="white", edgecolor=INK, label=facts.chosen_name),
        *(Patch(facecolor=colour_of(colours, n), label=f"limited by {n}") for n in names),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=6)
