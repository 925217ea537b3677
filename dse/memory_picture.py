"""The plot of a memory plan: addresses over time, one rectangle per buffer."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from arch.errors import InputError, Problem
from mapper.memory_plan.picture import Extent, extents, live_at
from mapper.memory_plan.plan import MemoryPlan, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of labels; of a step along the axis; of the axis of addresses, about.
FONT_PT, STEP_INCHES, AXES_INCHES = 5.5, 0.28, 4.4
#: Size of the title, and how many of its characters go into an inch.
TITLE_PT, TITLE_CHARACTERS = 9, 13
SUFFIXES = (".png", ".svg", ".pdf")


def check_format(path: Path) -> None:
    """``InputError`` for a suffix that names no picture."""
    if path.suffix not in SUFFIXES:
        message = f"unknown picture format '{path.suffix}'; allowed {', '.join(SUFFIXES)}"
        raise InputError(Problem(message, where=str(path)))


def draw(plan: MemoryPlan, title: str, path: Path) -> None:
    """Writes the picture; its suffix says in which format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "tilewright"
    width = 4.0 + STEP_INCHES * len(plan.steps)
    figure, axes = pyplot.subplots(figsize=(width, 6.5), layout="constrained")
    colours = pyplot.get_cmap("tab20")
    names = {
        name: i for i, name in enumerate(dict.fromkeys(p.buffer.name for p in plan.placements))
    }
    for extent in extents(plan):
        _rectangle(axes, extent, plan, colours(names[extent.name] % 20))
    _hatch_shared(axes, plan)
    _frame(axes, plan)
    heading = f"{title}: planner {plan.planner}, pool {plan.pool_bytes:,} B{_extra(plan)}"
    axes.set_title(textwrap.fill(heading, int(width * TITLE_CHARACTERS)), fontsize=TITLE_PT)
    # Outside of the axes: wherever it lay inside, it would hide a buffer.
    figure.legend(loc="outside lower center", ncols=3, fontsize=7)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _rectangle(axes: Axes, extent: Extent, plan: MemoryPlan, colour: object) -> None:
    from matplotlib.patches import Rectangle

    left, wide = extent.first - 0.46, extent.last - extent.first + 0.92
    tall = extent.high - extent.low
    box = Rectangle((left, extent.low), wide, tall, facecolor=colour, edgecolor="black", alpha=0.6)
    box.set_linewidth(0.6)
    axes.add_patch(box)
    size_pt = (wide * STEP_INCHES * 72, tall / plan.pool_bytes * AXES_INCHES * 72)
    label = _label(extent, size_pt)
    if label is not None:
        text, rotation = label
        middle = left + wide / 2, extent.low + tall / 2
        axes.text(
            *middle,
            text,
            rotation=rotation,
            ha="center",
            va="center",
            fontsize=FONT_PT,
            clip_on=True,
            zorder=5,
            bbox={"facecolor": "white", "alpha": 0.55, "linewidth": 0, "pad": 0.8},
        )


def _label(extent: Extent, size_pt: tuple[float, float]) -> tuple[str, int] | None:
    """The names and the bytes, or the bytes alone, along or across; ``None`` if nothing fits."""
    names = [part.removesuffix(".out") for part in _plain(extent.name).split(" + ")]
    tall = f"{extent.high - extent.low:,} B"
    for lines in ([*names, tall], [tall]):
        long = max(map(len, lines)) * FONT_PT * 0.62
        high = len(lines) * FONT_PT * 1.3
        for rotation, room in ((0, size_pt), (90, size_pt[::-1])):
            if long <= room[0] and high <= room[1]:
                return "\n".join(lines), rotation
    return None


def _plain(name: str) -> str:
    return name.removesuffix(" (part)")


def _shared(plan: MemoryPlan) -> Iterator[tuple[int, int, int]]:
    """Step and addresses where two buffers have the same bytes: one is read, one written there."""
    for step in range(len(plan.steps)):
        live = [e for e in extents(plan) if e.first <= step <= e.last]
        for a, b in itertools.combinations(live, 2):
            low, high = max(a.low, b.low), min(a.high, b.high)
            if low < high:
                yield step, low, high


def _hatch_shared(axes: Axes, plan: MemoryPlan) -> None:
    from matplotlib.patches import Rectangle

    label = "written over what is read for the last time"
    for step, low, high in _shared(plan):
        box = Rectangle((step - 0.46, low), 0.92, high - low, fill=False, hatch="////", linewidth=0)
        box.set_edgecolor("black")
        box.set_label(label)
        axes.add_patch(box)
        label = ""


def _tick(step: Step) -> str:
    if step.is_call:
        return step.name
    more = len(step.layers) - 1
    return f"{step.layers[0]} + {more}" if more else step.layers[0]


def _extra(plan: MemoryPlan) -> str:
    return "".join(f", {name} {size:,} B" for name, size in plan.extra_bytes.items())


def _frame(axes: Axes, plan: MemoryPlan) -> None:
    steps = range(len(plan.steps))
    axes.step(
        [s - 0.5 for s in (*steps, len(plan.steps))],
        [*(live_at(plan, s) for s in steps), live_at(plan, len(plan.steps) - 1)],
        where="post",
        color="black",
        linewidth=1.0,
        linestyle=":",
        label="bytes in use",
    )
    axes.axhline(plan.pool_bytes, color="tab:red", linewidth=1.2, label="pool")
    axes.set_xlim(-0.6, len(plan.steps) - 0.4)
    axes.set_ylim(0, plan.pool_bytes * 1.03)
    axes.set_xticks(list(steps), [_tick(s) for s in plan.steps], rotation=90, fontsize=6)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g} kB")
    axes.set_ylabel("address in the ring" if plan.is_ring else "address in the arena")
