"""The outcome of a search in a few lines; the report has the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rich.console import Console

from arch.units import format_time_ps
from dse.cli.console import table
from dse.quantities import Quantity
from dse.report.designs import START, Design, label, nearest_misses, recommended
from dse.report.evidence import Evidence
from dse.report.settings import all_paths, setting, with_workload
from dse.study import EXHAUSTED, Study
from dse.trial import Trial

#: The fidelity that ``dse simulate`` uses unless told otherwise.
SIMULATED = "event"


def print_summary(console: Console, study: Study, evidence: Evidence, seconds: float) -> None:
    """How much was looked at, and the designs to build beside the one it started from.

    Their latency is shown at event fidelity too, which ``dse simulate`` uses.
    """
    left = "; no other design is left" if study.stopped == EXHAUSTED else ""
    console.print(
        f"{study.config.name}: the start and {len(study.trials):,} of {study.config.space.size:,} "
        f"designs evaluated in {seconds:.0f} s ({study.cost_model_calls:,} cost model calls){left};"
        f" {len(study.feasible):,} feasible, {len(study.pareto())} on the front"
    )
    designs = recommended(study.feasible, study.objective_keys)
    if not designs:
        console.print("No design meets every constraint.")
        for nearest in nearest_misses(study, 1):
            console.print(f"The closest is {label(nearest)}: {nearest.reason}")
        return
    if all(design.trial is not study.start for design in designs):
        designs = (Design(trial=study.start, roles=()), *designs)
    console.print(table("", ("", *map(heading, designs)), rows(study, evidence, designs)))


def heading(design: Design) -> str:
    roles = "\n".join(role.name for role in design.roles)
    return f">{design.label}\n{roles}" if roles else f">{START}"


def rows(
    study: Study, evidence: Evidence, designs: tuple[Design, ...]
) -> Iterator[tuple[str, ...]]:
    """One line per objective, the simulated latency, then one per parameter."""
    trials = [design.trial for design in designs]
    for objective in study.config.objectives:
        yield objective.name, *(shown(study, trial, objective) for trial in trials)
    if study.config.fidelity != SIMULATED:
        latency = {check.number: check.latency_ps[SIMULATED] for check in evidence.checks}
        yield f"latency, {SIMULATED}", *(simulated(latency, trial) for trial in trials)
    architectures = [
        with_workload(study.config, trial, study.config.architecture(trial.overrides))
        for trial in trials
    ]
    for path in all_paths(study.config.space):
        yield path, *(written(setting(a, path)) for a in architectures)


def written(value: object) -> str:
    """As in the YAML."""
    if isinstance(value, str):
        return value
    return "–" if value is None else json.dumps(value)


def simulated(latency_ps: Mapping[int, float], trial: Trial) -> str:
    """Nothing for a start that no mapping fits on."""
    found = latency_ps.get(trial.number)
    return "–" if found is None else format_time_ps(found)


def shown(study: Study, trial: Trial, objective: Quantity) -> str:
    """The value and, for designs other than the start, how it changed."""
    value, start = trial.objectives[objective.key], study.start.objectives[objective.key]
    text = objective.show(value)
    if trial is study.start or start <= 0:
        return text
    percent = round(100 * ((start / value if objective.inverse else value / start) - 1))
    return f"{text} ({percent:+} %)" if percent else f"{text} (equal)"
