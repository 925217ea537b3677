"""What no mapping of a workload could beat: analytic costs of designs that are not simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.hierarchy import Execution, execution
from mapper.lower import aside_work
from mapper.program import Program, Work
from mapper.search.least import least, needed_of
from mapper.workload.graph import Workload
from sim import roofline
from sim.kernel_models import evaluate, runs_kernels
from sim.lowered import Lowered
from sim.ports import Prices
from sim.prices import price, price_all


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCosts:
    """Lower bounds of a workload's time and energy."""

    latency_ps: int
    energy_pj: float


def least_costs(
    workload: Workload, architecture: Architecture, fidelity: str, *, fused: bool
) -> LeastCosts:
    """Of what runs at a fidelity: kernels; whole schedules, if operators are ``fused`` or there
    are several cores, on which they are; else operators one after the other: roofline time, and
    energy of the operations and of moving each operand once off chip.

    Raises ``InfeasibleError`` if no unit can do some operation at all.
    """
    if runs_kernels(architecture):
        metrics = evaluate(workload, architecture, {}, "roofline")
        return LeastCosts(latency_ps=metrics.latency_ps, energy_pj=metrics.energy_pj)
    if fused or architecture.cores > 1:
        return _least_of_schedules(workload, architecture, fidelity)
    prices = price_all(architecture, price)
    runs = [execution(workload, operator, architecture) for operator in workload.operators]
    latency = sum(roofline.estimate(_unmapped(run), prices).latency_ps for run in runs)
    dynamic = sum(_energy_pj(run, prices) for run in runs)
    return LeastCosts(latency_ps=latency, energy_pj=dynamic + architecture.leakage_w * latency)


def _least_of_schedules(
    workload: Workload, architecture: Architecture, fidelity: str
) -> LeastCosts:
    """Whatever is fused and stays on the chip. Cores share what happens on the chip evenly at
    best, and the port of the outermost memory in any case."""
    found = least(workload, architecture, price)
    timed: Iterator[Mapping[str, float]] = (times for times, _ in found.computing)
    if fidelity == "roofline":
        timed = _at_full_rate(workload, architecture)
    on_chip = max(_sums(timed).values(), default=0.0) / architecture.cores
    latency = max(on_chip, sum(time_ps for time_ps, _ in found.outer))
    dynamic = sum(pj for _, pj in (*found.computing, *found.outer))
    energy = dynamic + architecture.leakage_w * latency
    return LeastCosts(latency_ps=math.floor(latency), energy_pj=energy)


def _at_full_rate(workload: Workload, architecture: Architecture) -> Iterator[Mapping[str, float]]:
    """How long a roofline has each operator's unit busy, with every lane in use."""
    needed = needed_of(workload)
    for operator in workload.operators:
        run = execution(workload, needed[operator.name], architecture)
        lanes = math.prod(axis.size for axis in run.intrinsic.axes)
        steps = -(-run.operator.points // lanes) * run.issues_per_point
        yield {run.compute.name: float(steps * price(run.compute).step_ps)}


def _sums(parts: Iterator[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for port, time_ps in part.items():
            total[port] = total.get(port, 0.0) + time_ps
    return total


def _unmapped(run: Execution) -> Lowered:
    return Lowered(execution=run, program=Program(operator=run.operator.name, body=()), work={})


def _energy_pj(run: Execution, prices: Prices) -> float:
    operations = run.operator.points * run.ops_per_point
    compute = prices[run.compute.name].energy_pj(Work(operations=operations))
    for aside in run.asides:
        work = aside_work(aside, run.operator.extents)
        compute += prices[aside.compute.name].energy_pj(work)
    moved = (prices[p[0].name].energy_pj(_once(run, i)) for i, p in enumerate(run.paths))
    return compute + sum(moved)


def _once(run: Execution, operand: int) -> Work:
    bits = run.counts.operands[operand].elements * run.bits[operand]
    return Work(write_bits=bits) if operand == run.output else Work(read_bits=bits)
