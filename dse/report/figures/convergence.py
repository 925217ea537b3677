"""Convergence: hypervolume and the best value of each objective against trials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dse.report import display
from dse.report.convergence import LAST_SHARE, REACHED, Convergence
from dse.report.data import Facts
from dse.report.figures.style import BLUE, FAINT, GREEN, INK, MUTED, is_wide, log_axis, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(facts: Facts) -> Figure | None:
    """``None`` when nothing was feasible or only the start was evaluated."""
    progress = facts.convergence
    if progress is None or len(progress.history) < 3:
        return None
    if len(facts.keys) == 1:
        figure = new_figure(3.4)
        axes = figure.subplots()
        _best(axes, facts, progress, facts.keys[0])
        _name_last(axes, progress)
        return figure
    figure = new_figure(5.4)
    grid = figure.add_gridspec(2, len(facts.keys), height_ratios=(1.25, 1))
    _hypervolume(figure.add_subplot(grid[0, :]), progress)
    for column, key in enumerate(facts.keys):
        _best(figure.add_subplot(grid[1, column]), facts, progress, key)
    return figure


def _hypervolume(axes: Axes, progress: Convergence) -> None:
    shares = [100 * share / progress.history[-1] for share in progress.history]
    axes.plot(range(len(shares)), shares, drawstyle="steps-post", color=BLUE, lw=1.6)
    axes.set(ylabel="hypervolume (% of final)", xlim=_over(len(shares)), ylim=(0, 122))
    axes.set_title("Hypervolume of the feasible designs")
    _mark_last(axes, progress)
    _name_last(axes, progress)
    at, share = progress.reached_at, shares[progress.reached_at]
    axes.plot(at, share, "o", color=INK, ms=5, zorder=5, clip_on=False)
    left = at > len(shares) / 2
    # Left of the point the line runs below, right of it above it.
    axes.annotate(
        f"{REACHED:.0%} at trial {at}",
        (at, share),
        xytext=(-8, 5) if left else (8, -14),
        textcoords="offset points",
        ha="right" if left else "left",
        fontsize=8.5,
    )


def _over(count: int) -> tuple[float, float]:
    """All trials, with room for the points of the first and the last."""
    return -0.01 * count, 1.01 * count - 1


def _mark_last(axes: Axes, progress: Convergence) -> None:
    last = len(progress.history) - 1
    axes.axvspan(progress.last_from, last, color=FAINT, alpha=0.22, lw=0)


def _name_last(axes: Axes, progress: Convergence) -> None:
    axes.text(
        len(progress.history) - 1,
        0.94,
        f"last {LAST_SHARE:.0%} of the trials ",
        transform=axes.get_xaxis_transform(),
        ha="right",
        fontsize=8,
        color=MUTED,
    )


def _best(axes: Axes, facts: Facts, progress: Convergence, key: str) -> None:
    everything = (facts.study.start, *facts.study.trials)
    feasible = [t for t in everything if t.feasible]
    scale = display.axis_scale(key, [t.objectives[key] for t in feasible])
    best = [math.nan if b is None else b / scale.divisor for b in progress.best[key]]
    numbers = scale.apply(t.objectives[key] for t in feasible)
    if is_wide(numbers):
        log_axis(axes, "y", numbers)
    axes.scatter([t.number for t in feasible], numbers, s=7, color=FAINT, lw=0)
    axes.plot(range(len(best)), best, drawstyle="steps-post", color=GREEN, lw=1.6)
    axes.set(xlabel="trial", ylabel=scale.label, xlim=_over(len(best)))
    axes.set_title(f"Best {display.noun(key)} so far")
    axes.locator_params(axis="x", integer=True)
    _mark_last(axes, progress)
