"""The page: facts, tables and figures poured into one self-contained document."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata, resources
from typing import Any

from arch import catalog
from dse.config import MappingSettings, SearchConfig
from dse.report import display, tables
from dse.report.answer import answer
from dse.report.confidence import RULES
from dse.report.data import Facts
from dse.report.evidence import WorkloadSummary
from dse.report.figures.cores import tracks_of
from dse.report.figures.style import Rendered
from dse.report.importance import FEWEST_TRIALS, METHOD
from dse.study import EXHAUSTED

CONTENTS = (
    ("question", "Question"),
    ("answer", "Answer"),
    ("front", "Pareto front"),
    ("convergence", "Convergence"),
    ("parameters", "Parameters"),
    ("layers", "Layers"),
    ("breakdown", "Time and energy"),
    ("limits", "Constraints"),
    ("infeasible", "Infeasible"),
    ("reproduce", "Reproduce"),
)

#: Why a figure may be missing.
ABSENT = {
    "pareto": "a front needs at least two objectives and one trial",
    "convergence": "nothing feasible was found, or fewer than two trials were run",
    "importance": f"fewer than {FEWEST_TRIALS} trials are too few to learn from",
    "parameters": "fewer than two Pareto designs lie inside the space",
    "layers": "there is no chosen design other than the start, or it was not simulated",
    "breakdown": "no design was simulated",
    "timeline": "no design was simulated at event fidelity",
}

ENDINGS = {
    "budget": "ended at its budget",
    EXHAUSTED: "ended because every design of the space was evaluated",
    "interrupted": "was interrupted: this is what there was at that moment",
    "running": "is still running: this is an intermediate report",
}

#: Libraries whose versions can change the numbers.
LIBRARIES = ("numpy", "scipy", "optuna", "scikit-optimize", "scikit-learn", "simpy", "torch")


def page(facts: Facts, figures: Mapping[str, Rendered], chosen_file: str) -> str:
    """The whole document as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dse.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template("report.html.j2")
    return template.render(**_context(facts, figures, chosen_file))


def _context(facts: Facts, figures: Mapping[str, Rendered], chosen_file: str) -> dict[str, Any]:
    config = facts.study.config
    return {
        "facts": facts,
        "figures": figures,
        "tables": _tables(facts),
        "title": f"{_workload_names(config)} on {facts.base.name}: which design to build",
        "subtitle": _subtitle(facts),
        "contents": CONTENTS,
        "question": _question(facts),
        "answer": answer(facts),
        "rules": RULES,
        "importance_method": METHOD,
        "absent": ABSENT,
        "captions": _captions(facts),
        "reproduce": _reproduce(facts),
        "commands": _commands(facts, chosen_file),
        "chosen_file": chosen_file,
        "css": resources.files("dse.report").joinpath("report.css").read_text(encoding="utf-8"),
    }


def _tables(facts: Facts) -> dict[str, tables.Table | None]:
    return {
        "space": tables.space(facts),
        "comparison": tables.comparison(facts),
        "fidelity": tables.fidelity(facts),
        "pareto": tables.pareto(facts),
        "layers": tables.layer_table(facts),
        "limits": tables.limits(facts),
        "reasons": tables.reasons(facts),
        "nearest": tables.nearest(facts),
        "trials": tables.trials(facts),
    }


def _workload_names(config: SearchConfig) -> str:
    if config.chooses_workload:
        return f"One of {len(config.workloads)} workloads"
    return display.listed(w.spec for w in config.workloads)


def _subtitle(facts: Facts) -> str:
    config = facts.study.config
    done = display.plural(len(facts.study.trials), "trial")
    about = (
        f"{display.sentence(display.typeset(config.description))} " if config.description else ""
    )
    return f"{about}The search {config.name} ran {done} and {ENDINGS[facts.study.stopped]}."


def _mapping_search(settings: MappingSettings) -> str:
    if settings.method == "exact":
        return "proven optimal"
    return f"by {settings.method} search of {settings.budget:,} calls each"


def _question(facts: Facts) -> list[tuple[str, list[str]]]:
    config, study = facts.study.config, facts.study
    minimised = [f"{display.title(q.key)}: {q.meaning}" for q in config.objectives]
    limits = [display.limit(c) for c in config.constraints] or ["none"]
    sampler = f"{config.sampler.name} sampler, seed {config.seed}"
    how = f"mappings for least {config.mapping.objective}, {_mapping_search(config.mapping)}"
    return [
        ("Workload", [_workload(w) for w in facts.evidence.workloads]),
        ("Base architecture", [f"{facts.base.name}: {facts.base.description}"]),
        ("Design space", [_space(facts)]),
        ("Minimise", minimised),
        ("Subject to", limits),
        ("Budget", [f"{config.trials:,} trials; {sampler}"]),
        (
            "Evaluation",
            [
                f"{config.fidelity} model; {how}",
                f"{study.cost_model_calls:,} cost-model calls in {study.seconds:,.0f} s "
                "of evaluation",
            ],
        ),
    ]


def _workload(summary: WorkloadSummary) -> str:
    parts = [
        display.plural(summary.operators, "operator"),
        f"{display.count(summary.macs)} multiply-accumulates",
        f"{display.count(summary.parameters)} parameters" if summary.parameters else "",
        f"weight {summary.weight:g}" if summary.weight != 1 else "",
    ]
    return f"{summary.spec}: {', '.join(part for part in parts if part)}"


def _space(facts: Facts) -> str:
    space = facts.study.space
    names = ", ".join(p.path for p in space.parameters)
    free = display.plural(len(space.parameters), "parameter")
    return f"{space.size:,} designs from {free}: {names}"


def _captions(facts: Facts) -> dict[str, str]:
    roles = "; ".join(f"{d.label}: {', '.join(r.name for r in d.roles)}" for d in facts.designs)
    chosen = f"The thick line is {facts.chosen_name}." if facts.chosen_name else ""
    steady = "Hatched stretches are loops in steady state, simulated once and counted."
    if len(tracks_of(facts.evidence.timeline)) > 1:
        steady = (
            "Bars are units of the schedule, numbered in its order; white lines part their tiles."
        )
    hypervolume = (
        "The hypervolume is the share of the objective space that the designs found so far "
        "dominate (logarithmic scales, reference point 10 % beyond the worst corner of the "
        "final front)."
    )
    named = {
        "convergence": hypervolume if len(facts.keys) > 1 else "",
        "timeline": steady,
        "parameters": chosen,
        "breakdown": f"{roles}." if roles else "",
    }
    return {name: named.get(name, "") for name in ABSENT}


def _reproduce(facts: Facts) -> list[tuple[str, str]]:
    start, config = facts.study.start, facts.study.config
    found = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    return [
        ("Seed", str(config.seed)),
        ("Configuration", f"{config.name}, hash {config.hash}"),
        ("Searched with", f"tilewright {start.version}"),
        ("Reported with", f"Python {platform.python_version()}, {', '.join(found)}"),
    ]


def _commands(facts: Facts, chosen_file: str) -> list[str]:
    config = facts.study.config
    commands = [f"dse search {_config_name(config)} --trials {config.trials}"]
    if chosen_file:
        commands += [
            f"dse simulate --arch {chosen_file} --workload {w.spec} --fidelity event"
            for w in facts.chosen_workloads
        ]
    return commands


def _config_name(config: SearchConfig) -> str:
    """The name of the shipped configuration that it is, else a file with the text below."""
    if config.name in catalog.names("search"):
        shipped = catalog.find("search", config.name).read_text(encoding="utf-8")
        if shipped == config.text:
            return config.name
    return f"{config.name}.yaml"
