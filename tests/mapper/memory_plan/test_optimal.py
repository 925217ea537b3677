"""Is the joint choice of order, fusion, patches and segments what trying everything finds?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from mapper.memory_plan.fused import can_fuse, fuse, least_fused_bytes, least_workspace_bytes
from mapper.memory_plan.layers import FeatureMap, Layer, layers_of
from mapper.memory_plan.optimal import routes
from mapper.memory_plan.patches import least_patched_bytes, patch
from mapper.memory_plan.planners import Request, plan, tradeoffs
from mapper.memory_plan.ring import place
from mapper.memory_plan.schedule import best_order
from mapper.memory_plan.stages import Choice, cuts, fused, shared_bytes, unfused
from mapper.workload.load import load_workload
from tests.mapper.memory_plan.networks import layer, tiny_network

ANY = 1 << 40


def cycles(one: Layer, macs: int, accesses: int) -> float:
    return macs + 4.0 * accesses


def partitions(points: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Every way to cut at some of the points."""
    inner = points[1:-1]
    for kept in itertools.product((False, True), repeat=len(inner)):
        chosen = [p for p, keep in zip(inner, kept, strict=True) if keep]
        yield list(itertools.pairwise([points[0], *chosen, points[-1]]))


def stage_choices(layers: Sequence[Layer], points: Sequence[int], a: int, b: int) -> list[Choice]:
    part = tuple(layers[a:b])
    alone = list(unfused(part, cycles)) if points.index(b) == points.index(a) + 1 else []
    return [*alone, *(fused(part, cycles, ANY) if can_fuse(part) else [])]


def everything(layers: Sequence[Layer]) -> list[tuple[int, float]]:
    """Memory and time of every plan."""
    points = cuts(layers)
    found = []
    for parts in partitions(points):
        options = [stage_choices(layers, points, a, b) for a, b in parts]
        for chosen in itertools.product(*options):
            found.append((max(c.size_bytes for c in chosen), sum(c.cycles for c in chosen)))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_chain_against_all_plans(seed: int) -> None:
    """The least memory, and the least time within every limit of memory between."""
    layers = tiny_network(np.random.default_rng(seed))[:6]
    found = routes(layers, cycles)
    all_plans = everything(layers)
    assert found.found[0].size_bytes == min(size for size, _ in all_plans)
    assert found.lower_bound_bytes == found.found[0].size_bytes
    for route in found.found:
        within = [time for size, time in all_plans if size <= route.size_bytes]
        assert route.cycles == pytest.approx(min(within))


def orders(layers: Sequence[Layer]) -> Iterator[tuple[Layer, ...]]:
    made = {one.output.name for one in layers}
    for order in itertools.permutations(layers):
        known = {i.name for one in layers for i in one.inputs} - made
        for one in order:
            if not {i.name for i in one.inputs} <= known:
                break
            known.add(one.output.name)
        else:
            yield order


def branching(rng: np.random.Generator) -> list[Layer]:
    """Two branches of convolutions from one input, added up."""
    source = FeatureMap(name="in", height=3, width=4, channels=int(rng.integers(1, 5)))
    ends, found = [], []
    out = int(rng.integers(1, 5))
    for branch in "ab":
        last = source
        for number in range(int(rng.integers(1, 3))):
            one = layer(f"{branch}{number}", "conv2d", (last,), int(rng.integers(1, 9)))
            found.append(one)
            last = one.output
        found.append(layer(f"{branch}end", "conv2d", (last,), out))
        ends.append(found[-1].output)
    found.append(layer("add", "elementwise", ends))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_block_against_all_orders(seed: int) -> None:
    layers = branching(np.random.default_rng(seed))
    order = best_order(layers, shared=shared_bytes).order
    found = next(iter(unfused([layers[i] for i in order], cycles)))
    units = dict(zip((x.name for x in found.layers), found.segment_bytes, strict=True))
    least = min(place(candidate, units).span_bytes for candidate in orders(layers))
    assert found.lower_bound_bytes <= least <= found.size_bytes
    assert found.size_bytes <= 1.05 * least


def test_the_bound_of_fused_layers_holds_and_grows() -> None:
    layers = tiny_network(np.random.default_rng(1))[:8]
    runs = [layers[:n] for n in range(2, 9) if can_fuse(layers[:n])]
    bounds = [least_fused_bytes(run) for run in runs]
    assert len(runs) > 2
    assert bounds == sorted(bounds)
    for run, bound in zip(runs, bounds, strict=True):
        stage = fuse(run)
        assert bound <= stage.source.size_bytes + stage.workspace_bytes


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_out_unseen_would_not_have_fitted(seed: int) -> None:
    """Bounds of line buffers and of patches, for every run of layers that can be fused."""
    layers = tiny_network(np.random.default_rng(seed))
    ends = itertools.combinations(range(len(layers) + 1), 2)
    runs = [layers[a:b] for a, b in ends if b - a > 1 and can_fuse(layers[a:b])]
    assert len(runs) > 10
    for run in runs:
        stage = fuse(run)
        bound = least_workspace_bytes(run)
        assert least_fused_bytes(run) - stage.source.size_bytes <= bound <= stage.workspace_bytes
        for side in (2, 3):
            assert least_patched_bytes(run, side) <= patch(run, side).size_bytes


def test_limits_choose_among_the_trade_offs() -> None:
    workload = load_workload("mcunet-vww1")
    free = Request(workload=workload, cycles=cycles)
    found = tradeoffs(free).found
    assert len(found) > 3
    middle = found[len(found) // 2]
    assert len(layers_of(workload)) == sum(len(c.layers) for c in middle.choices)
    by_ram = Request(workload=workload, cycles=cycles, ram_bytes=middle.size_bytes)
    by_time = Request(workload=workload, cycles=cycles, most_cycles=middle.cycles)
    for request in (by_ram, by_time):
        assert plan("optimal", request).pool_bytes == middle.size_bytes
    less = Request(workload=workload, cycles=cycles, ram_bytes=middle.size_bytes - 1)
    assert plan("optimal", less).pool_bytes < middle.size_bytes
