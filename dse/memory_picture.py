"""The plot of a memory plan: addresses over time, one rectangle per buffer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arch.errors import InputError, Problem
from mapper.memory_plan.picture import Extent, extents, live_at
from mapper.memory_plan.plan import MemoryPlan, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rectangles lower than this share of the pool get no label.
TALL = 0.22
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
    width = min(24.0, 4.0 + 0.28 * len(plan.steps))
    figure, axes = pyplot.subplots(figsize=(width, 6.5), layout="constrained")
    colours = pyplot.get_cmap("tab20")
    names = {
        name: i for i, name in enumerate(dict.fromkeys(p.buffer.name for p in plan.placements))
    }
    for extent in extents(plan):
        _rectangle(axes, extent, plan, colours(names[extent.name] % 20))
    _frame(axes, plan, title)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _rectangle(axes: Axes, extent: Extent, plan: MemoryPlan, colour: object) -> None:
    from matplotlib.patches import Rectangle

    left, wide = extent.first - 0.46, extent.last - extent.first + 0.92
    tall = extent.high - extent.low
    box = Rectangle((left, extent.low), wide, tall, facecolor=colour, edgecolor="black", alpha=0.6)
    box.set_linewidth(0.6)
    axes.add_patch(box)
    if tall > plan.pool_bytes * TALL:
        name = extent.name.removesuffix(" (part)").removesuffix(".out")
        axes.text(
            left + wide / 2,
            extent.low + tall / 2,
            f"{name}\n{tall:,} B",
            rotation=90,
            ha="center",
            va="center",
            fontsize=5.5,
            clip_on=True,
        )


def _tick(step: Step) -> str:
    if step.is_call:
        return step.name
    more = len(step.layers) - 1
    return f"{step.layers[0]} + {more}" if more else step.layers[0]


def _frame(axes: Axes, plan: MemoryPlan, title: str) -> None:
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
    axes.set_ylim(0, plan.pool_bytes * 1.08)
    axes.set_xticks(list(steps), [_tick(s) for s in plan.steps], rotation=90, fontsize=6)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g} kB")
    axes.set_ylabel("address in the ring" if plan.is_ring else "address in the arena")
    extra = "".join(f", {name} {size:,} B" for name, size in plan.extra_bytes.items())
    axes.set_title(
        f"{title}: planner {plan.planner}, pool {plan.pool_bytes:,} B{extra}", fontsize=9
    )
    axes.legend(loc="upper right", fontsize=7)
