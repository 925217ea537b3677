"""``dse simulate``: a workload on an architecture, at one fidelity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arch.load import load_architecture
from dse.cli import arguments, inputs, memory_options, views
from dse.cli.compiling import say_if_compiling
from dse.cli.console import messages, print_json, results
from dse.document import metrics_document
from dse.simulation import simulate
from mapper.memory_plan.planners import PLANNERS
from mapper.search.exact import OBJECTIVES
from mapper.workload.load import load_workload
from sim.engines import DEFAULT, ENGINES
from sim.kernel_models import runs_kernels
from sim.models import FIDELITIES
from sim.trace import write_trace


def run(
    arch: arguments.Arch,
    workload: arguments.Workload,
    fidelity: Annotated[
        str, typer.Option(metavar="roofline|analytical|event", help="How closely to look.")
    ] = "event",
    objective: arguments.Objective = "edp",
    assignments: arguments.Assignments = None,
    engine: arguments.Engine = DEFAULT,
    planner: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(PLANNERS), help="Who places activations in a microcontroller's SRAM."
        ),
    ] = None,
    memory_map: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Picture of the SRAM over time (PNG, SVG).")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev.")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Simulate a workload on an architecture.

    Every operator gets its best mapping first; the chosen model then says what the run costs.
    """
    inputs.choice("--fidelity", fidelity, tuple(FIDELITIES))
    inputs.choice("--objective", objective, tuple(OBJECTIVES))
    inputs.choice("--engine", engine, tuple(ENGINES))
    if trace is not None:
        inputs.output_file("--trace", trace)
    overrides = inputs.overrides(assignments or [])
    architecture = memory_options.planned_by(planner, load_architecture(arch, overrides))
    if memory_map is not None:
        memory_options.check_map(memory_map, architecture)
    network = load_workload(workload)
    if not runs_kernels(architecture):
        say_if_compiling()
    simulation = simulate(network, architecture, fidelity, objective, engine=engine)
    metrics = simulation.metrics
    if trace is not None:
        write_trace(trace, network, architecture, simulation.mappings)
        messages().print(f"timeline: {trace} (open it in ui.perfetto.dev)")
    if memory_map is not None:
        memory_options.draw_map(network, architecture, memory_map)
    if as_json:
        print_json(metrics_document(metrics))
    else:
        views.print_metrics(results(), network, architecture, metrics)
        memory_options.show(network, architecture)
