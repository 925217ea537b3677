"""What no schedule of a workload can beat, whatever is fused and kept on the chip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from arch.spec import Architecture
from mapper.cost import PriceList
from mapper.fusion import Box
from mapper.fusion_regions import around, piece, producing, reading
from mapper.hierarchy import Execution, execution
from mapper.placement import tensor_bits
from mapper.program import Work
from mapper.search import pricing
from mapper.search.bound import least_work
from mapper.search.coefficients import Coefficients
from mapper.search.space import stage_orders
from mapper.search.units import Cost
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """Per operator, in order: how long it occupies its unit and each memory on the chip, and the
    energy of its operations and of what it moves there; per unit and memory the times add up.
    ``outer`` is the time and energy of moving between the outermost memory and the chip what
    cannot stay on it, by the first operator that needs it."""

    computing: tuple[tuple[Mapping[str, float], float], ...]
    outer: tuple[tuple[float, float], ...]
    leakage_w: float

    def from_operator(self, position: int) -> Cost:
        """For the operators from ``position`` on, whatever went before."""
        busy: dict[str, float] = {}
        energy = 0.0
        for times_ps, pj in self.computing[position:]:
            for port, time_ps in times_ps.items():
                busy[port] = busy.get(port, 0.0) + time_ps
            energy += pj
        moving = sum(time for time, _ in self.outer[position:])
        latency = max(*busy.values(), moving) if busy else 0.0
        energy += sum(pj for _, pj in self.outer[position:])
        return Cost(math.floor(latency), energy + self.leakage_w * latency)


def least(workload: Workload, architecture: Architecture, price: PriceList) -> Least:
    """The bound for this order of operators."""
    seen: set[str] = set()
    computing, outer = [], []
    outermost = price(architecture.memories[0])
    needed = needed_of(workload)
    for operator in workload.operators:
        run = execution(workload, needed[operator.name], architecture)
        computing.append(_on_chip(run, price))
        work = _compulsory(workload, run, seen)
        busy = max(outermost.occupancy(work).values())
        # A port rounds up once per request; sums of requests are compared with less.
        outer.append((float(max(busy - 1, 0)), outermost.energy_pj(work)))
    return Least(computing=tuple(computing), outer=tuple(outer), leakage_w=architecture.leakage_w)


def _on_chip(run: Execution, price: PriceList) -> tuple[Mapping[str, float], float]:
    """Whatever is fused or kept: an operator reads its operands from a memory on the chip at
    least as often as one mapping of all its loops must, if nothing else is on the chip.

    A part of its loops shares no more of what it reads than all of them can.
    """
    unit = price(run.compute)
    busy = {run.compute.name: float(_steps(run) * unit.step_ps)}
    energy = float(_operations(run) * unit.operation_pj)
    if any(len(path) < 2 for path in run.paths):
        return busy, energy
    inner = replace(run, paths=tuple(path[1:] for path in run.paths), memories=run.memories[1:])
    orders = tuple(stage_orders(inner))
    coefficients = Coefficients(run=inner, leakage_w=0.0, price=price, objective=pricing.ENERGY)
    ports, moving = least_work(orders, tuple(coefficients.model(order) for order in orders))
    return busy | ports, max(energy, moving)


def needed_of(workload: Workload) -> dict[str, Operator]:
    """Each operator without what nobody reads (a strided reader may skip the last rows)."""
    shapes = {tensor.name: tensor.shape for tensor in workload.tensors}
    boxes: dict[str, Box] = {}
    for operator in reversed(workload.operators):
        box: Box = {dim: (0, extent) for dim, extent in operator.extents.items()}
        result = operator.output.tensor
        regions = [
            reading(access, boxes[reader.name], shapes[result])
            for reader in workload.operators
            for access in reader.inputs
            if access.tensor == result and reader.name in boxes
        ]
        if regions and workload.tensor(result).kind == "activation":
            box = producing(operator, around(regions))
        boxes[operator.name] = box
    return {o.name: piece(o, boxes[o.name], shapes) for o in workload.operators}


def _operations(run: Execution) -> float:
    return float(run.operator.points * run.ops_per_point)


def _steps(run: Execution) -> float:
    """Issues with as many lanes in use as the operator's loops can fill."""
    lanes = 1
    for axis in run.intrinsic.axes:
        usable = math.prod(
            extent
            for dim, extent in run.operator.extents.items()
            if run.operator.dim_class(dim) in axis.dim_classes
        )
        lanes *= min(axis.size, usable)
    return float(-(-run.operator.points // lanes) * run.issues_per_point)


def _compulsory(workload: Workload, run: Execution, seen: set[str]) -> Work:
    """Traffic of tensors that come from outside or go there, at their first use."""
    read = written = 0.0
    for number, access in enumerate(run.operator.accesses):
        tensor = workload.tensor(access.tensor)
        used = float(run.counts.operands[number].elements * run.bits[number])
        if number == run.output:
            written += used if tensor.kind == "output" else 0.0
        elif tensor.kind in ("input", "weight") and tensor.name not in seen:
            read += min(used, float(tensor_bits(tensor)))
            seen.add(tensor.name)
    return Work(read_bits=math.floor(read), write_bits=math.floor(written))
