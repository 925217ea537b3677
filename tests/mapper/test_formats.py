"""Widths, sparsity and side work, from the tensor to the cost: search and programs agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from arch.datatypes import accumulator_of, sparsity
from arch.registry import family_named
from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.legality import MappingError, staged_tiles
from mapper.mapping import Loop
from mapper.search.exact import map_operator
from mapper.search.space import stage_orders
from mapper.workload.graph import Workload
from mapper.workload.operators import SideWork
from mapper.workload.same_work import same_work
from sim.models import cost_model
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import ALL, architecture, architectures, registers, resized, sram
from tests.mapper.random_mappings import drawn_mapping
from tests.mapper.scalar_model import OBJECTIVES, ScalarModel, best, mapspace_size

FORMATS = {
    "w4a8": ("int8", "int4", None),
    "ternary": ("int8", "ternary", None),
    "sparse 2:4": ("int8", "int8", "2:4"),
    "a tenth": ("int4", "int5", "0.1"),
    "blocks": ("int8", "int8", "0.3@3x5"),
}


#: Mappings of a case that is enumerated.
MOST_MAPPINGS = 600


def stored(workload: Workload, input_in: str, weight_in: str, zeros: str | None) -> Workload:
    """The same operator with other formats of its operands."""
    found = sparsity(zeros) if zeros else None
    dtypes = {"input": input_in, "weight": weight_in, "output": input_in}
    tensors = tuple(
        replace(t, dtype=dtypes[t.kind], sparsity=found if t.kind == "weight" else None)
        for t in workload.tensors
    )
    (operator,) = workload.operators
    summed = replace(operator, accumulator_dtype=accumulator_of(input_in, weight_in))
    return replace(workload, tensors=tensors, operators=(summed,))


def skipping(skips: list[str]) -> Architecture:
    memories = {"buffer": sram(40, ALL), "acc": registers(8, ["output"], "pe")}
    return architecture("skipping", memories, skips=skips)


def with_side_work(workload: Workload) -> Workload:
    (operator,) = workload.operators
    side = SideWork(operation="max", dims=("M", "K"), ops_per_point=3)
    changed = replace(
        operator,
        side=(side,),
        whole_dims=frozenset({"N"}),
        ops_per_point=Fraction(17, 8),
        issues_per_point=Fraction(17, 8),
    )
    return replace(workload, operators=(changed,))


def cases() -> Iterator[tuple[Workload, Architecture]]:
    for name, device in architectures().items():
        for formats in FORMATS.values():
            if name in ("output_stationary", "weights_bypass", "nested_registers"):
                yield stored(operators.product(2, 2, 3), *formats), device
        yield with_side_work(operators.product(2, 2, 2)), device
    for skips in (["2:4"], ["unstructured"], ["block"]):
        for formats in FORMATS.values():
            yield stored(operators.product(2, 1, 4), *formats), skipping(skips)


def test_the_optimum_is_that_of_brute_force() -> None:
    compared = 0
    for workload, device in cases():
        model = ScalarModel(workload, workload.operators[0], device)
        if mapspace_size(model.run) > MOST_MAPPINGS:
            continue
        costs = list(model.costs(stage_orders(model.run)))
        for objective in OBJECTIVES if costs else ():
            found = map_operator(workload, workload.operators[0], device, price, objective)
            value, tie = best(costs, objective)
            assert found.objective_value == pytest.approx(value, rel=1e-9)
            assert model.cost(found.mapping).keys(objective)[1] == pytest.approx(tie, rel=1e-9)
            compared += 1
    assert compared >= 30


def test_fidelities_stay_ordered() -> None:
    """Roofline <= analytical <= event, at the same dynamic energy, with fractional widths."""
    rng = np.random.default_rng(5)
    for workload, device in cases():
        roomy = resized(device, {memory.name: 4096 for memory in device.memories[1:]})
        mappings = {workload.operators[0].name: drawn_mapping(workload, roomy, rng)}
        found = [
            cost_model(fidelity).evaluate(workload, roomy, mappings)
            for fidelity in ("roofline", "analytical", "event")
        ]
        latencies = [metrics.latency_ps for metrics in found]
        assert latencies == sorted(latencies)
        assert len({metrics.dynamic_energy_pj for metrics in found}) == 1


@pytest.mark.parametrize(
    ("weights", "skips", "share"),
    [
        (None, ["unstructured"], 1),
        ("2:4", [], 1),
        ("2:4", ["2:4"], Fraction(1, 2)),
        ("2:4", ["1:4"], 1),
        ("2:4", ["block"], 1),
        ("0.3@3x5", ["block"], Fraction(3, 10)),
        ("0.1", ["block", "2:4"], 1),
        ("0.1", ["unstructured"], Fraction(1, 10)),
        ("2:4", ["unstructured"], Fraction(1, 2)),
    ],
)
def test_only_zeros_that_the_unit_knows_are_skipped(
    weights: str | None, skips: list[str], share: Fraction
) -> None:
    workload = stored(operators.product(6, 4, 8), "int8", "int8", weights)
    run = execution(workload, workload.operators[0], skipping(skips))
    assert run.issues_per_point == share
    assert run.ops_per_point == share


def test_weights_are_moved_in_their_stored_width() -> None:
    """From the outermost memory: elements times bits, to the bit."""
    for input_in, weight_in, zeros in FORMATS.values():
        workload = stored(operators.product(6, 4, 10), input_in, weight_in, zeros)
        device = resized(skipping([]), {"buffer": 4096, "acc": 256})
        operator = workload.operators[0]
        mapping = map_operator(workload, operator, device, price, "energy").mapping
        metrics = cost_model("analytical").evaluate(workload, device, {operator.name: mapping})
        bits = [tensor.elements * tensor.bits for tensor in workload.tensors]
        assert metrics.components["dram"].read_bytes == -(-(bits[0] + bits[1]) // 8)
        assert metrics.components["dram"].write_bytes == -(-bits[2] // 8)


def test_narrow_operands_are_widened_on_the_way_and_wide_ones_refused() -> None:
    device = architectures()["free"]
    narrow = stored(operators.product(4, 4, 4), "int8", "int4", None)
    assert execution(narrow, narrow.operators[0], device).compute.name == "array"
    for wide in ("int16", "bf16", "mxfp4", "int4_g128"):
        workload = stored(operators.product(4, 4, 4), "int8", wide, None)
        with pytest.raises(InfeasibleError, match="data type"):
            execution(workload, workload.operators[0], device)


def test_whole_dimensions_are_not_cut_in_shared_memories() -> None:
    workload = with_side_work(operators.product(6, 4, 5))
    device = resized(architectures()["free"], {"buffer": 4096, "acc": 4096})
    rng = np.random.default_rng(3)
    run = execution(workload, workload.operators[0], device)
    for _ in range(20):
        mapping = drawn_mapping(workload, device, rng)
        for tile in staged_tiles(run, mapping):
            assert tile.tiles["N"] == 4
    cut = replace(mapping, spatial=(), nest=(Loop("N", 2), *mapping.nest))
    with pytest.raises(MappingError, match="'N' must stay whole in buffer"):
        staged_tiles(run, replace(cut, nest=(*cut.nest, *(Loop(d, 1) for d in "MNK"))))


def test_formats_distinguish_work() -> None:
    plain = operators.product(4, 4, 4)
    keys = {same_work(w, w.operators[0]) for w in (plain, with_side_work(plain))}
    for formats in FORMATS.values():
        changed = stored(plain, *formats)
        keys.add(same_work(changed, changed.operators[0]))
    assert len(keys) == 2 + len(FORMATS)


def test_hardware_may_only_skip_what_it_can_name() -> None:
    document = dict(skipping([]).document)
    document["components"] = {**document["components"]}
    document["components"]["array"] = {**document["components"]["array"], "skips": ["3 of 4"]}
    with pytest.raises(ValueError, match="unstructured, block, or n:m"):
        family_named("spatial").build(document)
