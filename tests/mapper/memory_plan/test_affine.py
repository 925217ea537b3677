"""Are the integer program, the closed forms and an exhaustive search of rings of one mind?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from arch.errors import InputError
from mapper.memory_plan import affine
from mapper.memory_plan.affine import Distances, Linear, Nest, distances, nest_of
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.offsets import overlap
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from tests.mapper.memory_plan.networks import nest, random_layer
from tests.mapper.memory_plan.test_offsets import runs_in_ring

#: Kernels that no closed form covers: loops in other orders, groups, dilation, phases.
NESTS = (
    ("gemm:M=4,N=3,K=5", ("M", "K", "N")),
    ("gemm:M=4,N=3,K=5", ("N", "M", "K")),
    ("gemm:M=3,N=5,K=2", ("K", "N", "M")),
    ("gemm:M=3,N=4,K=4", ("N", "K", "M")),
    ("gemv:M=5,K=4", ()),
    ("bmm:B=2,M=3,N=4,K=2", ()),
    ("conv2d:C=4,K=6,H=4,W=5,R=3,groups=2", ()),
    ("conv2d:C=2,K=2,H=7,W=6,R=3,dilation=2", ()),
    ("conv2d:C=2,K=3,H=5,W=5,R=3,stride=2", ("N", "K", "P", "Q", "C", "R", "S")),
    ("conv2d:C=2,K=2,H=4,W=4,R=3", ("N", "Q", "P", "C", "K", "R", "S")),
    ("conv1d:C=2,K=3,L=6,R=3", ()),
    ("conv_transpose2d:C=2,K=2,H=3,W=4,R=3", ()),
    ("pool2d:C=3,H=6,W=6,R=2,kind=max", ()),
    ("einsum:expression=ikl*kj->jil,i=3,k=4,l=2,j=2", ()),
)


def brute_force(one: Nest) -> Distances:
    """Both distances over all pairs of steps."""
    ahead: list[int] = []
    behind: list[int] = []
    stored: list[int] = []
    for written, reads in affine.steps(one):
        if stored and reads:
            ahead.append(max(stored) - min(reads))
            behind.append(max(reads) - min(stored))
        stored += written
    return Distances(max(ahead, default=-1) + 1, max(behind, default=-1) + 1)


def works(one: Nest, size: int, offset: int) -> bool:
    """Whether the kernel reads its own input in a ring, byte by byte."""
    holds: dict[int, tuple[str, int]] = {}
    for address in range(one.input_bytes):
        holds[(address + offset) % size] = ("in", address)
    for written, reads in affine.steps(one):
        if any(holds[(address + offset) % size] != ("in", address) for address in reads):
            return False
        for address in written:
            holds[address % size] = ("out", address)
    outputs = {address for written, _ in affine.steps(one) for address in written}
    return all(holds[address % size] == ("out", address) for address in outputs)


def writes_everything(one: Nest) -> bool:
    """Else an input might lie between what is written (the program looks at ranges only)."""
    return len({a for written, _ in affine.steps(one) for a in written}) == one.output_bytes


def agree(one: Layer) -> None:
    """Closed form, integer program and exhaustive search."""
    closed, found = overlap(one), distances(nest(one))
    assert closed.offset == max(0, found.offset), one
    span = max(closed.offset + found.read, one.inputs[0].size_bytes, one.output.size_bytes)
    assert span == closed.span, one
    assert runs_in_ring(one, 1, span, closed.offset), one
    assert not any(runs_in_ring(one, 1, span - 1, d) for d in range(span - 1)), one


@pytest.mark.parametrize("seed", range(100, 120))
def test_five_hundred_layers_agree_three_times(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        agree(random_layer(rng))


def test_the_paper_s_example_needs_seven_segments() -> None:
    (one,) = layers_of(load_workload("gemm:M=2,N=2,K=3"))
    workload = load_workload("gemm:M=2,N=2,K=3")
    found = distances(nest_of(workload, workload.operators[0], workload.operators[0].inputs[0]))
    assert found == Distances(1, 6)
    assert overlap(one).span == 7


def nests(spec: str, order: tuple[str, ...]) -> list[Nest]:
    workload = load_workload(spec)
    return [
        nest_of(workload, operator, operator.inputs[0], order) for operator in workload.operators
    ]


@pytest.mark.parametrize(("spec", "order"), NESTS)
def test_the_program_finds_what_all_pairs_of_steps_show(spec: str, order: tuple[str, ...]) -> None:
    for one in nests(spec, order):
        found = distances(one)
        assert found == brute_force(one)
        offset = max(0, found.offset)
        size = max(offset + found.read, one.input_bytes, one.output_bytes)
        assert works(one, size, offset)
        if offset and max(one.input_bytes, one.output_bytes) < size:
            assert not works(one, size, offset - 1)
            smaller = any(works(one, size - 1, d) for d in range(size - 1))
            assert not smaller or not writes_everything(one)


@pytest.mark.parametrize("seed", range(3))
def test_any_affine_nest(seed: int) -> None:
    """Random strides, also negative ones, and loops in any order."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        one = random_nest(rng)
        assert distances(one) == brute_force(one), one


def random_nest(rng: np.random.Generator) -> Nest:
    """Four loops, two of them of a reduction, over an input with padding on both sides."""
    extents = tuple(int(x) for x in rng.integers(1, 5, 4))
    order = rng.permutation(4)
    steps_of_output = np.array([extents[1], 1, 0, 0])[order]
    read = rng.integers(-2, 4, 4)
    reach = read * (np.array(extents)[order] - 1)
    offset = -int(reach[reach < 0].sum()) - int(rng.integers(0, 3))
    size = max(1, int(abs(reach).sum()) - 1)
    inner = list(itertools.takewhile(lambda loop: loop >= 2, reversed(order.tolist())))
    index = Linear(tuple(int(c) for c in read), int(offset))
    return Nest(
        loops=tuple("abcd"),
        extents=tuple(int(x) for x in np.array(extents)[order]),
        stored_loops=4 - len(inner),
        write=Linear(tuple(int(c) for c in steps_of_output)),
        write_bytes=1,
        output_bytes=extents[0] * extents[1],
        read=index,
        read_bytes=1,
        input_bytes=size,
        inside=((index, size),),
    )


def test_partial_sums_in_memory_are_as_wide_as_accumulators() -> None:
    """With the reduction outside, the output is int32 until it is done."""
    (outside,) = nests("gemm:M=2,N=2,K=3", ("K", "M", "N"))
    (inside,) = nests("gemm:M=2,N=2,K=3", ())
    assert (outside.write_bytes, inside.write_bytes) == (4, 1)
    assert distances(outside).offset > distances(inside).offset


def test_groups_need_less_than_a_dense_convolution() -> None:
    def offset(spec: str) -> int:
        return overlap(layers_of(load_workload(spec))[0]).offset

    shape = "conv2d:C=4,K=6,H=4,W=5,R=3"
    assert offset(f"{shape},groups=2") < offset(shape)


def test_unknown_loops_are_named() -> None:
    workload: Workload = load_workload("gemm:M=2,N=2,K=3")
    operator = workload.operators[0]
    with pytest.raises(InputError, match=r"loops M, N, Z; operator gemm has M, N, K"):
        nest_of(workload, operator, operator.inputs[0], ("M", "N", "Z"))
