"""Dataflows by name: what is unrolled where and what stays longest in the elements are given, all
else is the best that the exact search finds.

``weight_stationary`` as NVDLA's convolution core: input channels down the rows, output channels
across the columns; weights stay in the elements while a tile of the output is passed over.
``output_stationary`` as ShiDianNao (Du et al., ISCA 2015): rows of the output down, its columns
across, sums stay; on an array whose columns take output channels only: pixels down, channels
across. ``row_stationary`` as Eyeriss (Chen et al., ISCA 2016): all filter rows down, output rows
across in strips as long as the array is wide, filter rows stay; what is left of the array repeats
this for further channels and filters, and filters that are higher than the array are folded.
Strips of one plane are not put above one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from arch.spec import Axis, Memory
from mapper.cost import PriceList
from mapper.hierarchy import Execution
from mapper.search.constraints import Constraint
from mapper.search.exact import SearchResult, map_execution
from mapper.search.space import StageOrder, constrained_orders

#: Classes of loops in words.
_LOOPS: Mapping[str, str] = {
    "m": "the output's rows or pixels",
    "n": "the output's columns or channels",
    "k": "what is summed",
    "b": "batches",
}

#: Loops of a convolution that presets name.
_CONVOLUTION = frozenset("KCPQRS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Loops over rows and over columns, of a convolution and (by class) of other products; which
    operand's tiles the elements keep longest, if it matters; what repeats the pattern where there
    is room (rows, columns)."""

    stays: str | None = None
    loops: tuple[str, str]
    classes: tuple[str, str]
    repeated: tuple[str, str] = ("", "")
    #: Must the loop over the rows be unrolled whole, if the axis is long enough?
    whole_rows: bool = False


PRESETS: Mapping[str, Preset] = {
    "weight_stationary": Preset(loops=("C", "K"), classes=("k", "n")),
    "output_stationary": Preset(stays="output", loops=("P", "Q"), classes=("m", "n")),
    "row_stationary": Preset(
        stays="weight",
        loops=("R", "P"),
        classes=("k", "m"),
        repeated=("CK", "CK"),
        whole_rows=True,
    ),
}


def map_preset(
    name: str, run: Execution, leakage_w: float, price: PriceList, objective: str
) -> SearchResult:
    """The preset's best mapping, bounded by the best of all mappings.

    ``InputError`` if the array is not of the preset's kind. An operator that is no contraction
    has no dataflow: it gets its best mapping.
    """
    best = map_execution(run, leakage_w, price, objective)
    if run.operator.operation != "mac":
        return best
    chosen = map_execution(run, leakage_w, price, objective, preset_orders(name, run))
    return replace(
        chosen,
        mapping=replace(chosen.mapping, made_by=name),
        calls=chosen.calls + best.calls,
        optimal=chosen.objective_value <= best.objective_value,
        lower_bound=best.objective_value,
    )


def preset_orders(name: str, run: Execution) -> Iterator[StageOrder]:
    """The orders of stages of a preset, with only its loops unrolled.

    ``InputError`` if the operator has no such loops or the array cannot unroll them.
    """
    preset = PRESETS[name]
    rows, columns = _axes(name, run)
    pairs, factors = _unrolled(name, run, (rows, columns))
    constraint = Constraint(unrolled=pairs, factors=factors)
    for order in constrained_orders(run, constraint):
        if preset.stays is None or _stays_longest(order.stages, preset.stays, run):
            yield order


def _unrolled(
    name: str, run: Execution, axes: tuple[Axis, Axis]
) -> tuple[frozenset[tuple[str, str]], tuple[tuple[str, str, int], ...]]:
    """What may be unrolled where, and what must be: loops of a convolution where the axes take
    them, otherwise those of each class."""
    preset, operator = PRESETS[name], run.operator
    if not _is_convolution(preset, run, axes):
        return frozenset(_by_class(name, run, axes)), ()
    pairs = {(dim, axis.name) for dim, axis in zip(preset.loops, axes, strict=True)}
    for axis, repeated in zip(axes, preset.repeated, strict=True):
        takes = axis.dim_classes
        pairs |= {(dim, axis.name) for dim in repeated if operator.dim_class(dim) in takes}
    rows, height = axes[0], operator.extents[preset.loops[0]]
    whole = preset.whole_rows and height <= rows.size
    return frozenset(pairs), ((preset.loops[0], rows.name, height),) if whole else ()


def _is_convolution(preset: Preset, run: Execution, axes: tuple[Axis, Axis]) -> bool:
    return set(run.operator.extents) >= _CONVOLUTION and all(
        run.operator.dim_class(dim) in axis.dim_classes
        for dim, axis in zip(preset.loops, axes, strict=True)
    )


def _by_class(name: str, run: Execution, axes: tuple[Axis, Axis]) -> Iterator[tuple[str, str]]:
    for wanted, axis in zip(PRESETS[name].classes, axes, strict=True):
        if wanted not in axis.dim_classes:
            offered = " or ".join(_LOOPS[each] for each in axis.dim_classes)
            message = (
                f"{name} spreads {_LOOPS[wanted]} over {axis.name}; there {run.compute.name} "
                f"spreads {offered} only. It is for arrays whose dataflow is {name} or free, "
                f"with memories per element for what stays"
            )
            raise _refused(run, message)
        loops = [dim for dim in run.operator.extents if run.operator.dim_class(dim) == wanted]
        if not loops:
            message = f"{name} unrolls a loop of class {wanted!r}, and it has none"
            raise _refused(run, message)
        yield from ((dim, axis.name) for dim in loops)


def _axes(name: str, run: Execution) -> tuple[Axis, Axis]:
    if len(run.intrinsic.axes) != 2:
        raise _refused(run, f"{name} is for an array of two axes; it runs on {run.compute.name}")
    rows, columns = run.intrinsic.axes
    return rows, columns


def _refused(run: Execution, message: str) -> InputError:
    return InputError(Problem(message, where=f"operator {run.operator.name}"))


def _stays_longest(stages: tuple[tuple[int, Memory], ...], role: str, run: Execution) -> bool:
    """Is the operand of that role, if the elements have memories of their own for it, the first to
    be brought into these?"""
    private = [op for op, memory in stages if memory.replicated_over]
    roles = [run.operator.role(op) for op in private]
    return role not in roles or roles[0] == role
