"""The contract between mapper and cost models, and what a cost model answers."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from arch.dram_device import DramDevice
from arch.spec import PLAIN, Arbiter, Architecture, Banks, Component
from mapper.mapping import Mapping
from mapper.program import Work
from mapper.workload.graph import Workload

#: operator name -> its mapping
Mappings = MappingABC[str, Mapping]


class InfeasibleError(Exception):
    """The hardware cannot run this; says which limit, how much is needed and how much allowed.

    A state, not a bug: a search records it and goes on. ``violation`` is needed/allowed - 1,
    the constraint value that a sampler learns from; ``calls`` of the cost model were spent on
    finding out.
    """

    def __init__(self, *, limit: str, needed: float, allowed: float, detail: str) -> None:
        amounts = f"needs {_plain(needed)}, allowed {_plain(allowed)} ({detail})"
        super().__init__(f"{limit}: {amounts if allowed > 0 else detail}")
        self.limit = limit
        self.needed = needed
        self.allowed = allowed
        self.detail = detail
        self.calls = 0

    @property
    def violation(self) -> float:
        return self.needed / self.allowed - 1 if self.allowed > 0 else self.needed

    def __reduce__(self) -> tuple[object, ...]:
        amounts = (self.limit, self.needed, self.allowed, self.detail)
        return _rebuild_infeasible, amounts, {"calls": self.calls}


def _plain(amount: float) -> str:
    """Whole numbers (bytes, cells) in full, others to six digits."""
    return f"{int(amount):,}" if float(amount).is_integer() else f"{amount:,.6g}"


def _rebuild_infeasible(limit: str, needed: float, allowed: float, detail: str) -> InfeasibleError:
    return InfeasibleError(limit=limit, needed=needed, allowed=allowed, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A component's entry in the price list: time and energy, linear in its work.

    Times are exact fractions of a picosecond per bit (``None``: never the bottleneck) or per
    step; a port's occupancy is rounded up once per request. Linearity is what lets a search
    price millions of mappings at once and what orders the fidelities: the price of a sum is
    never more than the sum of the prices. ``turnaround_ps`` passes between two folds, in which
    the unit does nothing: it is for simulations, as is ``device``: they ask it instead of using
    the memory's times, which are then its peak rate and its least latency; so are ``arbiter`` and
    ``banks``, which share the memory's rate. An operation has the largest ``latency_ps`` of the
    components that it reads or computes with, and every ``transit_ps`` on its way. Writes are
    posted: they are done when their data is there, and who reads it again waits for that read.
    """

    read_ps_per_bit: Fraction = Fraction(0)
    write_ps_per_bit: Fraction = Fraction(0)
    shared_port: bool = False
    step_ps: int = 0
    fold_ps: int = 0
    turnaround_ps: int = 0
    latency_ps: int = 0
    transit_ps: int = 0
    read_pj_per_bit: float = 0.0
    write_pj_per_bit: float = 0.0
    operation_pj: float = 0.0
    device: DramDevice | None = None
    arbiter: Arbiter = PLAIN
    banks: Banks | None = None

    def occupancy(self, work: Work) -> dict[str, int]:
        """Picoseconds that the work keeps each port busy; ``""`` is an only or shared port."""
        read = work.read_bits * self.read_ps_per_bit
        write = work.write_bits * self.write_ps_per_bit
        steps = _ceil(work.steps * self.step_ps) + work.folds * self.fold_ps
        if self.shared_port:
            return {"": _ceil(read + write + steps)}
        return {"read": _ceil(read), "write": _ceil(write), "": steps}

    def energy_pj(self, work: Work) -> float:
        return (
            work.read_bits * self.read_pj_per_bit
            + work.write_bits * self.write_pj_per_bit
            + work.operations * self.operation_pj
        )


def _ceil(value: Fraction | int) -> int:
    return -int(-value // 1)


class PriceList(Protocol):
    """Prices every component of an architecture (implemented by ``sim.prices``)."""

    def __call__(self, component: Component) -> Price: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentMetrics:
    """Totals of one component over the run."""

    busy_ps: int
    energy_pj: float
    read_bytes: int
    write_bytes: int
    utilization: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMetrics:
    """One operator's share. ``bound_by`` names the component (or ``latency``) that limits it.

    ``gap`` says, in picoseconds by cause, why the event model's latency is more than the
    analytical one's: the parts add up to the difference. It is empty at other fidelities.
    ``kind`` is what runs where the workload has no operator of that name.
    """

    name: str
    latency_ps: int
    energy_pj: float
    bound_by: str
    macs: int
    components: MappingABC[str, ComponentMetrics] = field(repr=False)
    gap: MappingABC[str, int] = field(default_factory=dict)
    kind: str = "fused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What a run costs. ``energy_pj`` is dynamic energy plus leakage over the latency.

    ``engine`` ran the simulation (None: nothing was simulated). ``area_without`` names parts of the
    chip whose area is not known, ``notes`` say what was counted as something else.
    """

    fidelity: str
    latency_ps: int
    energy_pj: float
    dynamic_energy_pj: float
    area_mm2: float
    power_w: float
    macs: int
    memory: MappingABC[str, int]
    components: MappingABC[str, ComponentMetrics]
    operators: tuple[OperatorMetrics, ...]
    engine: str | None = None
    area_without: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> dict[str, int]:
        """The operators' gaps by cause, summed: event latency minus analytical latency."""
        total: dict[str, int] = {}
        for operator in self.operators:
            for cause, ps in operator.gap.items():
                total[cause] = total.get(cause, 0) + ps
        return total


class CostModel(Protocol):
    """A pure function from (workload, architecture, mappings) to metrics.

    Raises ``InfeasibleError`` when the hardware cannot run the mapping; any other exception
    is a bug.
    """

    @property
    def fidelity(self) -> str: ...

    def evaluate(
        self, workload: Workload, architecture: Architecture, mappings: Mappings
    ) -> Metrics: ...
