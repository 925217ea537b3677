"""``dse search``: co-design of hardware and mapping."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem
from dse.cli import arguments, engines, exits, inputs
from dse.cli.console import messages, print_json, results
from dse.cli.search_progress import Progress
from dse.cli.search_summary import print_summary
from dse.config import SearchConfig
from dse.load_config import load_search
from dse.report.designs import recommended
from dse.report.evidence import Evidence
from dse.report.files import write
from dse.report.models import collect
from dse.search import SearchRun, search
from dse.store import FILE, recorded_trials
from dse.study import Study
from dse.trial import Trial

#: Where searches go that were not told where to go.
RUNS = Path("runs")


def run(
    config: Annotated[
        str,
        typer.Argument(metavar="CONFIG", help="Shipped search (see: dse list searches) or path."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to put the run.  [default: runs/NAME]"),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Designs to evaluate, instead of CONFIG's.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes that evaluate.  [default: one per core]"),
    ] = None,
    engine: arguments.Engine = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an earlier run.")] = False,
    as_json: arguments.Json = False,
) -> None:
    """Search hardware and mapping together; write a report.

    Ctrl-C ends the search with a report of what there is; --resume goes on with it. Neither
    interruptions nor the number of workers change the result.
    """
    workers = cores() if workers is None else inputs.positive("--workers", workers)
    asked = load_search(config)
    used = engines.chosen(engine, asked.fidelity)
    without = asked.architecture({}).without_area
    if without:
        messages().print(f"areas are without {', '.join(without)}, whose area is not known")
    if trials is not None:
        asked = replace(asked, trials=inputs.positive("--trials", trials))
    run_dir = inputs.output_folder("--out", directory(asked, out, resume=resume))
    started = time.perf_counter()
    with Progress(asked, recorded_trials(run_dir) if resume else ()) as progress:
        study = search(
            SearchRun(
                config=asked,
                run_dir=run_dir,
                workers=min(workers, asked.batch),
                resume=resume,
                on_trial=progress.show,
                engine=used,
            )
        )
    seconds = time.perf_counter() - started
    conclude(study, seconds, as_json=as_json)
    raise typer.Exit(exit_code(study))


def conclude(study: Study, seconds: float, *, as_json: bool) -> None:
    """Write the report and say what came out."""
    messages().print("writing the report ...")
    evidence = collect(study)
    report = write(study, evidence, study.run_dir)
    used = " and ".join(study.engines)
    if as_json:
        print_json({**document(study, evidence, seconds), "engine": used or None})
        return
    print_summary(results(), study, evidence, seconds)
    if used:
        plural = "s" if len(study.engines) > 1 else ""
        results().print(f"simulated with: {used} engine{plural}")
    results().print(f"report: {report}", soft_wrap=True)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def directory(config: SearchConfig, out: Path | None, *, resume: bool) -> Path:
    """``out``, or ``runs/NAME``, ``runs/NAME-2`` ...: the next free one, or the last to resume."""
    if out is not None:
        return out
    taken = [path for path in numbered(config.name) if (path / FILE).exists()]
    if not resume:
        return next(path for path in numbered(config.name) if not path.exists())
    if not taken:
        message = f"there is no run of '{config.name}' in '{RUNS}'; name its directory with --out"
        raise InputError(Problem(message, where="--resume"))
    return taken[-1]


def numbered(name: str) -> Iterator[Path]:
    """Run directories of a search in order, up to the first that does not exist."""
    path, number = RUNS / name, 1
    while path.exists():
        yield path
        number += 1
        path = RUNS / f"{name}-{number}"
    yield path


def document(study: Study, evidence: Evidence, seconds: float) -> dict[str, Any]:
    """What ``--json`` prints."""
    best = {o.name: study.best(o.key) for o in study.config.objectives}
    return {
        "trials": len(study.trials),
        "feasible": sum(trial.feasible for trial in study.trials),
        "pareto": [entry(trial) for trial in study.pareto()],
        "best": {name: dict(trial.overrides) for name, trial in best.items() if trial},
        "designs": list(recommendations(study, evidence)),
        "cost_model_calls": study.cost_model_calls,
        "seconds": seconds,
        "run_dir": str(study.run_dir),
    }


def recommendations(study: Study, evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The designs of the summary: what each is for, and its latency at every fidelity."""
    latencies = {check.number: check.latency_ps for check in evidence.checks}
    for design in recommended(study.feasible, study.objective_keys):
        yield {
            "roles": [role.name for role in design.roles],
            **entry(design.trial),
            "latency_ps_by_fidelity": dict(latencies[design.trial.number]),
        }


def entry(trial: Trial) -> dict[str, Any]:
    return {"trial": trial.number, "overrides": dict(trial.overrides), **trial.objectives}


def exit_code(study: Study) -> int:
    if study.stopped == "interrupted":
        return exits.INTERRUPTED
    return 0 if study.feasible else exits.INFEASIBLE
