"""Does the program of a fused group compute what its operators are defined to compute?"""

from __future__ import annotations

import numpy as np
import pytest

from arch.spec import Architecture
from mapper.fusion import FusedMapping
from mapper.fusion_lower import LoweredGroup, lower_group, plan_group
from mapper.mapping import Loop
from mapper.workload.graph import Workload
from tests.mapper.fusion.cases import device, network, random_fused
from tests.mapper.fusion.interpreter import FusedMachine, execute_group
from tests.mapper.fusion.mappings import random_pieces
from tests.mapper.fusion.networks import NETWORKS
from tests.mapper.workload.interpreter import run as run_definition


def values_of(workload: Workload, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        t.name: rng.integers(-4, 5, t.shape).astype(np.float64)
        for t in workload.tensors
        if t.kind in ("input", "weight")
    }


def run_group(
    workload: Workload, group: LoweredGroup, where: Architecture, rng: np.random.Generator
) -> FusedMachine:
    values = values_of(workload, rng)
    runs = tuple(
        group.plan.execution(number, operator, where)
        for number, operator in enumerate(group.plan.group.operators)
    )
    machine = execute_group(group, runs, values)
    expected = run_definition(workload, values)[group.plan.group.result]
    computed = machine.outside[group.plan.group.result]
    np.testing.assert_allclose(computed, expected, rtol=1e-12, atol=1e-12)
    return machine


#: The second buffer makes programs long: some networks on it will do.
CASES = [
    *((name, "weight_stationary") for name in NETWORKS),
    *((name, "two_buffers") for name in ("residual", "attention", "mlp")),
]


@pytest.mark.parametrize(("name", "hardware"), CASES)
def test_fused_programs_compute_the_definition(name: str, hardware: str) -> None:
    """Exact and ragged tiles of up to two loops, padding and strides, halos kept or computed
    again, weights and inputs resident or streamed."""
    workload, where = network(name), device(hardware)
    rng = np.random.default_rng(list(NETWORKS).index(name))
    for _ in range(5 if hardware == "weight_stationary" else 1):
        fused = random_fused(workload, where, rng)
        group = lower_group(plan_group(workload, fused, where), fused, where)
        run_group(workload, group, where, rng)


def by_rows(name: str, *, rows: int, retained: bool) -> tuple[Workload, LoweredGroup]:
    """Fused over rows of the output, everything from outside resident."""
    workload, where = network(name), device()
    names = tuple(o.name for o in workload.operators)
    dim = "H" if "H" in workload.operators[-1].extents else "P"
    fused = FusedMapping(
        operators=names,
        tiles=(Loop(dim, rows),),
        memory="buffer",
        resident=tuple(t.name for t in workload.tensors if t.kind in ("input", "weight")),
        retained=retained,
        mappings=(),
    )
    plan = plan_group(workload, fused, where)
    rng = np.random.default_rng(0)
    return workload, lower_group(plan, random_pieces(plan, where, rng, fused), where)


@pytest.mark.parametrize("name", ["conv conv", "residual", "inverted bottleneck"])
def test_retained_overlaps_are_computed_and_loaded_once(name: str) -> None:
    """Every point of every operator once, every byte from outside once."""
    workload, group = by_rows(name, rows=2, retained=True)
    machine = run_group(workload, group, device(), np.random.default_rng(1))
    assert machine.computed == {o.name: o.points for o in workload.operators}
    given = [t for t in workload.tensors if t.kind in ("input", "weight")]
    assert machine.loaded_bits == 8 * sum(t.elements for t in given)


def test_recomputed_halos_have_the_known_size() -> None:
    """Nine rows in tiles of two behind a 3x3 kernel: 3, 4, 4, 4 and 2 rows of the first."""
    workload, group = by_rows("conv conv", rows=2, retained=False)
    machine = run_group(workload, group, device(), np.random.default_rng(1))
    first, second = workload.operators
    assert machine.computed[first.name] * 9 == first.points * (3 + 4 + 4 + 4 + 2)
    assert machine.computed[second.name] == second.points


def test_a_line_buffer_holds_a_window_of_rows() -> None:
    """One row at a time behind a 3x3 kernel: three rows of the intermediate, all wide."""
    workload, group = by_rows("conv conv", rows=1, retained=True)
    between = workload.operators[0].output.tensor
    _, channels, _, width = workload.tensor(between).shape
    assert group.plan.room_bits[between] == 3 * channels * width * 8
