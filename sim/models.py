"""The cost models: three fidelities over one price list."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial

from arch.errors import InputError, Problem, unknown
from arch.spec import Architecture
from mapper.cost import CostModel, Mappings, Metrics, PriceList
from mapper.workload.graph import Workload
from sim import analytical, event, roofline
from sim.engines import DEFAULT, ENGINES
from sim.estimate import Estimate
from sim.lowered import Lowered, lower_operator, operators_with_mappings
from sim.memory import check_outermost
from sim.metrics import Run, assemble
from sim.ports import Prices
from sim.prices import price, price_all

#: The fidelity that simulates, with an engine of ``sim.engines``.
EVENT = "event"
#: In the order of what they take into account: each is at most the next in latency.
FIDELITIES: dict[str, Callable[[Lowered, Prices], Estimate]] = {
    "roofline": roofline.estimate,
    "analytical": analytical.estimate,
    EVENT: event.estimate,
}


def cost_model(fidelity: str, price_of: PriceList = price, *, engine: str = DEFAULT) -> CostModel:
    """The model of that name; ``InputError`` if there is none. ``engine`` runs simulations."""
    for kind, name, known in (("fidelity", fidelity, FIDELITIES), ("engine", engine, ENGINES)):
        if name not in known:
            raise InputError(Problem(unknown(kind, name, list(known)), kind))
    if fidelity == EVENT:
        simulate = partial(event.estimate, engine=engine)
        return _Model(fidelity=fidelity, estimate=simulate, price_of=price_of, engine=engine)
    return _Model(fidelity=fidelity, estimate=FIDELITIES[fidelity], price_of=price_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    fidelity: str
    estimate: Callable[[Lowered, Prices], Estimate]
    price_of: PriceList
    engine: str | None = None

    def evaluate(
        self, workload: Workload, architecture: Architecture, mappings: Mappings
    ) -> Metrics:
        """Operators that differ only in names are lowered and estimated once."""
        check_outermost(workload, architecture)
        prices = price_all(architecture, self.price_of)
        known: dict[Hashable, tuple[Lowered, Estimate]] = {}
        runs = []
        for operator, mapping, signature in operators_with_mappings(workload, mappings):
            if signature not in known:
                lowered = lower_operator(workload, operator, mapping, architecture)
                known[signature] = lowered, self.estimate(lowered, prices)
            lowered, estimate = known[signature]
            runs.append(
                Run(name=operator.name, macs=operator.macs, lowered=lowered, estimate=estimate)
            )
        metrics = assemble(self.fidelity, workload, architecture, prices, runs)
        return replace(metrics, engine=self.engine)
