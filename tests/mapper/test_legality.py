"""Is each malformed mapping refused with its reason, and its well-formed neighbour accepted?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.legality import MappingError, check_capacity, staged_tiles
from mapper.mapping import Loop, Mapping, Spatial, Stage
from tests.mapper import operators
from tests.mapper.hardware import ALL, architecture, architectures, registers, sram

BUFFERS = (Stage(0, "buffer"), Stage(1, "buffer"), Stage(2, "buffer"))
ACC = Stage(2, "acc")
STEPS = (Loop("M", 2), Loop("N", 3), Loop("K", 1))


def product_run() -> Execution:
    """12x9x10 on a 2x3 output-stationary array with a buffer and accumulators."""
    memories = {"buffer": sram(2048, ALL), "acc": registers(256, ["output"], "pe")}
    workload = operators.product(12, 9, 10)
    device = architecture("product_device", memories, rows=2, cols=3)
    return execution(workload, workload.operators[0], device)


def product_mapping(*nest: Loop | Stage, spatial: tuple[Spatial, ...] | None = None) -> Mapping:
    usual = (Spatial("M", "rows", 2), Spatial("N", "cols", 3))
    return Mapping(
        operator="mac",
        compute="array",
        intrinsic="output_stationary_2x3",
        nest=nest,
        spatial=usual if spatial is None else spatial,
        made_by="hand",
    )


@dataclass(frozen=True)
class Refusal:
    """Why one mapping is refused, and the nearest one that is not."""

    message: str
    refused: Mapping
    accepted: Mapping


def with_tiles(*loops: Loop) -> Mapping:
    return product_mapping(*loops, *BUFFERS, ACC, *STEPS)


def unrolled(spatial: Spatial) -> Mapping:
    steps = (Loop(dim, max(1, spatial.factor * (dim == spatial.dim))) for dim in "MNK")
    return product_mapping(*BUFFERS, ACC, *steps, spatial=(spatial,))


MALFORMED = {
    "unknown axis": Refusal(
        r"cannot unroll 'M' over 'depth'; axes are rows, cols, dims M, N, K",
        unrolled(Spatial("M", "depth", 1)),
        unrolled(Spatial("M", "rows", 1)),
    ),
    "unknown unrolled dim": Refusal(
        r"cannot unroll 'Q' over 'rows'",
        unrolled(Spatial("Q", "rows", 1)),
        unrolled(Spatial("N", "cols", 1)),
    ),
    "factor below one": Refusal(
        r"'M' is unrolled 0 times; at least 1",
        unrolled(Spatial("M", "rows", 0)),
        unrolled(Spatial("M", "rows", 1)),
    ),
    "axis that does not take the dim": Refusal(
        r"'K' is of class 'k'; axis 'rows' takes m",
        unrolled(Spatial("K", "rows", 2)),
        unrolled(Spatial("K", "rows", 1)),  # not really unrolled
    ),
    "unknown loop": Refusal(
        r"no dim 'Q'; dims are M, N, K", with_tiles(Loop("Q", 2)), with_tiles(Loop("K", 2))
    ),
    "tile of nothing": Refusal(
        r"a tile of 0 of 'K' must be", with_tiles(Loop("K", 0)), with_tiles(Loop("K", 1))
    ),
    "tile that cuts a step": Refusal(
        r"a tile of 3 of 'M' must be a multiple of the spatial factor 2",
        with_tiles(Loop("M", 3)),
        with_tiles(Loop("M", 4)),
    ),
    "ragged inner tile": Refusal(
        r"a tile of 4 of 'M' .* divide the enclosing tile of 6",
        with_tiles(Loop("M", 6), Loop("M", 4)),
        with_tiles(Loop("M", 8), Loop("M", 4)),  # the outermost tile may be ragged: 8 + 4
    ),
    "growing tile": Refusal(
        r"a tile of 8 of 'M' .* divide the enclosing tile of 4",
        with_tiles(Loop("M", 4), Loop("M", 8)),
        with_tiles(Loop("M", 4), Loop("M", 4)),
    ),
    "more left than a step computes": Refusal(
        r"10 elements of 'K' are left below the last loop, but one step computes 1",
        product_mapping(*BUFFERS, ACC, *STEPS[:2]),
        product_mapping(*BUFFERS, ACC, *STEPS),
    ),
    "missing stage": Refusal(
        r"operand 2 must be staged in buffer, acc, in this order; .* stages it in buffer",
        product_mapping(*BUFFERS, *STEPS),
        product_mapping(*BUFFERS, ACC, *STEPS),
    ),
    "stages in the wrong order": Refusal(
        r"operand 2 must be staged in buffer, acc, in this order; .* in acc, buffer",
        product_mapping(*BUFFERS[:2], ACC, BUFFERS[2], *STEPS),
        product_mapping(*BUFFERS[:2], BUFFERS[2], ACC, *STEPS),
    ),
    "stage in a memory that does not keep it": Refusal(
        r"operand 0 must be staged in buffer, .* stages it in buffer, acc",
        product_mapping(*BUFFERS, ACC, Stage(0, "acc"), *STEPS),
        product_mapping(*BUFFERS, ACC, *STEPS),
    ),
    "stage of no operand": Refusal(
        r"no operand 3; operands are 0 to 2",
        product_mapping(*BUFFERS, ACC, Stage(3, "buffer"), *STEPS),
        product_mapping(*BUFFERS, ACC, *STEPS),
    ),
    "another unit": Refusal(
        r"for unit 'vector', the operator runs on 'array'",
        replace(with_tiles(), compute="vector"),
        with_tiles(),
    ),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_a_malformed_mapping_is_refused_with_its_reason(reason: str) -> None:
    run, refusal = product_run(), MALFORMED[reason]
    with pytest.raises(MappingError, match=refusal.message):
        staged_tiles(run, refusal.refused)
    assert len(staged_tiles(run, refusal.accepted)) == 4


def test_an_axis_is_filled_but_not_exceeded() -> None:
    run = product_run()
    staged_tiles(run, unrolled(Spatial("M", "rows", 2)))
    with pytest.raises(InfeasibleError) as refusal:
        staged_tiles(run, unrolled(Spatial("M", "rows", 3)))
    assert (refusal.value.needed, refusal.value.allowed) == (3, 2)
    assert refusal.value.limit == "axis rows of array"


def test_two_dims_on_an_axis_share_it() -> None:
    workload = operators.batched_product(2, 2, 4, 3)
    run = execution(workload, workload.operators[0], architectures()["free"])
    assert run.intrinsic.axes[0].size == 3
    steps = tuple(Loop(dim, 1) for dim in "BMNK")

    def shared(rows: int) -> Mapping:
        spatial = (Spatial("B", "rows", 1), Spatial("M", "rows", rows), Spatial("N", "rows", 2))
        nest = (*BUFFERS, ACC, *(loop for loop in steps if loop.dim != "N"), Loop("N", 2))
        nest = tuple(Loop("M", rows) if node == Loop("M", 1) else node for node in nest)
        return product_mapping(*nest, spatial=spatial)

    staged_tiles(run, shared(1))
    with pytest.raises(InfeasibleError, match="axis rows of array: needs 4, allowed 3"):
        staged_tiles(run, shared(2))


def test_capacity_counts_every_operand_of_a_memory() -> None:
    """Closed form: 12x10 inputs, 10x9 weights and 12x9 outputs in one buffer."""
    run = product_run()
    staged = staged_tiles(run, with_tiles())
    bits = 12 * 10 * 8 + 10 * 9 * 8 + 12 * 9 * 8  # sums are complete when they leave the array
    assert check_capacity(staged)["buffer"] == bits
    cut = product_mapping(Loop("K", 5), *BUFFERS, ACC, *STEPS)
    per_tile = 12 * 5 * 8 + 5 * 9 * 8 + 12 * 9 * 32  # partial sums pass through the buffer
    assert check_capacity(staged_tiles(run, cut))["buffer"] == 2 * per_tile


def too_large(run: Execution, size: Callable[[int], int]) -> Execution:
    """The execution with a buffer sized from what the mapping needs."""
    needed = -(-check_capacity(staged_tiles(run, with_tiles()))["buffer"] // 8)
    paths = tuple(
        tuple(replace(m, size_bytes=size(needed)) if m.name == "buffer" else m for m in path)
        for path in run.paths
    )
    return replace(run, paths=paths)


def test_a_buffer_of_exactly_the_need_fits() -> None:
    run = product_run()
    check_capacity(staged_tiles(too_large(run, lambda needed: needed), with_tiles()))
    with pytest.raises(InfeasibleError, match="capacity of buffer in bytes") as refusal:
        check_capacity(staged_tiles(too_large(run, lambda needed: needed - 1), with_tiles()))
    assert refusal.value.needed == refusal.value.allowed + 1


def test_an_operation_or_data_type_that_no_unit_has_is_infeasible() -> None:
    device = architectures()["free"]
    workload = operators.pooled(2, 6, operators.window(2))
    operator = workload.operators[0]
    assert execution(workload, operator, device).compute.name == "vector"
    bare = replace(device, components=tuple(c for c in device.components if c.name != "vector"))
    with pytest.raises(InfeasibleError, match=r"operation 'max' .* its units do mac"):
        execution(workload, operator, bare)
    product = operators.product(4, 4, 4)
    wide = replace(
        product, tensors=tuple(replace(tensor, dtype="fp32") for tensor in product.tensors)
    )
    with pytest.raises(InfeasibleError, match=r"data type of 'mac': .* fp32; free offers int8"):
        execution(wide, wide.operators[0], device)


def test_memories_stand_in_the_order_of_the_architecture() -> None:
    """Also where the first operand skips some: weights pass a buffer that inputs do not."""
    workload = operators.product(4, 4, 4)
    run = execution(workload, workload.operators[0], architectures()["two_levels"])
    assert [[m.name for m in path] for path in run.paths] == [
        ["dram", "buffer"],
        ["dram", "weights", "buffer"],
        ["dram", "buffer"],
    ]
    assert [m.name for m in run.memories] == ["dram", "weights", "buffer"]
