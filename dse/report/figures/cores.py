"""Several cores over time: which unit runs where, and who has the memory that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dse.report import display
from dse.report.figures.style import BLUE, FAINT, GREEN, ORANGE, PURPLE, SKY, new_figure
from sim.timeline import Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Units in their order take these colours in turn.
COLOURS = (BLUE, ORANGE, GREEN, SKY, PURPLE)
#: What a label stands on.
BOX: Any = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
#: A letter in a bar takes this share of the width.
LETTER_SHARE = 0.0075
#: Lines between tiles that would be closer than this share of the width are left out.
LEAST_TILE_SHARE = 0.004


def tracks_of(slices: Sequence[Slice]) -> list[str]:
    """The cores on which units ran; one track, not named after a core, without several."""
    return sorted({s.track for s in slices if s.group == "operators"})


def draw_cores(slices: Sequence[Slice]) -> Figure:
    """A row for each core with its units and their tiles, and one for the shared port."""
    units = [s for s in slices if s.group == "operators"]
    ports = sorted({s.track for s in slices if s.group == "ports"})
    cores = tracks_of(slices)
    rows = [*cores, *ports]
    end = max(s.start_ps + s.duration_ps for s in slices)
    scale = display.axis_scale("latency_ps", [end])
    figure = new_figure(1.2 + 0.5 * len(rows))
    axes = figure.subplots()
    numbers = {unit.name: number for number, unit in enumerate(units)}
    for unit in units:
        number = numbers[unit.name]
        _bar(axes, cores.index(unit.track), unit, number, scale.divisor)
        _label(axes, cores.index(unit.track), unit, number, (scale.divisor, end))
    for piece in slices:
        if piece.group == "ports":
            _bar(axes, rows.index(piece.track), piece, numbers[piece.name], scale.divisor)
        elif piece.group == "processes" and piece.duration_ps >= LEAST_TILE_SHARE * end:
            row = cores.index(piece.track.removeprefix("tiles of "))
            start = piece.start_ps / scale.divisor
            axes.vlines(start, row - 0.36, row + 0.36, color="white", lw=0.7)
    axes.set_yticks(range(len(rows)), [*cores, *(f"{port} (shared)" for port in ports)])
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, end / scale.divisor))
    axes.set_xlabel(scale.label.replace("Latency", "time"))
    axes.set_title("Which unit runs on which core, tile by tile, and uses the shared memory")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.axhline(len(cores) - 0.5, color=FAINT, lw=0.8)
    return figure


def _bar(axes: Axes, row: int, piece: Slice, number: int, divisor: float) -> None:
    start, width = piece.start_ps / divisor, piece.duration_ps / divisor
    alpha = 0.85 if piece.group == "operators" else 1.0
    axes.barh(row, width, 0.72, left=start, color=COLOURS[number % len(COLOURS)], alpha=alpha)


def _label(axes: Axes, row: int, unit: Slice, number: int, scale: tuple[float, int]) -> None:
    """The unit's number, and of its operators as many as its bar has room for."""
    divisor, end = scale
    first, _, more = unit.name.partition(" + ")
    candidates = (unit.name, f"{first} ..." if more else first, "")
    room = unit.duration_ps / end / LETTER_SHARE
    texts = (f"{number + 1} {name}".strip() for name in candidates)
    text = next((text for text in texts if len(text) <= room), None)
    if text is None:
        return
    middle = (unit.start_ps + unit.duration_ps / 2) / divisor
    axes.annotate(text, (middle, row), ha="center", va="center", fontsize=7, bbox=BOX)
