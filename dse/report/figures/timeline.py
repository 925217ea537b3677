"""The chosen design over time: how busy each port is, and how the longest layer begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arch.spec import Architecture
from dse.report import display
from dse.report.data import Facts
from dse.report.figures.cores import draw_cores, tracks_of
from dse.report.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    MUTED,
    NO_COMPONENT,
    ORANGE,
    PURPLE,
    RC,
    SKY,
    new_figure,
    render,
)
from sim.timeline import Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 400

#: Ports that are never busier than this in any bin get no row.
IDLE = 0.01

#: The close-up shows this many tile computations of the longest layer.
CLOSE_UP_COMPUTES = 10

#: How many operators are shown where nothing is known of what happens within one.
AROUND = 24

#: Lines between more operators than this would hide the strips.
MOST_BOUNDARIES = 100

#: A layer is named above the strips if it takes at least this share of the run.
NAMED_SHARE = 0.025

#: The width of a letter of such a name, as a share of the width of the strips.
LETTER_SHARE = 0.008

#: What a process does with which operand, by the words of its name.
ROLE_COLOURS = (
    ("compute", GREEN),
    ("load input", BLUE),
    ("load weight", SKY),
    ("load output", PURPLE),
    ("store output", ORANGE),
)


def draw(facts: Facts) -> Figure | None:
    """``None`` where the chosen design was not simulated at event fidelity."""
    slices = facts.evidence.timeline
    return draw_run(slices, facts.base) if slices else None


def draw_run(slices: Sequence[Slice], architecture: Architecture) -> Figure | None:
    """One simulated run; ``None`` if nothing happened in it."""
    operators = [s for s in slices if s.group == "operators"]
    if not operators:
        return None
    if len(tracks_of(slices)) > 1:
        return draw_cores(slices)
    ports = busy_ports([s for s in slices if s.group == "ports"], operators)
    longest = max(operators, key=lambda s: s.duration_ps)
    close = _close_up([s for s in slices if s.group == "processes"], longest)
    if not close:
        return _kernels(architecture, ports, operators, longest)
    tracks = sorted({s.track for s in close}, key=_track_order)
    figure = new_figure(1.9 + 0.27 * (len(ports) + len(tracks)))
    above, below = figure.subplots(2, 1, height_ratios=(len(ports) + 1, len(tracks) + 1))
    _strips(above, architecture, ports, operators)
    _gantt(below, close, tracks, longest)
    return figure


def _kernels(
    architecture: Architecture,
    ports: dict[str, NDArray[np.float64]],
    operators: Sequence[Slice],
    longest: Slice,
) -> Figure:
    """Where nothing is known of what happens within an operator: those around the longest one."""
    middle = operators.index(longest)
    first = max(0, min(middle - AROUND // 2, len(operators) - AROUND))
    shown = operators[first : first + AROUND]
    figure = new_figure(1.9 + 0.27 * len(ports) + 0.16 * len(shown))
    above, below = figure.subplots(2, 1, height_ratios=(len(ports) + 1, 0.6 * len(shown) + 1))
    _strips(above, architecture, ports, operators)
    last = shown[-1]
    stop_ps = last.start_ps + last.duration_ps
    scale = display.axis_scale("latency_ps", [stop_ps])
    for row, piece in enumerate(shown):
        start = piece.start_ps / scale.divisor
        color = ORANGE if piece is longest else BLUE
        below.barh(row, piece.duration_ps / scale.divisor, 0.7, left=start, color=color)
    below.set_yticks(range(len(shown)), [s.name for s in shown], fontsize=7)
    below.set(
        ylim=(len(shown) - 0.4, -0.6),
        xlim=(shown[0].start_ps / scale.divisor, stop_ps / scale.divisor),
    )
    below.set_xlabel(scale.label.replace("Latency", "time"))
    below.set_title(f"Operators around {longest.name}, the longest")
    below.grid(visible=False, axis="y")
    below.tick_params(axis="y", length=0)
    return figure


def write_run(path: Path, slices: Sequence[Slice], architecture: Architecture) -> None:
    """The picture of a run as a file; its ending says of which kind."""
    import matplotlib as mpl

    with mpl.rc_context(RC):
        figure = draw_run(slices, architecture)
        if figure is None:
            raise ValueError("a run without operators")
        rendered = render("timeline", figure)
    if path.suffix == ".svg":
        path.write_text(rendered.svg, encoding="utf-8")
    else:
        path.write_bytes(rendered.png)


def busy_ports(
    slices: Sequence[Slice], operators: Sequence[Slice]
) -> dict[str, NDArray[np.float64]]:
    """The busy share of each port in each of ``BINS`` equal stretches of the run."""
    end = operators[-1].start_ps + operators[-1].duration_ps
    edges = np.linspace(0, end, BINS + 1)
    busy: dict[str, NDArray[np.float64]] = {}
    for piece in slices:
        share = busy.setdefault(piece.track, np.zeros(BINS))
        _add_overlap(share, edges, piece)
    return {port: share for port, share in busy.items() if share.max() > IDLE}


def _add_overlap(share: NDArray[np.float64], edges: NDArray[np.float64], piece: Slice) -> None:
    if not piece.duration_ps:
        return
    width = edges[1]
    stop = piece.start_ps + piece.duration_ps
    first, last = int(piece.start_ps / width), min(int(stop / width), len(share) - 1)
    inside = np.minimum(edges[first + 1 : last + 2], stop)
    inside -= np.maximum(edges[first : last + 1], piece.start_ps)
    share[first : last + 1] += inside / width * piece.busy_ps / piece.duration_ps


def _strips(
    axes: Axes,
    architecture: Architecture,
    ports: dict[str, NDArray[np.float64]],
    operators: Sequence[Slice],
) -> None:
    end = operators[-1].start_ps + operators[-1].duration_ps
    scale = display.axis_scale("latency_ps", [end])
    order = {c.name: i for i, c in enumerate(architecture.components)}
    names = sorted(ports, key=lambda port: (order.get(port.partition(".")[0], len(order)), port))
    image = axes.imshow(
        np.clip([ports[name] for name in names], 0, 1),
        aspect="auto",
        cmap="Blues",
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(0, end / scale.divisor, len(names) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(scale.label.replace("Latency", "time"))
    axes.set_title("How busy each port is over the whole run", pad=16)
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    _boundaries(axes, operators, scale.divisor)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, aspect=18)
    bar.set_label("busy")
    bar.set_ticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
    bar.outline.set_visible(False)


def _boundaries(axes: Axes, operators: Sequence[Slice], divisor: float) -> None:
    whole = operators[-1].start_ps + operators[-1].duration_ps
    free_from = 0.0
    for operator in operators:
        if len(operators) <= MOST_BOUNDARIES:
            axes.axvline(operator.start_ps / divisor, color=FAINT, lw=0.6)
        middle = operator.start_ps + operator.duration_ps / 2
        width = LETTER_SHARE * (len(operator.name) + 1) * whole
        if operator.duration_ps >= NAMED_SHARE * whole and middle - width / 2 >= free_from:
            axes.annotate(
                operator.name,
                (middle / divisor, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=MUTED,
            )
            free_from = middle + width / 2


def _close_up(slices: Sequence[Slice], longest: Slice) -> list[Slice]:
    """The beginning of a layer, up to a number of tile computations.

    A process that only passes tokens on (sums that begin at zero need no loading) is left out.
    """
    stop = longest.start_ps + longest.duration_ps
    within = [s for s in slices if longest.start_ps <= s.start_ps < stop]
    working = {s.track for s in within if s.iterations == 1 and s.duration_ps}
    inside = [s for s in within if s.track in working]
    ends = [s.start_ps + s.duration_ps for s in inside if s.track == "compute"]
    horizon = ends[:CLOSE_UP_COMPUTES][-1] if ends else stop
    return [s for s in inside if s.start_ps < horizon]


def _track_order(track: str) -> tuple[int, str]:
    verbs = {"load": 0, "compute": 1, "store": 2}
    return verbs.get(track.split(" ")[0], len(verbs)), track


def _gantt(axes: Axes, close: Sequence[Slice], tracks: Sequence[str], longest: Slice) -> None:
    ends = [s.start_ps + s.duration_ps for s in close if s.track == "compute"]
    span = max(ends, default=longest.start_ps + longest.duration_ps) - longest.start_ps
    scale = display.axis_scale("latency_ps", [span])
    for piece in close:
        y = tracks.index(piece.track)
        steady = piece.iterations > 1
        axes.barh(
            y,
            piece.duration_ps / scale.divisor,
            0.62,
            left=(piece.start_ps - longest.start_ps) / scale.divisor,
            color=_role_colour(piece.track),
            edgecolor="white",
            lw=0.5,
            alpha=0.45 if steady else 1.0,
            hatch="////" if steady else None,
        )
    axes.set_yticks(range(len(tracks)), tracks)
    axes.set(ylim=(len(tracks) - 0.4, -0.6), xlim=(0, span / scale.divisor))
    axes.set_xlabel(scale.label.replace("Latency", "time from its start"))
    axes.set_title(f"How {longest.name}, the longest layer, begins")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _role_colour(track: str) -> str:
    return next((c for words, c in ROLE_COLOURS if track.startswith(words)), NO_COMPONENT)
