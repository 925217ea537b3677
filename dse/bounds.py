"""What no mapping of a workload could beat: analytic costs of designs that are not simulated."""

from __future__ import annotations

from dataclasses import dataclass

from arch.spec import Architecture
from mapper.hierarchy import Execution, execution
from mapper.lower import aside_work
from mapper.program import Program, Work
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


def least_costs(workload: Workload, architecture: Architecture) -> LeastCosts:
    """Roofline time, shared evenly by the cores; energy of the operations and of moving each
    operand once off chip.

    Raises ``InfeasibleError`` if no unit can do some operation at all.
    """
    if runs_kernels(architecture):
        metrics = evaluate(workload, architecture, {}, "roofline")
        return LeastCosts(latency_ps=metrics.latency_ps, energy_pj=metrics.energy_pj)
    prices = price_all(architecture, price)
    runs = [execution(workload, operator, architecture) for operator in workload.operators]
    latency = sum(roofline.estimate(_unmapped(run), prices).latency_ps for run in runs)
    latency = -(-latency // architecture.cores)
    dynamic = sum(_energy_pj(run, prices) for run in runs)
    return LeastCosts(latency_ps=latency, energy_pj=dynamic + architecture.leakage_w * latency)


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
