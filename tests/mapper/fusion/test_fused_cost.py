"""What a fused group costs: the order of the fidelities, traffic, room."""

from __future__ import annotations

import numpy as np
import pytest

from mapper.cost import InfeasibleError
from mapper.fusion import FusedMapping, group_of
from mapper.fusion_lower import plan_group
from mapper.legality import MappingError
from mapper.mapping import Loop, Mapping, Stage
from mapper.plan import Plan
from mapper.workload.operators import Operator
from sim.engine import simulate
from sim.models import FIDELITIES
from sim.plan import evaluate_plan, lowered_units
from sim.prices import price, price_all
from sim.schedule import build_schedule
from tests.mapper.fusion.cases import device, network, random_fused
from tests.mapper.fusion.networks import NETWORKS
from tests.mapper.hardware import resized

#: A second buffer makes programs long: two networks on it will do.
CASES = [
    *((name, "weight_stationary") for name in NETWORKS),
    ("residual", "output_stationary"),
    ("strided", "output_stationary"),
    ("attention", "two_buffers"),
    ("mlp", "two_buffers"),
]


@pytest.mark.parametrize(("name", "hardware"), CASES)
def test_fidelities_are_ordered_and_spend_the_same(name: str, hardware: str) -> None:
    workload, where = network(name), device(hardware)
    rng = np.random.default_rng(list(NETWORKS).index(name))
    for _ in range(2):
        plan = Plan(units=(random_fused(workload, where, rng),))
        runs = [evaluate_plan(f, workload, where, plan) for f in FIDELITIES]
        latencies = [run.latency_ps for run in runs]
        assert latencies == sorted(latencies)
        assert latencies[0] > 0
        assert len({run.dynamic_energy_pj for run in runs}) == 1


@pytest.mark.parametrize("name", ["conv conv", "residual", "attention"])
def test_skipping_ahead_changes_nothing(name: str) -> None:
    workload, where = network(name), device()
    rng = np.random.default_rng(7)
    for _ in range(3):
        plan = Plan(units=(random_fused(workload, where, rng),))
        for unit in lowered_units(workload, where, plan):
            schedule = build_schedule(unit.lowered.program, price_all(where, price))
            assert simulate(schedule) == simulate(schedule, skip_ahead=False)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_passes_inside_never_reaches_the_outermost_memory(name: str) -> None:
    """With all from outside resident and kept, each of its bytes is read once."""
    workload, where = network(name), device()
    rng = np.random.default_rng(3)
    names = tuple(o.name for o in workload.operators)
    external = group_of(workload, names).external
    fused = random_fused(workload, where, rng)
    while (
        set(fused.resident) != set(external)
        or not fused.retained
        or len(fused.tiles) > 1
        or brings_sums_out(workload.operators[-1], fused.mappings[-1])
    ):
        fused = random_fused(workload, where, rng)
    metrics = evaluate_plan("analytical", workload, where, Plan(units=(fused,)))
    sizes = {t.name: t.elements for t in workload.tensors}
    dram = metrics.components["dram"]
    assert dram.write_bytes == sizes[workload.operators[-1].output.tensor]
    assert dram.read_bytes <= sum(sizes[tensor] for tensor in external)


def brings_sums_out(operator: Operator, mapping: Mapping) -> bool:
    """Do partial sums leave the chip, because a loop that sums is above the result's first tile?"""
    result = len(operator.accesses) - 1
    first = next(
        at for at, n in enumerate(mapping.nest) if isinstance(n, Stage) and n.operand == result
    )
    summed = operator.reduction_dims()
    return any(isinstance(n, Loop) and n.dim in summed for n in mapping.nest[:first])


def test_a_byte_too_little_is_refused_with_the_need() -> None:
    workload, where = network("conv conv"), device()
    fused = random_fused(workload, where, np.random.default_rng(5))
    peak = evaluate_plan("analytical", workload, where, Plan(units=(fused,))).memory["buffer"]
    evaluate_plan("analytical", workload, resized(where, {"buffer": peak}), Plan(units=(fused,)))
    small = resized(where, {"buffer": peak - 1})
    with pytest.raises(InfeasibleError, match="capacity of buffer"):
        evaluate_plan("analytical", workload, small, Plan(units=(fused,)))


@pytest.mark.parametrize(
    ("names", "tiles", "message"),
    [
        ((), (), "at least one operator"),
        (("1", "0"), (), "is needed outside|is read and written"),
        (("0", "1"), (Loop("C", 1),), "cannot tile a group over 'C'"),
        (("0", "1"), (Loop("P", 10),), "allowed 1 to 9"),
        (("0", "1"), (Loop("P", 2), Loop("P", 1)), "may be tiled once"),
    ],
)
def test_groups_that_make_no_sense(
    names: tuple[str, ...], tiles: tuple[Loop, ...], message: str
) -> None:
    fused = FusedMapping(
        operators=names, tiles=tiles, memory="buffer", resident=(), retained=True, mappings=()
    )
    with pytest.raises(MappingError, match=message):
        plan_group(network("conv conv"), fused, device())
