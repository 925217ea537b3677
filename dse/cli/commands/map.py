"""``dse map``: the best mapping of each operator, and how good it is known to be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem, unknown
from arch.load import load_architecture
from arch.spec import Architecture
from arch.units import format_energy_pj, format_time_ps
from dse.cli import arguments, inputs
from dse.cli.compiling import say_if_compiling
from dse.cli.console import print_json, results, table
from dse.cli.nest import nest_document, nest_lines
from dse.cli.rejected import print_rejections
from dse.cli.schedules import print_on_cores, print_schedule
from dse.cli.searching import chosen_method, not_chosen
from dse.cli.unrolling import restricted
from dse.document import metrics_document
from dse.fixed_mapping import map_as_given
from dse.plan_document import cores_document, placed_document, schedule_document
from dse.scheduling import place, schedule, simulated
from dse.stream_workload import load_network
from mapper.cost import InfeasibleError, Metrics
from mapper.hierarchy import execution
from mapper.search.exact import OBJECTIVES, SearchResult
from mapper.search.method import EXACT
from mapper.search.network import map_each
from mapper.workload.graph import Workload
from sim.kernel_models import runs_kernels
from sim.memory import check_outermost
from sim.models import cost_model
from sim.plan import evaluate_plan
from sim.prices import price

COLUMNS = ("operator", ">latency", ">energy", "bound by", ">calls", "optimal", ">gap", ">seconds")

OUTSIDE = (
    "outside: better than every mapping of the mapspace that the search looks through "
    "(docs/mapping_search.md), by the gap."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Every operator's mapping, and what it costs by the model that the search used."""

    workload: Workload
    architecture: Architecture
    searched: dict[str, SearchResult]
    seconds: dict[str, float]
    metrics: Metrics
    objective: str


def mappable(architecture: Architecture) -> Architecture:
    """``InputError`` for hardware whose kernels come from a library."""
    if runs_kernels(architecture):
        message = (
            f"{architecture.name} runs kernels of a library, so there is nothing to map; "
            "see dse simulate"
        )
        raise InputError(Problem(message, "--arch"))
    return architecture


def run(
    arch: arguments.Arch,
    workload: arguments.Workload,
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Only this operator.")] = None,
    objective: arguments.Objective = "edp",
    search: arguments.Search = EXACT.name,
    budget: arguments.Budget = None,
    seed: arguments.Seed = None,
    mapping: arguments.Mapping = None,
    assignments: arguments.Assignments = None,
    unroll: arguments.Unroll = None,
    fuse: arguments.Fuse = False,
    as_json: arguments.Json = False,
) -> None:
    """Find the best mapping of each operator, or (--fuse) of the network as a whole.

    Says how many mappings were priced, whether the result is proven to be the best of the mapspace
    that docs/mapping_search.md states, and how far it can be from a bound for that mapspace.
    """
    inputs.choice("--objective", objective, tuple(OBJECTIVES))
    method = chosen_method(search, budget, seed)
    architecture = mappable(load_architecture(arch, inputs.overrides(assignments or [])))
    network = load_network(workload)
    if fuse:
        not_chosen(method, "--fuse searches exactly")
        for option, given in (("--unroll", unroll), ("--mapping", mapping)):
            if given:
                raise InputError(Problem("--fuse chooses it for every operator", option))
        run_fused(network, architecture, objective, op, as_json=as_json)
        return
    chosen = only(network, op) if op else network
    chosen, architecture = restricted(chosen, architecture, unroll or [])
    if mapping is None:
        each = map_each(chosen, architecture, price, objective, method)
    else:
        not_chosen(method, "the mapping is given, nothing is searched")
        each = map_as_given(mapping, chosen, architecture, price, objective)
    found = find(chosen, architecture, objective, each)
    if as_json:
        print_json(document(found))
    else:
        print_found(found, nests=op is not None or len(network.operators) == 1)


def run_fused(
    workload: Workload, architecture: Architecture, objective: str, op: str | None, *, as_json: bool
) -> None:
    """The schedule of the whole network instead of one mapping per operator."""
    if op is not None:
        raise InputError(Problem("--fuse is about the whole network; leave out --op", "--fuse"))
    say_if_compiling()
    if architecture.cores > 1:
        run_on_cores(workload, architecture, objective, as_json=as_json)
        return
    found = schedule(workload, architecture, objective)
    metrics = evaluate_plan("analytical", workload, architecture, found.plan)
    if as_json:
        print_json({**metrics_document(metrics), "schedule": schedule_document(found)})
        return
    results().print(f"{workload.name} on {architecture.name}, for least {objective}")
    print_schedule(results(), workload, found, metrics)


def run_on_cores(
    workload: Workload, architecture: Architecture, objective: str, *, as_json: bool
) -> None:
    """The schedule with its units on all cores, beside the best one on a single core."""
    found = place(workload, architecture, objective)
    run = simulated(workload, architecture, found)
    if as_json:
        document = cores_document(found, run) | {"schedule": placed_document(found)}
        print_json(document)
        return
    title = f"{workload.name} on {architecture.cores} cores of {architecture.name}"
    results().print(f"{title}, for least {objective}")
    print_on_cores(results(), found, run)


def only(workload: Workload, name: str) -> Workload:
    """The workload of one of its operators; what others produced becomes an input."""
    operators = {operator.name: operator for operator in workload.operators}
    if name not in operators:
        raise InputError(Problem(unknown("operator", name, list(operators)), where="--op"))
    operator = operators[name]
    kinds = {access.tensor: "input" for access in operator.inputs}
    kinds.setdefault(operator.output.tensor, "output")
    tensors = [tensor for tensor in workload.tensors if tensor.name in kinds]
    return Workload(
        name=f"{workload.name} {name}",
        tensors=tuple(
            tensor if tensor.kind == "weight" else replace(tensor, kind=kinds[tensor.name])
            for tensor in tensors
        ),
        operators=(operator,),
    )


def find(
    workload: Workload,
    architecture: Architecture,
    objective: str,
    each: Iterator[tuple[str, SearchResult]],
) -> Found:
    """Search and price. ``seconds`` are from one result to the next: an operator searched
    meanwhile by another thread, or equal to an earlier one, takes none."""
    searched: dict[str, SearchResult] = {}
    seconds: dict[str, float] = {}
    say_if_compiling()
    started = time.perf_counter()
    check_outermost(workload, architecture)
    try:
        for name, result in each:
            searched[name], seconds[name] = result, time.perf_counter() - started
            started = time.perf_counter()
    except InfeasibleError:
        refused = next(o for o in workload.operators if o.name not in searched)
        print_rejections(workload, refused, architecture)
        raise
    mappings = {name: result.mapping for name, result in searched.items()}
    metrics = cost_model("analytical").evaluate(workload, architecture, mappings)
    return Found(
        workload=workload,
        architecture=architecture,
        searched=searched,
        seconds=seconds,
        metrics=metrics,
        objective=objective,
    )


def document(found: Found) -> dict[str, Any]:
    """The document of ``dse simulate --json``, with each operator's mapping and its proof."""
    plain = metrics_document(found.metrics) | {"folded": list(found.workload.folded)}
    for entry in plain["operators"]:
        result = found.searched[entry["name"]]
        operator = found.workload.operator(entry["name"])
        run = execution(found.workload, operator, found.architecture)
        entry |= {
            "mapping": nest_document(run, result.mapping),
            "calls": result.calls,
            "optimal": result.optimal,
            "objective": found.objective,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "seconds": found.seconds[entry["name"]],
        }
    return plain


def print_found(found: Found, *, nests: bool) -> None:
    console = results()
    console.print(f"{found.workload.name} on {found.architecture.name}")
    rows = (row(found, name) for name in found.searched)
    console.print(table("", COLUMNS, rows))
    if any(result.outside for result in found.searched.values()):
        console.print(OUTSIDE)
    if not nests:
        console.print("The loop nest of one operator: add --op NAME.")
        return
    for name, result in found.searched.items():
        operator = found.workload.operator(name)
        run = execution(found.workload, operator, found.architecture)
        console.print("\n".join(nest_lines(run, result.mapping)))


def row(found: Found, name: str) -> tuple[str, ...]:
    result = found.searched[name]
    cost = next(o for o in found.metrics.operators if o.name == name)
    return (
        name,
        format_time_ps(cost.latency_ps),
        format_energy_pj(cost.energy_pj),
        cost.bound_by,
        f"{result.calls:,}",
        _standing(result),
        f"{100 * (result.gap if result.outside else max(0.0, result.gap)):.2f} %",
        f"{found.seconds[name]:.2f}",
    )


def _standing(result: SearchResult) -> str:
    if result.outside:
        return "outside"
    return "proven" if result.optimal else "no"
