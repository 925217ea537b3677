"""What a plan costs: single operators and fused groups, tensors at home on the chip."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from arch.datatypes import Bits
from arch.spec import Architecture
from mapper.cost import Metrics, PriceList
from mapper.fusion import FusedMapping
from mapper.fusion_lower import LoweredGroup, lower_group, plan_group
from mapper.lower import lower_execution
from mapper.mapping import Mapping
from mapper.order import reordered
from mapper.placement import Homes, Occupied, placed
from mapper.plan import Plan, Unit, operators_of
from mapper.program import Program, Work
from mapper.workload.graph import Workload
from mapper.workload.same_work import same_work
from sim import analytical, event
from sim.engines import DEFAULT
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.memory import check_outermost
from sim.metrics import Run, assemble
from sim.models import EVENT, FIDELITIES
from sim.ports import ports_of
from sim.prices import price, price_all


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredUnit:
    """One unit of a plan with its program."""

    name: str
    macs: int
    lowered: Lowered


def evaluate_plan(
    fidelity: str,
    workload: Workload,
    architecture: Architecture,
    plan: Plan,
    *,
    price_of: PriceList = price,
    engine: str = DEFAULT,
) -> Metrics:
    """As ``CostModel.evaluate``, for a plan; a fused group is one entry of ``operators``.

    Raises ``InfeasibleError`` if something does not fit.
    """
    in_order = _in_order(workload, plan)
    on_chip = plan.on_chip(workload)
    check_outermost(in_order, architecture, on_chip)
    prices = price_all(architecture, price_of)
    is_event = fidelity == EVENT
    estimate = partial(event.estimate, engine=engine) if is_event else FIDELITIES[fidelity]
    known: dict[Hashable, Estimate] = {}
    runs = []
    for unit in lowered_units(workload, architecture, plan):
        key = id(unit.lowered)
        if key not in known:
            known[key] = estimate(unit.lowered, prices)
        runs.append(Run(name=unit.name, macs=unit.macs, lowered=unit.lowered, estimate=known[key]))
    metrics = assemble(fidelity, in_order, architecture, prices, runs, on_chip)
    return replace(metrics, engine=engine if is_event else None)


def _in_order(workload: Workload, plan: Plan) -> Workload:
    """The workload in the plan's order; ``ValueError`` unless the plan covers it once."""
    names = [operator.name for operator in workload.operators]
    if sorted(plan.order) != sorted(names):
        wrong = sorted(set(names) ^ set(plan.order))
        raise ValueError(f"{workload.name}: the plan and the workload differ in {wrong}")
    return reordered(workload, plan.order)


def lowered_units(
    workload: Workload, architecture: Architecture, plan: Plan
) -> Iterator[LoweredUnit]:
    """Units in order; equal ones share one ``Lowered``."""
    known: dict[Hashable, Lowered] = {}
    for unit, occupied in zip(plan.units, plan.occupied(workload), strict=True):
        key = unit_key(workload, unit, plan.homes, occupied)
        if key not in known:
            known[key] = lower_unit(workload, architecture, unit, plan.homes, occupied)
        macs = sum(workload.operator(name).macs for name in operators_of(unit))
        yield LoweredUnit(name=unit_name(unit), macs=macs, lowered=known[key])


def unit_name(unit: Unit) -> str:
    return unit.name if isinstance(unit, FusedMapping) else unit.operator


def unit_key(workload: Workload, unit: Unit, homes: Homes, occupied: Occupied) -> Hashable:
    """Equal for units that cost the same."""
    mappings = unit.mappings if isinstance(unit, FusedMapping) else (unit,)
    numbers: dict[str, int] = {}
    operators = []
    for name, mapping in zip(operators_of(unit), mappings, strict=True):
        operator = workload.operator(name)
        tensors = tuple(
            (numbers.setdefault(access.tensor, len(numbers)), homes.get(access.tensor))
            for access in operator.accesses
        )
        operators.append((operator.kind, same_work(workload, operator), tensors, mapping.choices))
    group: Hashable = None
    if isinstance(unit, FusedMapping):
        resident = tuple(numbers[tensor] for tensor in unit.resident)
        group = unit.tiles, unit.memory, resident, unit.retained
    return tuple(operators), group, tuple(sorted(occupied.items()))


def lower_unit(
    workload: Workload,
    architecture: Architecture,
    unit: Unit,
    homes: Homes,
    occupied: Occupied,
) -> Lowered:
    match unit:
        case Mapping():
            return _lower_single(workload, architecture, unit, homes, occupied)
        case FusedMapping():
            plan = plan_group(workload, unit, architecture, homes, occupied)
            return _of_group(lower_group(plan, unit, architecture), architecture)


def _lower_single(
    workload: Workload,
    architecture: Architecture,
    mapping: Mapping,
    homes: Homes,
    occupied: Occupied,
) -> Lowered:
    operator = workload.operator(mapping.operator)
    run = placed(workload, operator, architecture, homes, occupied)
    program = lower_execution(run, mapping)
    peak = {m: bits + occupied.get(m, 0) for m, bits in program.peak_bits.items()}
    kept = Program(operator=program.operator, body=program.body, peak_bits={**occupied, **peak})
    return Lowered(execution=run, program=kept, work=program.total_work())


def _of_group(group: LoweredGroup, architecture: Architecture) -> Lowered:
    first, *others = group.executions
    return Lowered(
        execution=first,
        program=group.program,
        work=group.program.total_work(),
        others=tuple(others),
        loaded={architecture.memories[0].name: _loaded(group)},
    )


def _loaded(group: LoweredGroup) -> Work:
    """Each resident tensor once: as much of it as any of its readers needs."""
    bits: dict[str, Bits] = {}
    for run in group.executions:
        for operand, access in enumerate(run.operator.inputs):
            if access.tensor in (*group.plan.once, *group.plan.sliding):
                used = run.counts.operands[operand].elements * run.bits[operand]
                bits[access.tensor] = max(bits.get(access.tensor, 0), used)
    return Work(read_bits=sum(bits.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedUnit:
    """One unit by the analytical model; ``outer_ps`` is how long it keeps the outermost memory
    busy."""

    latency_ps: int
    dynamic_pj: float
    outer_ps: int


def priced_unit(
    workload: Workload,
    architecture: Architecture,
    unit: Unit,
    homes: Homes,
    occupied: Occupied,
) -> PricedUnit:
    prices = price_all(architecture, price)
    lowered = lower_unit(workload, architecture, unit, homes, occupied)
    estimate = analytical.estimate(lowered, prices)
    outer = ports_of(architecture.memories[0].name)
    return PricedUnit(
        latency_ps=estimate.latency_ps,
        dynamic_pj=math.fsum(prices[name].energy_pj(work) for name, work in lowered.work.items()),
        outer_ps=max(estimate.busy_ps.get(port, 0) for port in outer),
    )


class KnownUnits:
    """Latency and energy of units, for searches; keeps what equal units cost."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PricedUnit] = {}

    def __call__(
        self,
        workload: Workload,
        architecture: Architecture,
        unit: Unit,
        homes: Homes,
        occupied: Occupied,
    ) -> tuple[int, float]:
        found = self.priced(workload, architecture, unit, homes, occupied)
        return found.latency_ps, found.dynamic_pj + architecture.leakage_w * found.latency_ps

    def priced(
        self,
        workload: Workload,
        architecture: Architecture,
        unit: Unit,
        homes: Homes,
        occupied: Occupied,
    ) -> PricedUnit:
        key = unit_key(workload, unit, homes, occupied)
        if key not in self._known:
            self._known[key] = priced_unit(workload, architecture, unit, homes, occupied)
        return self._known[key]
