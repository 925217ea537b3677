"""One look for all figures: colours, sizes, number formats."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arch.spec import Architecture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

#: Okabe and Ito's palette, safe for colour-blind readers (jfly.uni-koeln.de/color, 2008).
VERMILLION, BLUE, SKY, PURPLE = "#D55E00", "#0072B2", "#56B4E9", "#CC79A7"
GREEN, ORANGE, YELLOW = "#009E73", "#E69F00", "#F0E442"
SERIES = (VERMILLION, BLUE, SKY, PURPLE, GREEN, ORANGE, YELLOW, "#000000")

INK, MUTED, FAINT, GRID = "#222222", "#6B6B6B", "#B8B8B8", "#E6E6E6"

#: For what is no component: pipeline latency, a sum of several layers.
NO_COMPONENT = "#9A9A9A"

WIDTH_IN = 10.0

#: Values further apart than this are drawn on a logarithmic axis.
LOG_RATIO = 8.0

#: Settings of matplotlib, applied only while the report draws.
RC: Any = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "tilewright",
    "path.simplify": True,
}


#: Of raster files. Widths of texts do not scale with it, so the layout must be made at the same.
DPI = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A figure as files; ``svg`` is a whole document, ``inline`` fits into a page."""

    name: str
    svg: str
    png: bytes
    inline: str


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure with automatic layout; to be drawn on within the style."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), dpi=DPI, layout="constrained")


def render(name: str, figure: Figure) -> Rendered:
    """Both files, without dates, so that equal data gives equal bytes.

    The layout is made once, not again for each file.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    vector, raster = io.StringIO(), io.BytesIO()
    figure.savefig(vector, format="svg", metadata={"Date": None})
    figure.savefig(raster, format="png", dpi=DPI, metadata={"Software": None})
    svg = vector.getvalue()
    return Rendered(name=name, svg=svg, png=raster.getvalue(), inline=_inline(name, svg))


def _inline(name: str, svg: str) -> str:
    """The ``<svg>`` element alone, with identifiers that are unique within the page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(<image [^>]*?)\bid="[^"]*"', r"\1", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(href="|url\()#(?!design-)', rf"\g<1>#{name}-", element)
    return re.sub(r'\s(width|height)="[\d.]+pt"', "", element, count=2)


def component_colours(architecture: Architecture) -> dict[str, str]:
    """A fixed colour for each component, in the order of the architecture."""
    names = [c.name for c in architecture.components]
    return {name: SERIES[i % len(SERIES)] for i, name in enumerate(names)}


def colour_of(colours: dict[str, str], name: str) -> str:
    return colours.get(name, NO_COMPONENT)


def is_wide(numbers: Iterable[float]) -> bool:
    """Whether the numbers span so much that a linear axis would hide the small ones."""
    values = [n for n in numbers if n > 0]
    return bool(values) and max(values) > LOG_RATIO * min(values)


def text_on(colour: str) -> str:
    """Black or white, whichever is read better on the colour (WCAG relative luminance)."""
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return INK if luminance > 0.30 else "#FFFFFF"


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def colour_bar(points: ScalarMappable, axes: Axes, label: str, numbers: Sequence[float]) -> None:
    """A slim colour bar with plain numbers."""
    bar = axes.figure.colorbar(points, ax=axes, pad=0.02, aspect=32)
    bar.set_label(label)
    bar.outline.set_visible(False)
    if is_wide(numbers):
        _plain_log_ticks(bar.ax.yaxis, numbers)


def colour_scale(numbers: Sequence[float]) -> Normalize:
    """Logarithmic where the numbers span much."""
    from matplotlib.colors import LogNorm, Normalize

    return (LogNorm if is_wide(numbers) else Normalize)(min(numbers), max(numbers))


def log_axis(axes: Axes, which: str, numbers: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers."""
    getattr(axes, f"set_{which}scale")("log")
    _plain_log_ticks(getattr(axes, f"{which}axis"), numbers)


def _plain_log_ticks(axis: Axis, numbers: Sequence[float]) -> None:
    """Ticks at 1, 2 and 5 of each decade (1 if there are many decades)."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    subs = (1.0,) if max(numbers) > 1000 * min(numbers) else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
