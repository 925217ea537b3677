"""``dse simulate``: a workload on an architecture, at one fidelity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arch.load import load_architecture
from dse.cli import arguments, inputs, views
from dse.cli.compiling import say_if_compiling
from dse.cli.console import messages, print_json, results
from dse.cli.schedules import totals
from dse.document import metrics_document
from dse.simulation import Way, simulate
from mapper.search.exact import OBJECTIVES
from mapper.workload.load import load_workload
from sim.engines import DEFAULT, ENGINES
from sim.kernel_models import runs_kernels
from sim.models import FIDELITIES
from sim.trace import write_slices


def run(
    arch: arguments.Arch,
    workload: arguments.Workload,
    fidelity: Annotated[
        str, typer.Option(metavar="roofline|analytical|event", help="How closely to look.")
    ] = "event",
    objective: arguments.Objective = "edp",
    assignments: arguments.Assignments = None,
    engine: arguments.Engine = DEFAULT,
    fuse: arguments.Fuse = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev.")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Simulate a workload on an architecture.

    Every operator (with --fuse, the network as a whole) gets its best mapping first; the chosen
    model then says what the run costs.
    """
    inputs.choice("--fidelity", fidelity, tuple(FIDELITIES))
    inputs.choice("--objective", objective, tuple(OBJECTIVES))
    inputs.choice("--engine", engine, tuple(ENGINES))
    if trace is not None:
        inputs.output_file("--trace", trace)
    architecture = load_architecture(arch, inputs.overrides(assignments or []))
    network = load_workload(workload)
    if architecture.cores > 1:
        note = "one core runs everything here; dse map --fuse places a network on all"
        messages().print(f"{architecture.name} has {architecture.cores} cores: {note}")
    if not runs_kernels(architecture):
        say_if_compiling()
    simulation = simulate(network, architecture, fidelity, objective, Way(engine=engine, fuse=fuse))
    metrics = simulation.metrics
    if trace is not None:
        write_slices(trace, network.name, simulation.timeline(network, architecture))
        messages().print(f"timeline: {trace} (open it in ui.perfetto.dev)")
    if as_json:
        print_json(metrics_document(metrics) | simulation.schedule_document())
    else:
        if simulation.schedule is not None:
            for name, text in totals(simulation.schedule):
                results().print(f"  {name:<12} {text}")
        views.print_metrics(results(), network, architecture, metrics)
