"""Does a program move and compute what its mapping says, and no more nodes than needed?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.lower import lower, lower_execution
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.program import Compute, Hold, Node, Program, Repeat, Work
from mapper.search.exact import map_operator
from mapper.workload.graph import Workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architecture, architectures, registers, resized, sram
from tests.mapper.operators import window
from tests.mapper.random_mappings import drawn_mapping
from tests.mapper.walk import Walk

ALL = ["input", "weight", "output"]
INPUT, WEIGHT, OUTPUT = 0, 1, 2

#: With registers for inputs padding counts as moved (an upper bound), so there is none here.
CLEAR = (
    operators.product(7, 5, 6),
    operators.batched_product(2, 3, 4, 5),
    operators.convolved(2, 3, (9,), window(3)),
    operators.convolved(2, 4, (9,), window(2, stride=3), groups=2),
    operators.convolved(1, 2, (4, 5), window(2, axes=2)),
)
INPUT_REGISTERS = ("row_stationary", "latched")
PADDED = (
    operators.convolved(2, 3, (6,), window(3, padding=1)),
    operators.convolved(3, 3, (8,), window(3, stride=2, padding=1, dilation=2), groups=3),
    operators.convolved(1, 2, (3, 4), window(3, padding=1, axes=2)),
    operators.pooled(3, 8, window(3, stride=2, padding=1)),
    operators.pooled_twice(2, 3),
    operators.added(7, 5),
)


@pytest.mark.parametrize("name", architectures())
def test_totals_are_those_of_walking_the_nest(name: str) -> None:
    """Every read and write of every memory, every step; on random, mostly ragged mappings."""
    device = resized(architectures()[name], {"buffer": 96, "acc": 16})
    rng = np.random.default_rng(list(architectures()).index(name))
    for workload in CLEAR if name in INPUT_REGISTERS else (*CLEAR, *PADDED):
        run = execution(workload, workload.operators[0], device)
        for _ in range(3):
            mapping = drawn_mapping(workload, device, rng)
            program = lower_execution(run, mapping)
            totals = {c: work for c, work in program.total_work().items() if work != Work()}
            assert totals == Walk(workload, run, mapping).totals(), (workload.name, mapping)


def product_device(**memory: bool) -> Architecture:
    """Output-stationary 2x3, a buffer of all operands and an accumulator per element."""
    memories = {
        "buffer": sram(1024, ALL, **memory),
        "acc": registers(64, ["output"], "pe"),
    }
    return architecture("product_device", memories, rows=2, cols=3)


def product_mapping(*nest: Loop | Stage, run: Execution) -> Mapping:
    return Mapping(
        operator="mac",
        compute="array",
        intrinsic=run.intrinsic.name,
        nest=nest,
        spatial=(Spatial("M", "rows", 2), Spatial("N", "cols", 3)),
        made_by="hand",
    )


M, N, K = 8, 6, 10
BITS, PARTIAL = 8, 32


@pytest.fixture
def product_run() -> Execution:
    workload = operators.product(M, N, K)
    return execution(workload, workload.operators[0], product_device())


def test_traffic_of_a_product_in_closed_form(product_run: Execution) -> None:
    """Output tiles of 4x3 stay in the buffer while K passes in two halves."""
    mapping = product_mapping(
        Loop("M", 4),
        Loop("N", 3),
        Stage(OUTPUT, "buffer"),
        Loop("K", 5),
        Stage(INPUT, "buffer"),
        Stage(WEIGHT, "buffer"),
        Stage(OUTPUT, "acc"),
        Loop("M", 2),
        Loop("K", 1),
        run=product_run,
    )
    work = lower_execution(product_run, mapping).total_work()
    input_loads, weight_loads = M * K * (N // 3), K * N * (M // 4)
    steps = (M // 2) * (N // 3) * K
    assert work["dram"].read_bits == (input_loads + weight_loads) * BITS
    assert work["dram"].write_bits == M * N * BITS
    passed_up = M * N * (PARTIAL + BITS)  # after the first half of K, and after the second
    assert work["buffer"].write_bits == (input_loads + weight_loads) * BITS + passed_up
    passed_down, to_dram = M * N * PARTIAL, M * N * BITS
    to_array = steps * (2 + 3) * BITS
    assert work["buffer"].read_bits == passed_down + to_dram + to_array
    sums = M * N * K * PARTIAL
    assert work["acc"].write_bits == M * N * PARTIAL + sums
    assert work["acc"].read_bits == sums - M * N * PARTIAL + 2 * M * N * PARTIAL
    assert work["array"] == Work(steps=steps, operations=M * N * K)


@pytest.mark.parametrize("depth", [10, 5, 4, 1])
def test_a_spilled_partial_sum_is_written_and_read_at_its_width(
    product_run: Execution, depth: int
) -> None:
    """With K cut around the output's tile, all but the last visit move partial sums twice."""
    mapping = product_mapping(
        Loop("K", depth),
        Loop("M", 2),
        Loop("N", 3),
        Stage(OUTPUT, "buffer"),
        Stage(INPUT, "buffer"),
        Stage(WEIGHT, "buffer"),
        Stage(OUTPUT, "acc"),
        Loop("K", 1),
        run=product_run,
    )
    work = lower_execution(product_run, mapping).total_work()
    visits = -(-K // depth)
    reads = M * K * (N // 3) + K * N * (M // 2)
    assert work["dram"].read_bits == reads * BITS + M * N * (visits - 1) * PARTIAL
    assert work["dram"].write_bits == M * N * ((visits - 1) * PARTIAL + BITS)


def test_partial_sums_that_are_final_at_once_have_the_final_width() -> None:
    """Nothing is summed over several steps: even the accumulator holds final values."""
    workload = operators.product(4, 6, 1)
    run = execution(workload, workload.operators[0], product_device())
    stages = (Stage(INPUT, "buffer"), Stage(WEIGHT, "buffer"), Stage(OUTPUT, "buffer"))
    nest = (*stages, Stage(OUTPUT, "acc"), Loop("M", 2), Loop("N", 3))
    work = lower_execution(run, product_mapping(*nest, run=run)).total_work()
    assert work["acc"] == Work(read_bits=24 * BITS, write_bits=24 * BITS)


def test_a_ragged_halo_in_closed_form() -> None:
    """3-wide windows over 10 outputs in tiles of 4, 4 and 2, with one zero on either side."""
    workload = operators.convolved(1, 1, (10,), window(3, padding=1))
    device = resized(architectures()["weights_bypass"], {"buffer": 64})
    run = execution(workload, workload.operators[0], device)
    nest = (Loop("P", 4), Stage(INPUT, "buffer"), Stage(OUTPUT, "buffer"), Loop("P", 1))
    mapping = Mapping(
        operator="mac",
        compute="array",
        intrinsic=run.intrinsic.name,
        nest=(*nest, Loop("R", 1)),
        spatial=(),
        made_by="hand",
    )
    program = lower_execution(run, mapping)
    loads = [(count, hold) for count, hold, _ in program.loads() if hold.operand == INPUT]
    read = [dict(hold.load.work)["dram"].read_bits // BITS for _, hold in loads if hold.load]
    assert read == [5, 6, 3]  # 1 zero + 5, 6, 3 + 1 zero
    weights = 10 * 3 * BITS  # from DRAM for each use
    work = program.total_work()
    assert work["dram"].read_bits == (5 + 6 + 3) * BITS + weights
    assert work["dram"].write_bits == 10 * BITS


def nodes(body: tuple[Node, ...]) -> int:
    return sum(1 if isinstance(n, Compute) else 1 + nodes(n.body) for n in body)


def scaled(workload: Workload, mapping: Mapping) -> int:
    device = resized(product_device(), {"buffer": 1 << 20, "acc": 1 << 20})
    return nodes(lower(workload, workload.operators[0], mapping, device).body)


def test_a_program_does_not_grow_with_trip_counts() -> None:
    """Ragged, reduced and padded loops: ten times the extents, as many nodes."""
    run = execution(
        operators.product(M, N, K), operators.product(M, N, K).operators[0], product_device()
    )
    buffers = (Stage(INPUT, "buffer"), Stage(WEIGHT, "buffer"), Stage(OUTPUT, "buffer"))
    mapping = product_mapping(
        Loop("K", 4),
        Loop("M", 4),
        Loop("N", 3),
        *buffers,
        Stage(OUTPUT, "acc"),
        Loop("K", 1),
        Loop("M", 2),
        run=run,
    )
    small, large = operators.product(22, 12, 24), operators.product(222, 120, 240)
    assert scaled(small, mapping) == scaled(large, mapping)
    conv = replace(
        mapping,
        nest=(Loop("P", 3), Loop("C", 2), *buffers, Stage(OUTPUT, "acc"), *_single_steps("PCR")),
        spatial=(),
    )
    padded = [
        operators.convolved(channels, 1, (size,), window(3, padding=1))
        for channels, size in ((6, 12), (60, 120))
    ]
    assert scaled(padded[0], conv) == scaled(padded[1], conv)


def _single_steps(dims: str) -> Iterator[Loop]:
    return (Loop(dim, 1) for dim in dims)


def test_equal_iterations_share_a_body() -> None:
    """Repeats that follow one another start where the one before ended, from the chunk's start."""
    rng = np.random.default_rng(5)
    for workload in PADDED:
        for device in (architectures()["free"], architectures()["two_levels"]):
            larger = resized(device, {"buffer": 200})
            mapping = drawn_mapping(workload, larger, rng)
            program = lower(workload, workload.operators[0], mapping, larger)
            _check_repeats(program.body, dict(workload.operators[0].extents))


def _check_repeats(body: tuple[Node, ...], sizes: dict[str, int]) -> None:
    reached = 0
    for node in body:
        if isinstance(node, Repeat):
            assert node.start == reached
            reached += node.count * node.tile
            _check_repeats(node.body, sizes | {node.dim: node.tile})
        elif isinstance(node, Hold):
            _check_repeats(node.body, sizes)
    if reached:
        assert reached == sizes[next(n.dim for n in body if isinstance(n, Repeat))]


def test_a_memory_of_exactly_the_peak_is_enough() -> None:
    """And one that is a byte smaller is refused by name."""
    rng = np.random.default_rng(3)
    for device in architectures().values():
        workload = CLEAR[2]
        mapping = drawn_mapping(workload, device, rng)
        operator = workload.operators[0]
        program = lower(workload, operator, mapping, device)
        for memory in device.memories[1:]:
            peak = program.peak_bits.get(memory.name, 0)
            assert peak <= memory.size_bytes * 8
            needed = -(-peak // 8)
            if needed > 1:
                fits = resized(device, {memory.name: needed})
                assert lower(workload, operator, mapping, fits).peak_bits == program.peak_bits
                with pytest.raises(InfeasibleError) as refusal:
                    lower(workload, operator, mapping, resized(device, {memory.name: needed - 1}))
                assert refusal.value.limit == f"capacity of {memory.name} in bytes"
                assert (refusal.value.needed, refusal.value.allowed) == (needed, needed - 1)


@pytest.mark.parametrize("double_buffered", [True, False])
def test_room_for_a_successor_where_there_is_one(double_buffered: bool) -> None:
    """A tile that is never replaced needs no second slot; the others do, if double-buffered."""
    workload = operators.product(M, N, K)
    device = product_device(double_buffered=double_buffered)
    run = execution(workload, workload.operators[0], device)
    mapping = product_mapping(
        Stage(WEIGHT, "buffer"),
        Loop("M", 4),
        Stage(INPUT, "buffer"),
        Stage(OUTPUT, "buffer"),
        Stage(OUTPUT, "acc"),
        Loop("M", 2),
        Loop("N", 3),
        Loop("K", 1),
        run=run,
    )
    program = lower_execution(run, mapping)
    slots = {hold.operand: hold.slots for hold in _holds(program)}
    several = 2 if double_buffered else 1
    assert slots == {WEIGHT: 1, INPUT: several, OUTPUT: several}
    tiles = K * N * BITS, several * 4 * K * BITS, several * 4 * N * BITS
    assert program.peak_bits["buffer"] == sum(tiles)
    acc_tile = (4 * N // 6) * PARTIAL  # of each of the 2x3 elements
    assert program.peak_bits["acc"] == 2 * acc_tile


def _holds(program: Program) -> Iterator[Hold]:
    pending = list(program.body)
    while pending:
        node = pending.pop()
        if isinstance(node, Hold):
            yield node
        if isinstance(node, Hold | Repeat):
            pending += node.body


def test_shipped_optima_write_outputs_once_in_their_final_width() -> None:
    """Closed form on real layers: where nothing spills, DRAM is written once per output."""
    device = load_architecture("edge_npu")
    for workload in (
        operators.product(64, 48, 80),
        operators.convolved(16, 24, (14, 14), window(3, padding=1, axes=2)),
    ):
        operator = workload.operators[0]
        result = map_operator(workload, operator, device, price, "energy")
        work = lower(workload, operator, result.mapping, device).total_work()
        outputs = workload.tensor(operator.output.tensor).elements
        assert work["dram"].write_bits == outputs * BITS
        assert work["array"].operations == operator.points
