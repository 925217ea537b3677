"""Writing a report: the page, the plots, the Pareto designs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from arch.load import dump_architecture
from dse.report import display
from dse.report.data import Facts, gather
from dse.report.evidence import Evidence
from dse.report.figures import (
    breakdown,
    convergence,
    importance,
    layers,
    parameters,
    pareto,
    timeline,
)
from dse.report.figures.style import RC, Rendered, render
from dse.report.html import page
from dse.report.settings import all_paths, setting
from dse.study import Study
from dse.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: Mapping[str, Callable[[Facts], Figure | None]] = {
    "pareto": pareto.draw,
    "convergence": convergence.draw,
    "importance": importance.draw,
    "parameters": parameters.draw,
    "layers": layers.draw,
    "breakdown": breakdown.draw,
    "timeline": timeline.draw,
}


def write(study: Study, evidence: Evidence, directory: Path) -> Path:
    """Everything into the directory; files of an earlier report there are replaced."""
    facts = gather(study, evidence)
    figures = draw_all(facts)
    fill(directory / "plots", _plot_files(figures), [f"{name}.*" for name in FIGURES])
    fill(directory / "designs", design_files(facts), [f"{facts.base.name}_trial*.yaml"])
    target = directory / "report.html"
    _put(directory / "pareto.csv", pareto_csv(facts).encode())
    _put(target, page(facts, figures, _chosen_file(facts)).encode())
    return target


def draw_all(facts: Facts) -> dict[str, Rendered]:
    """Every figure that the facts suffice for, in one style."""
    import matplotlib as mpl

    rendered = {}
    with mpl.rc_context(RC):
        for name, draw in FIGURES.items():
            figure = draw(facts)
            if figure is not None:
                rendered[name] = render(name, figure)
    return rendered


def _plot_files(figures: Mapping[str, Rendered]) -> dict[str, bytes]:
    vectors = {f"{name}.svg": figure.svg.encode() for name, figure in figures.items()}
    return {**vectors, **{f"{name}.png": figure.png for name, figure in figures.items()}}


def design_name(facts: Facts, trial: Trial) -> str:
    """The name of a design's architecture, and of its file."""
    return f"{facts.base.name}_trial{trial.number}"


def _chosen_file(facts: Facts) -> str:
    return f"designs/{design_name(facts, facts.chosen)}.yaml" if facts.chosen is not None else ""


def design_files(facts: Facts) -> dict[str, bytes]:
    """Each Pareto design as an architecture file that loads to the same hardware."""
    files = {}
    for trial in facts.front:
        name = design_name(facts, trial)
        architecture = facts.study.config.architecture(trial.overrides)
        files[f"{name}.yaml"] = dump_architecture(architecture, name).encode()
    return files


def pareto_csv(facts: Facts) -> str:
    """Pareto designs with full precision, in the units of the records."""
    paths = all_paths(facts.study.space)
    roles = {d.trial.number: " + ".join(r.name for r in d.roles) for d in facts.designs}
    keys = [k for k in display.READINGS if all(k in t.objectives for t in facts.front)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "role", *keys, *paths])
    for trial in facts.front:
        settings = (trial.overrides.get(path, setting(facts.base, path)) for path in paths)
        numbers = (trial.objectives[key] for key in keys)
        writer.writerow([trial.number, roles.get(trial.number, ""), *numbers, *settings])
    return text.getvalue()


def fill(folder: Path, files: Mapping[str, bytes], patterns: Sequence[str]) -> None:
    """The folder with these files, without older ones that match a pattern."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for old in folder.glob(pattern):
            old.unlink()
    for name, content in files.items():
        _put(folder / name, content)


def _put(path: Path, content: bytes) -> None:
    """Whole or not at all: an interrupted report leaves no half-written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
