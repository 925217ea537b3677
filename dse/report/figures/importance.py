"""Parameter importance per objective, coloured by what more of the parameter does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dse.report import display
from dse.report.data import Facts
from dse.report.figures.style import BLUE, MUTED, NO_COMPONENT, ORANGE, new_figure
from dse.report.importance import RELIABLE_R2, Importance, ParameterImportance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A rank correlation weaker than this is called no clear direction.
CLEAR_DIRECTION = 0.2
MOST_PARAMETERS = 12


def draw(facts: Facts) -> Figure | None:
    """``None`` where there were too few trials to learn from."""
    if not facts.importance:
        return None
    order = _order(facts.importance)
    figure = new_figure(1.35 + 0.3 * len(order))
    panels = figure.subplots(1, len(facts.importance), sharey=True, squeeze=False)[0]
    for axes, result in zip(panels, facts.importance, strict=True):
        _panel(axes, result, order)
    _legend(figure)
    return figure


def _order(results: tuple[Importance, ...]) -> list[str]:
    """Parameters by their importance summed over the objectives, the greatest first."""
    sums: dict[str, float] = {}
    for result in results:
        whole = sum(p.drop for p in result.parameters) or 1.0
        for p in result.parameters:
            sums[p.path] = sums.get(p.path, 0.0) + p.drop / whole
    return sorted(sums, key=lambda path: -sums[path])[:MOST_PARAMETERS]


def _panel(axes: Axes, result: Importance, order: list[str]) -> None:
    by_path = {p.path: p for p in result.parameters}
    whole = sum(p.drop for p in result.parameters) or 1.0
    shown = [by_path[path] for path in order]
    axes.barh(
        range(len(shown)),
        [100 * p.drop / whole for p in shown],
        xerr=[100 * p.deviation / whole for p in shown],
        color=[_colour(p) for p in shown],
        error_kw={"elinewidth": 0.8, "capsize": 2, "ecolor": MUTED},
        height=0.62,
        alpha=1.0 if result.r2 >= RELIABLE_R2 else 0.35,
    )
    axes.set_yticks(range(len(shown)), [p.path for p in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("share of importance (%)")
    axes.set_title(f"{display.title(result.key)} (held-out R² {result.r2:.2f})")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _colour(parameter: ParameterImportance) -> str:
    direction = parameter.direction
    if direction is None or abs(direction) < CLEAR_DIRECTION:
        return NO_COMPONENT
    return ORANGE if direction > 0 else BLUE


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    entries = (
        (BLUE, "a larger value lowers the objective"),
        (ORANGE, "a larger value raises it"),
        (NO_COMPONENT, "no order or no clear direction"),
    )
    handles = [Patch(color=colour, label=label) for colour, label in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
