"""Images and signals in another size: each element from one neighbour or from a few.

Element ``o`` of ``O`` is found near ``o * I / O`` of ``I``, rounded down, which no affine
expression says for all ``o``. But it repeats: with ``I / O = a / b`` in lowest terms, ``b``
elements further stands what was ``a`` elements further. Within ``b`` elements it falls into a few
runs of equal steps. So a resize is one operator for every combination of runs, mostly one.

Which neighbours are read does not depend on where the corners are said to lie, up to one position;
the library's default is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mapper.workload.nests import SPATIAL_DIMS, Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, fresh

_HALF = Fraction(1, 2)

_NEAREST = {
    **{f"aten.upsample_nearest{rank}d": Fraction(0) for rank in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{rank}d": _HALF for rank in (1, 2, 3)},
}

#: Neighbours along each axis that an element is interpolated from.
_INTERPOLATED = {
    "aten.upsample_linear1d": 2,
    "aten.upsample_bilinear2d": 2,
    "aten.upsample_trilinear3d": 2,
    "aten.upsample_bicubic2d": 4,
    "aten._upsample_bilinear2d_aa": 2,
    "aten._upsample_bicubic2d_aa": 4,
}


@dataclass(frozen=True, slots=True)
class Run:
    """Elements ``first + j + out_period q`` from ``start + step j + in_period q``."""

    first: int
    count: int
    start: int
    step: int
    out_period: int
    in_period: int
    periods: int


@lowers(*_NEAREST)
def lower_nearest(call: Call) -> Value:
    """Each element is a copy of one."""
    shift = _NEAREST[call.operation]
    axes = [
        list(runs(small, large, shift, 0))
        for small, large in zip(_data(call).shape[2:], call.shape[2:], strict=True)
    ]
    return _resized(call, axes, (1,) * len(axes))


@lowers(*_INTERPOLATED)
def lower_interpolation(call: Call) -> Value:
    """Each element is a weighted sum of its neighbours (multiply and add)."""
    taps = _INTERPOLATED[call.operation]
    axes, counts = [], []
    for small, large in zip(_data(call).shape[2:], call.shape[2:], strict=True):
        # Against aliasing, the window is as much wider as the result is smaller.
        smoothed = call.operation.endswith("_aa") and small > large
        count = 2 * math.ceil(Fraction(taps * small, 2 * large)) if smoothed else taps
        axes.append(list(runs(small, large, _HALF, count // 2)))
        counts.append(count)
    return _resized(call, axes, tuple(counts))


def runs(small: int, large: int, shift: Fraction, before: int) -> Iterator[Run]:
    """Runs along one axis. With neighbours (``before`` of them up to the place itself) the place
    lies between two positions, else in one."""
    common = math.gcd(small, large)
    advance, period = small // common, large // common
    back = _HALF if before else Fraction(0)
    places = [
        math.floor((at_ + shift) * Fraction(small, large) - back) - max(before - 1, 0)
        for at_ in range(period)
    ]
    first = 0
    while first < period:
        end = first + 1
        while end < period and places[end] - places[end - 1] == _step(places, first):
            end += 1
        step = _step(places, first) if end > first + 1 else 0
        yield Run(first, end - first, places[first], step, period, advance, common)
        first = end


def _step(places: list[int], first: int) -> int:
    return places[first + 1] - places[first]


def _resized(call: Call, axes: list[list[Run]], taps: tuple[int, ...]) -> View:
    data = _data(call)
    name = call.draft.unique(call.name)
    result = fresh(call.draft.store(f"{name}.out", call.shape, call.dtype, "activation"))
    several = max(taps) > 1
    kind = call.operation.removeprefix("aten.").lstrip("_").removesuffix(".vec")
    combinations = list(product(*axes))
    for number, combination in enumerate(combinations):
        kernel = Kernel(
            kind=kind,
            operation="mean" if several else "copy",
            nest=_nest(data.shape[:2], combination, taps),
            ops_per_point=2 if several else 1,
        )
        part = call.draft.unique(f"{name}.part{number}") if len(combinations) > 1 else name
        call.draft.emit_into(part, kernel, [data], result)
    return result


def _nest(leading: tuple[int, ...], chosen: tuple[Run, ...], taps: tuple[int, ...]) -> Nest:
    outputs, kernels = SPATIAL_DIMS[len(chosen)]
    extents = dict(zip(("N", "C"), leading, strict=True))
    extents |= {p: run.periods for p, run in zip(outputs, chosen, strict=True)}
    extents |= {f"F{p}": run.count for p, run in zip(outputs, chosen, strict=True)}
    extents |= dict(zip(kernels, taps, strict=True))
    windows = [
        AffineIndex(((p, run.in_period), *_term(f"F{p}", run.step), (r, 1)), run.start)
        for p, r, run in zip(outputs, kernels, chosen, strict=True)
    ]
    places = [
        AffineIndex(((p, run.out_period), (f"F{p}", 1)), run.first)
        for p, run in zip(outputs, chosen, strict=True)
    ]
    return Nest(
        extents=extents, inputs=((*at("N", "C"), *windows),), output=(*at("N", "C"), *places)
    )


def _term(dim: str, step: int) -> tuple[tuple[str, int], ...]:
    return ((dim, step),) if step else ()


def _data(call: Call) -> View:
    view: View = call["input"] if "input" in call.arguments else call["self"]
    return view
