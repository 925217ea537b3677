"""Mappings with a fixed dataflow: what is unrolled where and what stays longest are given, the
tile sizes are the best ones.

``weight_stationary`` as NVDLA's convolution core: input channels down the rows, output channels
across the columns, weights stay. ``output_stationary``: rows of the output down, its channels
across, sums stay (Du et al., ShiDianNao, ISCA 2015, has both output axes). ``row_stationary`` as
Eyeriss (Chen et al., ISCA 2016): filter rows down, output rows across, filter rows stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from arch.spec import Memory
from mapper.cost import PriceList
from mapper.hierarchy import Execution
from mapper.search.exact import SearchResult, map_execution
from mapper.search.space import StageOrder, stage_orders


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Classes of the loops unrolled over rows and columns (``loops``: these instead, where they
    are named), and which operand's tiles stay longest."""

    stays: str
    classes: tuple[str, str]
    loops: tuple[str, str] | None = None


PRESETS: Mapping[str, Preset] = {
    "weight_stationary": Preset(stays="weight", classes=("k", "n")),
    "output_stationary": Preset(stays="output", classes=("m", "n")),
    "row_stationary": Preset(stays="weight", classes=("k", "m"), loops=("R", "P")),
}


def map_preset(
    name: str, run: Execution, leakage_w: float, price: PriceList, objective: str
) -> SearchResult:
    """The preset's best mapping, bounded by the best of all mappings.

    ``InputError`` if the operator or the array is not of the preset's kind.
    """
    chosen = map_execution(run, leakage_w, price, objective, preset_orders(name, run))
    best = map_execution(run, leakage_w, price, objective)
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
    unrolled = frozenset(zip(_loops(name, preset, run), _axes(name, run), strict=True))
    for order in stage_orders(run):
        if _stays_longest(order.stages, preset.stays, run):
            yield StageOrder(order.run, order.stages, order.common, unrolled)


def _loops(name: str, preset: Preset, run: Execution) -> tuple[str, ...]:
    operator = run.operator
    if preset.loops:
        missing = [loop for loop in preset.loops if loop not in operator.extents]
        if missing:
            message = f"{name} needs the loops {', '.join(preset.loops)} of a convolution"
            raise _refused(run, f"{message}; it has {', '.join(operator.extents)}")
        return preset.loops
    found = []
    for wanted in preset.classes:
        loops = [dim for dim in operator.extents if operator.dim_class(dim) == wanted]
        if not loops:
            message = f"{name} unrolls a loop of class {wanted!r}, and it has none"
            raise _refused(run, message)
        found.append(max(loops, key=lambda dim: operator.extents[dim]))
    return tuple(found)


def _axes(name: str, run: Execution) -> tuple[str, str]:
    axes = [axis.name for axis in run.intrinsic.axes]
    if len(axes) != 2:
        raise _refused(run, f"{name} is for an array of two axes; it runs on {run.compute.name}")
    rows, columns = run.intrinsic.axes
    preset = PRESETS[name]
    for axis, wanted in zip((rows, columns), preset.classes, strict=True):
        if wanted not in axis.dim_classes:
            message = (
                f"{name} unrolls loops of class {wanted!r} over {axis.name}; {run.compute.name} "
                f"takes {', '.join(axis.dim_classes)} there: try --set {run.compute.name}"
                f".dataflow={name}"
            )
            raise _refused(run, message)
    return rows.name, columns.name


def _refused(run: Execution, message: str) -> InputError:
    return InputError(Problem(message, where=f"operator {run.operator.name}"))


def _stays_longest(stages: tuple[tuple[int, Memory], ...], role: str, run: Execution) -> bool:
    """Is the operand of that role the first to be brought into each kind of memory?"""
    for replicated in (False, True):
        some = [op for op, memory in stages if bool(memory.replicated_over) == replicated]
        roles = [run.operator.role(op) for op in some]
        if role in roles and roles[0] != role:
            return False
    return True
