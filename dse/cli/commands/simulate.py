"""``dse simulate``: a workload on an architecture, at one fidelity."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from arch.errors import InputError, Problem
from arch.load import load_architecture
from arch.spec import Architecture
from dse.cli import arguments, engines, inputs, views
from dse.cli.compiling import say_if_compiling
from dse.cli.console import print_json, results
from dse.cli.pictures import Pictures
from dse.cli.searching import chosen_method, not_chosen
from dse.cli.stream import run_stream
from dse.document import metrics_document
from dse.simulation import Simulation, Way, simulate
from dse.stream_workload import check_no_stream, is_stream
from dse.tokens import flops_utilization, token_rates
from mapper.cost import InfeasibleError
from mapper.search.exact import OBJECTIVES
from mapper.search.method import EXACT, Method
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.kernel_models import runs_kernels
from sim.models import EVENT, FIDELITIES

#: What mappings minimise unless told otherwise.
OBJECTIVE = "edp"


def run(
    arch: arguments.Arch,
    workload: arguments.Workload,
    fidelity: arguments.Fidelity = EVENT,
    objective: arguments.Objective = OBJECTIVE,
    search: arguments.Search = EXACT.name,
    budget: arguments.Budget = None,
    seed: arguments.Seed = None,
    assignments: arguments.Assignments = None,
    engine: arguments.Engine = None,
    fuse: arguments.Fuse = False,
    mapping: arguments.Mapping = None,
    planner: arguments.Planner = None,
    ram_limit: arguments.RamLimit = None,
    latency_limit: arguments.LatencyLimit = None,
    tradeoffs: arguments.Tradeoffs = False,
    memory_map: arguments.MemoryMap = None,
    write_plan: arguments.WritePlan = None,
    trace: arguments.Trace = None,
    trace_window: arguments.TraceWindow = None,
    timeline: arguments.Timeline = None,
    as_json: arguments.Json = False,
) -> None:
    """Simulate a workload on an architecture.

    Every operator (with --fuse, the network as a whole) gets its best mapping first, or one that
    is given; the chosen model then says what the run costs. With --workload
    stream:bytes=N,pattern=sequential|random, requests go straight to a memory.
    """
    method = chosen_method(search, budget, seed)
    _check(workload, fidelity, objective, fuse=fuse, mapping=mapping, method=method)
    pictures = Pictures.asked(trace, trace_window, timeline)
    limits = {"ram_limit": ram_limit, "latency_limit": latency_limit, "tradeoffs": tradeoffs}
    memory = limits | {"planner": planner, "memory_map": memory_map}
    architecture = _architecture(arch, assignments, memory)
    if write_plan is not None:
        _needed("dse.cli.offline_plan").check(write_plan, workload, architecture)
    if is_stream(workload):
        _stream(architecture, workload, engine, pictures, as_json=as_json)
        return
    pictures.check_fidelity(fidelity)
    network = load_workload(workload)
    _check_kernels(architecture, engine, fidelity, objective)
    way = _way(architecture, engines.chosen(engine, fidelity), mapping, method, fuse=fuse)
    simulation = _simulated(network, architecture, fidelity, objective, way)
    pictures.write(network, architecture, simulation)
    _write_memory(network, architecture, memory_map, write_plan, workload)
    _show(network, architecture, simulation, tradeoffs=tradeoffs, as_json=as_json)


def _architecture(arch: str, assignments: list[str] | None, memory: dict[str, Any]) -> Architecture:
    architecture = load_architecture(arch, inputs.overrides(assignments or []))
    if any(memory.values()):
        architecture = _needed("dse.cli.memory_options").checked(architecture, memory)
    return architecture


def _write_memory(
    network: Workload,
    architecture: Architecture,
    memory_map: Path | None,
    write_plan: Path | None,
    workload: str,
) -> None:
    """The files about a microcontroller's memory that were asked for."""
    if memory_map is not None:
        _needed("dse.cli.memory_options").draw_map(network, architecture, memory_map)
    if write_plan is not None:
        _needed("dse.cli.offline_plan").write(write_plan, workload, network, architecture)


def _stream(
    architecture: Architecture,
    workload: str,
    engine: str | None,
    pictures: Pictures,
    *,
    as_json: bool,
) -> None:
    pictures.refuse("a stream of requests has no timeline")
    engines.refuse(engine, "a stream goes through a memory's controller, in compiled code only")
    run_stream(architecture, workload, as_json=as_json)


def _check(
    workload: str,
    fidelity: str,
    objective: str,
    *,
    fuse: bool,
    mapping: str | None,
    method: Method,
) -> None:
    """Known names; a stream has nothing that could be mapped, and one model."""
    inputs.choice("--fidelity", fidelity, tuple(FIDELITIES))
    inputs.choice("--objective", objective, tuple(OBJECTIVES))
    if not is_stream(workload):
        check_no_stream(workload)
        return
    refused = {
        "--fidelity": fidelity != EVENT,
        "--objective": objective != OBJECTIVE,
        "--fuse": fuse,
        "--mapping": mapping is not None,
        "--search": method.name != EXACT.name,
    }
    reason = "a stream of requests has no operators; its commands are simulated one by one"
    problems = [Problem(reason, where=option) for option, given in refused.items() if given]
    if problems:
        raise InputError(problems)


def _simulated(
    network: Workload, architecture: Architecture, fidelity: str, objective: str, way: Way
) -> Simulation:
    try:
        return simulate(network, architecture, fidelity, objective, way)
    except InfeasibleError:
        if runs_kernels(architecture):
            _needed("dse.cli.memory_options").advise(network, architecture)
        raise


def _way(
    architecture: Architecture, engine: str, mapping: str | None, method: Method, *, fuse: bool
) -> Way:
    """``InputError`` for a mapping or a search that would be ignored."""
    several = architecture.cores > 1
    if fuse or several or runs_kernels(architecture):
        reason = "--fuse chooses" if fuse else f"{architecture.name}'s library chooses"
        if several:
            reason = f"with {architecture.cores} cores, the search that places units chooses"
        if mapping:
            raise InputError(Problem(f"{reason} it for every operator", where="--mapping"))
        not_chosen(method, f"{reason} every operator's mapping")
    if mapping:
        not_chosen(method, "the mapping is given, nothing is searched")
    return Way(engine=engine, fuse=fuse, method=method, given=mapping)


def _rates(network: Workload, architecture: Architecture, simulation: Simulation) -> dict[str, Any]:
    """MFU of a GPU, and what a language model costs per token."""
    rates = token_rates(network, simulation.metrics)
    used = flops_utilization(architecture, simulation.metrics)
    found = {} if used is None else {"mfu": used}
    return found | ({} if rates is None else asdict(rates))


def _check_kernels(
    architecture: Architecture, engine: str | None, fidelity: str, objective: str
) -> None:
    """What is said before anything is computed that takes time."""
    if runs_kernels(architecture):
        engines.refuse(engine, f"{architecture.name} runs kernels of a library: no events")
        if objective != OBJECTIVE:
            reason = f"{architecture.name} runs kernels of a library, which nothing maps"
            raise InputError(Problem(reason, where="--objective"))
    else:
        say_if_compiling("mapper" if fidelity != EVENT else "sim")


def _show(
    network: Workload,
    architecture: Architecture,
    simulation: Simulation,
    *,
    tradeoffs: bool,
    as_json: bool,
) -> None:
    metrics = simulation.metrics
    if as_json:
        more = {"folded": list(network.folded)} | _rates(network, architecture, simulation)
        if runs_kernels(architecture):
            more |= _needed("dse.cli.memory_options").note_document(network, architecture)
        if tradeoffs:
            more["tradeoffs"] = _needed("dse.cli.memory_options").tradeoffs_document(
                network, architecture
            )
        print_json(metrics_document(metrics) | more | simulation.schedule_document())
        return
    if simulation.schedule is not None:
        schedules = _needed("dse.cli.schedules")
        results().print("schedule, by the analytical model that it was searched with")
        for name, text in schedules.totals(simulation.schedule):
            results().print(f"  {name:<12} {text}")
    views.print_metrics(results(), network, architecture, metrics)
    if simulation.placed is not None:
        _needed("dse.cli.schedules").print_cores(results(), simulation.placed)
    for name, text in views.rates(network, architecture, metrics):
        results().print(f"  {name:<12} {text}")
    if runs_kernels(architecture):
        _needed("dse.cli.memory_options").show(network, architecture, tradeoffs=tradeoffs)


def _needed(module: str) -> Any:
    """Modules that few runs need (for microcontrollers, fused networks) and that import much."""
    return importlib.import_module(module)
