"""Where time, energy and area go: stacked by component, start against recommended designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dse.report import display
from dse.report.data import Facts
from dse.report.designs import Design
from dse.report.explain import area_by_component
from dse.report.figures.style import MUTED, colour_of, component_colours, new_figure, text_on
from dse.report.layers import component_sum, time_by_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A part smaller than this share of the tallest bar gets no number.
NUMBERED_SHARE = 0.08

Parts = Mapping[str, float]


def draw(facts: Facts) -> Figure | None:
    """``None`` where nothing was simulated."""
    if not any(d.trial.metrics for d in facts.compared):
        return None
    figure = new_figure(4.4)
    whole = ((title, key, _stacks(facts, parts_of)) for title, key, parts_of in PANELS)
    # Microcontrollers have no area of their own: nothing to draw.
    drawn = [panel for panel in whole if any(sum(stack.values()) for stack in panel[2])]
    panels = figure.subplots(1, len(drawn), squeeze=False)[0]
    names: set[str] = set()
    for axes, (title, key, stacks) in zip(panels, drawn, strict=True):
        _panel(axes, facts, (title, key), stacks)
        names |= {name for stack in stacks for name, part in stack.items() if part > 0}
    roles = [f"{d.label}: {', '.join(r.name for r in d.roles)}" for d in facts.designs]
    figure.supxlabel("   ·   ".join(roles), fontsize=8.5, color=MUTED)
    _legend(figure, facts, names)
    return figure


def _stacks(facts: Facts, parts_of: Callable[[Facts, Design], Parts]) -> list[Parts]:
    return [parts_of(facts, design) for design in facts.compared]


def _time(facts: Facts, design: Design) -> Parts:
    return time_by_bound(facts.study.config, design.trial)


def _energy(facts: Facts, design: Design) -> Parts:
    return component_sum(facts.study.config, design.trial, "energy_pj")


def _area(facts: Facts, design: Design) -> Parts:
    return area_by_component(facts.evidence.architectures[design.trial.number])


PANELS: tuple[tuple[str, str, Callable[[Facts, Design], Parts]], ...] = (
    ("Time by limiting component", "latency_ps", _time),
    ("Energy by component", "energy_pj", _energy),
    ("Area by component", "area_mm2", _area),
)


def _panel(axes: Axes, facts: Facts, what: tuple[str, str], stacks: Sequence[Parts]) -> None:
    title, key = what
    colours = component_colours(facts.base)
    tallest = max(sum(stack.values()) for stack in stacks)
    scale = display.axis_scale(key, [tallest])
    for x, stack in enumerate(stacks):
        _stack(axes, x, _ordered(stack, colours), (tallest, scale.divisor, colours))
        axes.text(
            x,
            (sum(stack.values()) + 0.015 * tallest) / scale.divisor,
            display.short(sum(stack.values()) / scale.divisor),
            ha="center",
            va="bottom",
            fontsize=8.5,
            fontweight="bold",
        )
    axes.set_xticks(range(len(stacks)), [d.label for d in facts.compared])
    axes.set_ylabel(scale.label)
    axes.set_ylim(0, 1.1 * tallest / scale.divisor)
    axes.set_title(title)
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)


def _ordered(stack: Parts, colours: Mapping[str, str]) -> list[tuple[str, float]]:
    """In the architecture's order, so that stacks compare; what is no component on top."""
    order = {name: i for i, name in enumerate(colours)}
    return sorted(stack.items(), key=lambda part: (order.get(part[0], len(order)), part[0]))


def _stack(
    axes: Axes,
    x: int,
    parts: Sequence[tuple[str, float]],
    context: tuple[float, float, dict[str, str]],
) -> None:
    tallest, divisor, colours = context
    bottom = 0.0
    for name, part in parts:
        axes.bar(
            x,
            part / divisor,
            0.62,
            bottom=bottom / divisor,
            color=colour_of(colours, name),
            edgecolor="white",
            lw=0.6,
        )
        if part >= NUMBERED_SHARE * tallest:
            axes.text(
                x,
                (bottom + part / 2) / divisor,
                display.short(part / divisor),
                ha="center",
                va="center",
                fontsize=7.5,
                color=text_on(colour_of(colours, name)),
            )
        bottom += part


def _legend(figure: Figure, facts: Facts, names: set[str]) -> None:
    from matplotlib.patches import Patch

    colours = component_colours(facts.base)
    known = [name for name in colours if name in names]
    handles = [
        Patch(facecolor=colour_of(colours, n), label=n)
        for n in [*known, *sorted(names - set(known))]
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=8, labelcolor=MUTED)
