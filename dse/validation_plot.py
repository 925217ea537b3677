"""Scatter plots of predicted against measured times."""

from __future__ import annotations

from pathlib import Path

from dse.validation import Comparison


def write_scatter(path: Path, comparison: Comparison) -> None:
    """Predicted over measured time, one panel per kind of kernel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    kinds = sorted({row.call.kind for row in comparison.rows})
    columns = min(4, len(kinds))
    lines = -(-len(kinds) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.4 * columns, 2.6 * lines), squeeze=False, layout="constrained"
    )
    for axis, kind in zip(axes.flat, kinds, strict=False):
        chosen = [i for i, row in enumerate(comparison.rows) if row.call.kind == kind]
        measured = [comparison.rows[i].time_us for i in chosen]
        ratio = [1 + float(comparison.time_error[i]) for i in chosen]
        axis.axhspan(0.9, 1.1, color="tab:green", alpha=0.15)
        axis.axhline(1, color="0.4", linewidth=0.8)
        axis.scatter(measured, ratio, s=7, alpha=0.6)
        error = sum(abs(share - 1) for share in ratio) / len(ratio)
        axis.set(xscale="log", title=f"{kind}, {len(ratio)} calls: {100 * error:.1f} %")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_ylim(min(0.5, *ratio) - 0.05, max(1.5, *ratio) + 0.05)
    for axis in axes.flat[len(kinds) :]:
        axis.set_visible(False)
    figure.supxlabel("measured time, us")
    figure.supylabel("predicted / measured (band: within 10 %)")
    figure.suptitle(
        "Predicted over measured times; mean absolute error by kind and number of calls"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)
