"""``--unroll rows=C+R``: the search restricted to given loops over the array's axes.

The restriction is written into the records that the search reads anyway: each axis takes a class
of loops of its own, and only the chosen loops are of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arch.errors import InputError, Problem, unknown
from arch.spec import Architecture, Axis, Component, Compute
from mapper.hierarchy import execution
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

#: The class of loops that no axis takes.
_OUTSIDE = "outside"


def parse_unrolling(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """``["rows=C+R"]`` as axis -> loops."""
    chosen: dict[str, tuple[str, ...]] = {}
    for text in texts:
        axis, equals, dims = (part.strip() for part in text.partition("="))
        loops = tuple(dim.strip() for dim in dims.split("+"))
        if not (axis and equals and all(loops)):
            message = f"'{text}' is not AXIS=LOOPS, as in rows=C+R"
            raise InputError(Problem(message, where="--unroll"))
        if axis in chosen:
            raise InputError(Problem(f"axis {axis} is given twice", where="--unroll"))
        chosen[axis] = loops
    return chosen


def restricted(
    workload: Workload, architecture: Architecture, texts: Sequence[str]
) -> tuple[Workload, Architecture]:
    """A workload of one operator and its hardware, unrolling only as said, if anything is."""
    if not texts:
        return workload, architecture
    if len(workload.operators) > 1:
        raise InputError(Problem("is about one operator; add --op NAME", where="--unroll"))
    chosen = parse_unrolling(texts)
    (operator,) = workload.operators
    run = execution(workload, operator, architecture)
    axes = {axis.name: axis for axis in run.intrinsic.axes}
    problems = [p for axis, dims in chosen.items() for p in _problems(operator, axes, axis, dims)]
    if problems:
        raise InputError(problems)
    taken = {dim: axis for axis, dims in chosen.items() for dim in dims}
    classes = tuple((dim, taken.get(dim, _OUTSIDE)) for dim in operator.extents)
    unit = replace(
        run.compute,
        intrinsics=tuple(
            replace(i, axes=tuple(replace(a, dim_classes=(a.name,)) for a in i.axes))
            for i in run.compute.intrinsics
        ),
    )
    return (
        replace(workload, operators=(replace(operator, dim_classes=classes),)),
        replace(architecture, components=_with(architecture, run.compute, unit)),
    )


def _problems(
    operator: Operator, axes: Mapping[str, Axis], axis: str, dims: Sequence[str]
) -> list[Problem]:
    if axis not in axes:
        return [Problem(unknown("axis", axis, list(axes)), where="--unroll")]
    found = []
    for dim in dims:
        where = f"--unroll {axis}"
        if dim not in operator.extents:
            found.append(Problem(unknown("loop", dim, list(operator.extents)), where=where))
        elif operator.dim_class(dim) not in axes[axis].dim_classes:
            allowed = [
                d for d in operator.extents if operator.dim_class(d) in axes[axis].dim_classes
            ]
            message = (
                f"loop {dim} of {operator.name} cannot be unrolled there; allowed "
                f"{', '.join(allowed) or 'no loop of this operator'}"
            )
            found.append(Problem(message, where=where))
    return found


def _with(architecture: Architecture, old: Compute, new: Compute) -> tuple[Component, ...]:
    return tuple(new if component is old else component for component in architecture.components)
