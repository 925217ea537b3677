"""``dse recompute``: what is kept and what is computed again in a training step."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from arch import units
from arch.errors import InputError, Problem
from arch.load import load_architecture
from arch.spec import Architecture
from dse.cli import arguments, inputs
from dse.cli.console import messages, print_json, results, table
from dse.simulation import Way, simulate
from dse.stream_workload import load_network
from mapper.memory_plan.mcu import core_of, free_sram_bytes, is_planned, operator_cycles
from mapper.memory_plan.rematerialize import (
    Run,
    StepGraph,
    best_checkpoints,
    graph_of,
    keep_everything,
    root_checkpoints,
)
from mapper.memory_plan.retention import EFFORT, MOST, Found, cheapest
from mapper.workload.graph import Workload, is_trained

#: A name, the schedule, what is proven of it.
Row = tuple[str, Run, str]

COLUMNS = ("schedule", ">memory", ">again", ">work", "proof")


def run(
    workload: arguments.Workload,
    ram_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory that the step may take, as 256KiB.")
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, max=8, help="How often a tensor may be computed at most.")
    ] = MOST,
    effort: Annotated[
        float, typer.Option(min=0.0, help="Where the exact search stops (some seconds each).")
    ] = EFFORT,
    arch: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Work as time on this architecture."),
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Find what to keep and what to compute again in a training step.

    So that a step fits into less memory. Takes a workload with training=sgd|momentum|adam. Without
    --ram-limit: everything kept, and checkpoints at the square root of the forward pass. With it,
    or with a microcontroller (its SRAM is the limit), also the cheapest schedule that fits.
    """
    limit = None if ram_limit is None else _size(ram_limit)
    network = load_network(workload)
    _check_training(network, workload)
    costs = None
    if arch is not None:
        architecture = load_architecture(arch, inputs.overrides([]))
        costs = _times(network, architecture)
        if limit is None and is_planned(architecture):
            limit = free_sram_bytes(architecture)
    graph = graph_of(network, costs)
    rows, found = _schedules(graph, limit, most, effort)
    if as_json:
        print_json(_document(network, graph, rows, found))
        return
    lines = [_line(graph, *row) for row in rows]
    results().print(table("", COLUMNS, lines))
    again = [] if found is None else found.run.repeated(graph)
    if again:
        results().print(f"computed again: {', '.join(again)}", soft_wrap=True)


def _schedules(
    graph: StepGraph, limit: int | None, most: int, effort: float
) -> tuple[list[Row], Found | None]:
    rows: list[Row] = [
        ("everything kept", keep_everything(graph), ""),
        ("checkpoints, square root", root_checkpoints(graph), ""),
    ]
    if limit is None:
        return rows, None
    simple = best_checkpoints(graph, limit)
    if simple is not None:
        rows.append(("checkpoints that fit", simple, ""))
    found = cheapest(graph, limit, most, effort)
    if found is None:
        messages().print("the exact search found no schedule; give it more --effort")
    else:
        rows.append(("cheapest that fits", found.run, _proof(found)))
    return rows, found


def _size(text: str) -> int:
    try:
        size = units.parse_size(text)
    except InputError as error:
        problems = [replace(problem, where="--ram-limit") for problem in error.problems]
        raise InputError(problems) from error
    if size <= 0:
        raise InputError(Problem(f"must be more than 0 bytes, got {text}", where="--ram-limit"))
    return size


def _check_training(network: Workload, spec: str) -> None:
    """Only a step that updates parameters has a forward pass to compute again."""
    if not is_trained(network):
        separator = "," if ":" in spec else ":"
        message = f"has no training step; add training=sgd, as in {spec}{separator}training=sgd"
        raise InputError(Problem(message, where=f"workload {spec}"))


def _times(network: Workload, architecture: Architecture) -> dict[str, int]:
    """Picoseconds of each operator on its own; cycles on a microcontroller."""
    if is_planned(architecture):
        kernels = core_of(architecture).kernels
        return {o.name: operator_cycles(kernels, o) for o in network.operators}
    metrics = simulate(network, architecture, "analytical", "latency", Way()).metrics
    return {operator.name: operator.latency_ps for operator in metrics.operators}


def _proof(found: Found) -> str:
    return "optimal" if found.optimal else f"at most {found.gap:.2%} above the best"


def _line(graph: StepGraph, name: str, found: Run, proof: str) -> tuple[str, ...]:
    extra = found.cost / graph.cost - 1
    again = len(found.sequence) - len(graph.nodes)
    return name, f"{found.peak_bytes:,} B", f"{again}", f"{extra:+.2%}", proof


def _document(
    network: Workload,
    graph: StepGraph,
    rows: list[Row],
    found: Found | None,
) -> dict[str, Any]:
    return {
        "workload": network.name,
        "always_there_bytes": graph.base_bytes,
        "least_bytes": graph.least_bytes,
        "cost": graph.cost,
        "schedules": [
            {
                "name": name,
                "peak_bytes": row.peak_bytes,
                "cost": row.cost,
                "computed_again": list(row.repeated(graph)),
            }
            for name, row, _ in rows
        ],
        "lower_bound_cost": None if found is None else found.lower_bound,
        "optimal": None if found is None else found.optimal,
        "sequence": None
        if found is None
        else [graph.nodes[number].name for number in found.run.sequence],
    }
