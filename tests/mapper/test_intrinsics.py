"""Are all matches of loops to intrinsics found, each once, and does each compute the operator?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from arch.errors import InputError
from arch.load import load_architecture
from mapper.intrinsics import PATTERNS, Match, matches, pattern_named, patterns_of
from mapper.workload.load import load_workload
from mapper.workload.nests import at
from mapper.workload.operators import Access, AffineIndex, Operator
from tests.mapper.workload import interpreter

Array = NDArray[np.float64]


def product_of(
    extents: Mapping[str, int], first: str, second: str, output: str, name: str = "product"
) -> Operator:
    """A product whose operands have one plain loop per axis."""
    inputs = (Access("input", at(*first)), Access("weight", at(*second)))
    return Operator(
        name=name,
        kind="product",
        operation="mac",
        extents=dict(extents),
        inputs=inputs,
        output=Access("output", at(*output)),
        accumulator_dtype="fp32",
    )


def single(spec: str) -> Operator:
    (operator,) = load_workload(spec).operators
    return operator


CONV = single("conv2d:N=2,C=2,H=3,W=2,K=2,R=3,S=2,pad=1")
#: Tensor times matrix, and the two stages of MTTKRP: ``D[i, j] += X[i, k, l] * C[l, j] * B[k, j]``.
TTM = product_of({"i": 2, "j": 3, "l": 2, "k": 3}, "ijk", "kl", "ijl")
MTTKRP = (
    product_of({"i": 2, "k": 3, "j": 2, "l": 3}, "ikl", "lj", "ikj", "first"),
    product_of({"i": 2, "j": 2, "k": 3}, "ikj", "kj", "ij", "second"),
)
OPERATORS = {
    "conv2d": CONV,
    "conv2d stride 2": single("conv2d:N=2,C=2,H=3,K=2,R=2,stride=2,pad=1"),
    "conv2d dilated": single("conv2d:N=1,C=2,H=5,K=2,R=2,dilation=2,pad=0"),
    "patches": single("conv2d:N=1,C=2,H=4,K=2,R=2,stride=2,pad=0"),
    "depthwise": single("conv2d:N=2,C=3,H=3,K=3,R=2,groups=3,pad=0"),
    "gemm": single("gemm:M=3,N=2,K=4"),
    "gemv": single("gemv:M=3,K=4"),
    "ttm": TTM,
    "mttkrp first": MTTKRP[0],
    "mttkrp second": MTTKRP[1],
}


def loops_of(match: Match) -> str:
    """``i=P j=K k=C``."""
    return " ".join(
        f"{loop}={'+'.join(dims)}" for loop, dims in sorted(match.loops.items()) if dims
    )


def found(operator: Operator, pattern: str, *, fused: bool = False) -> set[str]:
    return {loops_of(match) for match in matches(operator, PATTERNS[pattern], fused=fused)}


def test_a_convolution_is_a_matrix_product_in_all_seven_ways() -> None:
    """The pairs that AMOS lists; the two with a shared index need the data laid out anew."""
    listed = matches(CONV, PATTERNS["gemm"])
    direct = {loops_of(match) for match in listed if not match.im2col}
    assert direct == {
        *("i=N j=K k=C", "i=N j=K k=R", "i=N j=K k=S"),
        *("i=P j=K k=C", "i=P j=K k=S", "i=Q j=K k=C", "i=Q j=K k=R"),
    }
    assert {loops_of(m): m.im2col for m in listed if m.im2col} == {
        "i=P j=K k=R": (("P", "R"),),
        "i=Q j=K k=S": (("Q", "S"),),
    }


def test_fused_matches_are_all_pairs_of_subsets() -> None:
    """Rows from {N, P, Q}, sums from {C, R, S}: 7 times 7; P with R or Q with S shares an index."""
    listed = matches(CONV, PATTERNS["gemm"], fused=True)
    assert len({loops_of(m) for m in listed}) == len(listed) == 7 * 7
    rows = [set(m.loops["i"]) for m in listed]
    sums = [set(m.loops["k"]) for m in listed]
    shares = [
        {"P", "R"} <= row | total or {"Q", "S"} <= row | total
        for row, total in zip(rows, sums, strict=True)
    ]
    assert shares == [bool(m.im2col) for m in listed]


def test_windows_that_do_not_overlap_share_no_index() -> None:
    listed = matches(OPERATORS["patches"], PATTERNS["gemm"])
    assert len(listed) == 9
    assert not any(match.im2col for match in listed)


def test_a_convolution_on_its_own_intrinsic_is_one_match() -> None:
    (match,) = matches(CONV, PATTERNS["conv"])
    assert loops_of(match) == "c=C k=K n=N r=R s=S x=Q y=P"
    assert match.steps == {("y", "r"): (1, 1), ("x", "s"): (1, 1)}
    (strided,) = matches(OPERATORS["conv2d stride 2"], PATTERNS["conv"])
    assert strided.steps == {("y", "r"): (2, 1), ("x", "s"): (2, 1)}


def test_products_on_their_own_intrinsics() -> None:
    assert found(OPERATORS["gemm"], "gemm") == {"i=M j=N k=K"}
    assert found(OPERATORS["gemm"], "gemv") == {"i=M k=K", "i=N k=K"}
    assert found(OPERATORS["gemm"], "dot") == {"k=K"}
    assert found(OPERATORS["gemv"], "gemv") == {"i=M k=K"}
    assert found(TTM, "gemm") == {"i=i j=l k=k", "i=j j=l k=k"}
    assert found(TTM, "gemm", fused=True) == {"i=i j=l k=k", "i=j j=l k=k", "i=i+j j=l k=k"}


def test_both_stages_of_mttkrp_match_every_intrinsic() -> None:
    first, second = MTTKRP
    assert found(first, "gemm") == {"i=i j=j k=l", "i=k j=j k=l"}
    assert found(second, "gemm") == {"i=i k=k"}  # one column of the result at a time
    assert found(second, "gemv") == {"i=i k=k"}
    assert found(second, "dot") == {"b=j k=k"}
    assert all(found(stage, "conv") for stage in MTTKRP)


def test_operators_that_are_no_products_match_nothing() -> None:
    network = load_workload("mobilenet_v1:image=32,width=0.25")
    pool = next(o for o in network.operators if o.operation == "mean")
    assert matches(pool, PATTERNS["gemm"]) == ()


def test_an_arrays_axes_are_an_intrinsic() -> None:
    """Weight-stationary: sums down the rows, filters across the columns."""
    (unit,) = (
        i
        for compute in load_architecture("ws16").computes
        for i in compute.intrinsics
        if "mac" in i.operations
    )
    patterns = patterns_of(unit)
    assert patterns
    every = {loops_of(m) for p in patterns for m in matches(CONV, p, fused=True)}
    classes = {a.name: a.dim_classes for a in unit.axes}
    for text in every:
        for part in text.split():
            axis, dims = part.split("=")
            assert {CONV.dim_class(dim) for dim in dims.split("+")} <= set(classes[axis])


def test_an_unknown_intrinsic_has_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"did you mean 'gem[mv]'"):
        pattern_named("gemx")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_match_computes_the_operator(name: str, pattern: str) -> None:
    """The intrinsic, run on tiles for all values of the loops left outside, adds up the same."""
    operator = OPERATORS[name]
    values = random_tensors(operator)
    expected = dict(values)
    interpreter.execute(operator, expected)
    listed = matches(operator, PATTERNS[pattern], fused=pattern != "conv")
    assert listed
    for match in listed:
        result = executed(operator, match, values)
        np.testing.assert_allclose(result, expected["output"], err_msg=loops_of(match))


def random_tensors(operator: Operator) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    shapes = {access.tensor: shape_of(operator, access) for access in operator.accesses}
    values = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    values["output"] = np.zeros(shapes["output"])
    return values


def shape_of(operator: Operator, access: Access) -> list[int]:
    """The least shape that holds what is read; what lies before zero is padding."""
    return [
        1 + index.offset + sum(step * (operator.extents[dim] - 1) for dim, step in index.terms)
        for index in access.index
    ]


def executed(operator: Operator, match: Match, values: Mapping[str, Array]) -> Array:
    inputs = operator.inputs[::-1] if match.swapped else operator.inputs
    result = np.zeros_like(values["output"])
    used = {dim for dims in match.loops.values() for dim in dims}
    outside = [dim for dim in operator.extents if dim not in used]
    for point in grid([operator.extents[dim] for dim in outside]):
        fixed = dict(zip(outside, point, strict=True))
        tiles = [
            tile(operator, match, number, access, values, fixed)
            for number, access in enumerate(inputs)
        ]
        output: dict[tuple[int, ...], float] = {}
        for iteration in iterations(operator, match):
            first, second, place = (
                tuple(position(match, axis, iteration) for axis in axes)
                for axes in match.pattern.operands
            )
            output[place] = output.get(place, 0.0) + tiles[0][first] * tiles[1][second]
        for iteration in iterations(operator, match):
            place = tuple(position(match, axis, iteration) for axis in match.pattern.operands[2])
            result[address(operator.output, point_of(operator, match, iteration, fixed))] += (
                output.pop(place, 0.0)
            )
    return result


def tile(
    operator: Operator,
    match: Match,
    number: int,
    access: Access,
    values: Mapping[str, Array],
    fixed: Mapping[str, int],
) -> dict[tuple[int, ...], float]:
    """What the intrinsic's operand holds; one position never holds two values."""
    held: dict[tuple[int, ...], float] = {}
    for iteration in iterations(operator, match):
        place = tuple(position(match, axis, iteration) for axis in match.pattern.operands[number])
        where = address(access, point_of(operator, match, iteration, fixed))
        inside = all(0 <= p < s for p, s in zip(where, values[access.tensor].shape, strict=True))
        value = float(values[access.tensor][where]) if inside else 0.0
        assert held.setdefault(place, value) == value
    return held


def grid(extents: list[int]) -> Iterator[tuple[int, ...]]:
    return product(*(range(extent) for extent in extents))


def iterations(operator: Operator, match: Match) -> Iterator[dict[str, int]]:
    loops = match.pattern.loops
    for point in grid([match.extent(operator, loop) for loop in loops]):
        yield dict(zip(loops, point, strict=True))


def position(match: Match, axis: tuple[str, ...], iteration: Mapping[str, int]) -> int:
    filled = tuple(loop for loop in axis if match.loops[loop])
    steps = match.steps.get(filled, (1,) * len(filled))
    return sum(step * iteration[loop] for loop, step in zip(filled, steps, strict=True))


def point_of(
    operator: Operator, match: Match, iteration: Mapping[str, int], fixed: Mapping[str, int]
) -> dict[str, int]:
    """Values of the operator's loops: fused ones are the digits of the intrinsic's loop."""
    point = dict(fixed)
    for loop, dims in match.loops.items():
        rest = iteration[loop]
        for dim in reversed(dims):
            rest, point[dim] = divmod(rest, operator.extents[dim])
    return point


def address(access: Access, point: Mapping[str, int]) -> tuple[int, ...]:
    def value(index: AffineIndex) -> int:
        return index.offset + sum(step * point[dim] for dim, step in index.terms)

    return tuple(value(index) for index in access.index)
