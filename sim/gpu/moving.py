"""The library calls of operators that are no products: along rows, windows, or streams.

What is none of the kernels that were measured alone streams its operands like the elementwise
kernels of transformer layers.
"""

from __future__ import annotations

import math

from mapper.workload.graph import Workload
from mapper.workload.operators import Access, Operator
from sim.gpu.chip import BYTES
from sim.gpu.demand import Call

LOOKUP = "lookup"
#: Operations along rows, and the library kernel that does them.
ROWS = {"softmax": "row_softmax", "norm": "row_layernorm"}
#: Normalizations that are a scale and a shift, those of images as a whole, and a softmax over an
#: axis that is not the last.
BY_STATISTICS = ("batch_norm", "rms_scale")
OF_IMAGES = ("group_norm", "instance_norm")
ACROSS = "softmax_over_axis"
#: Activations that are one comparison or two; axes of a batch of images.
CLAMPS = ("relu", "relu6", "clamp")
IMAGE_AXES = 4
#: Bytes that the kernel model counts for an element of a streaming kernel.
STREAMED_BYTES = 2


def moving(workload: Workload, operator: Operator, dtype: str) -> tuple[Call, str]:
    """What is no product: along rows, rows of a table, windows, or a stream of its operands."""
    if operator.kind == LOOKUP:
        # As many bytes read as written, and a table is in no cache.
        return Call(kind="ew_scale", params={"n": operator.points}, dtype=dtype), ""
    if operator.operation in ROWS and (row := _row(operator)):
        cols = math.prod(operator.extents[dim] for dim in row)
        params = {"R": operator.points // cols, "C": cols}
        note = "over another axis: as along rows" if operator.kind == ACROSS else ""
        return Call(kind=ROWS[operator.operation], params=params, dtype=dtype), note
    summed = operator.reduction_dims()
    if not summed:
        return _streamed(workload, operator, dtype), ""
    if _slides(operator, summed):
        # Of one operand it is a pool; gathered rows and gradients stream theirs.
        of = _windows if len(operator.inputs) == 1 else _streamed
        return of(workload, operator, dtype), ""
    cols = math.prod(operator.extents[dim] for dim in summed)
    if _of_image(workload, operator, summed):
        return _between(workload, operator, "mean", dtype, side=round(math.sqrt(cols))), ""
    params = {"R": operator.points // cols, "C": cols}
    note = "" if _along_rows(operator, summed) else "along another axis: as a sum along rows"
    return Call(kind="row_sum", params=params, dtype=dtype), note


def _row(operator: Operator) -> frozenset[str]:
    """The loops over what is normalized together; none if it is by numbers known before."""
    if operator.kind in BY_STATISTICS or operator.reduction_dims():
        return frozenset()
    if operator.whole_dims:
        return operator.whole_dims
    loops = tuple(operator.extents)
    return frozenset(loops[1:] if operator.kind in OF_IMAGES else loops[-1:])


def _slides(operator: Operator, summed: frozenset[str]) -> bool:
    """Whether windows overlap or lie side by side, as in pooling."""
    axes = [axis for access in operator.inputs for axis in access.index]
    return any(set(axis.dims) & summed and set(axis.dims) - summed for axis in axes)


def _windows(workload: Workload, operator: Operator, dtype: str) -> Call:
    """A pool, by the rows of its windows and of its result."""
    kind = "max_pool" if operator.operation == "max" else "avg_pool"
    window = [operator.extents[dim] for dim in operator.extents if dim in operator.reduction_dims()]
    axes = [set(axis.dims) for axis in operator.inputs[0].index]
    slid = {dim for dims in axes if dims & operator.reduction_dims() for dim in dims}
    sides = [operator.extents[dim] for dim in slid - operator.reduction_dims()]
    return _between(workload, operator, kind, dtype, R=max(window), side=max(sides))


def _of_image(workload: Workload, operator: Operator, summed: frozenset[str]) -> bool:
    """Whether height and width of images are added up, which lie outside of their channels."""
    read = operator.inputs[0]
    last = {dim for axis in read.index[-2:] for dim in axis.dims}
    return len(workload.tensor(read.tensor).shape) == IMAGE_AXES and summed <= last


def _along_rows(operator: Operator, summed: frozenset[str]) -> bool:
    """Whether what is added up lies side by side: the input's last axes."""
    axes = [set(axis.dims) for axis in operator.inputs[0].index if axis.dims]
    inner = [bool(dims & summed) for dims in axes]
    return inner == sorted(inner)


def _between(workload: Workload, operator: Operator, kind: str, dtype: str, **sizes: int) -> Call:
    """One of the kernels between products; bytes are those of all operands, each once."""
    elements = [touched(workload, operator, access) for access in operator.accesses]
    moved = sum(elements) * max(STREAMED_BYTES, BYTES[dtype])
    return Call(kind=kind, params={"n": elements[-1], "moved": moved, **sizes}, dtype=dtype)


def _streamed(workload: Workload, operator: Operator, dtype: str) -> Call:
    """Bytes read and written, each once; ``hot`` and ``strided`` are such kernels of transformer
    layers, by whether operands are read in the result's order."""
    elements = [touched(workload, operator, access) for access in operator.accesses]
    result = elements[-1]
    contiguous = operator.operation != "copy" and all(
        in_order_of(access) == in_order_of(operator.output)
        for access, count in zip(operator.inputs, elements, strict=False)
        if count >= result
    )
    plain = contiguous and all(count >= result for count in elements if count > 1)
    if kind := _kind_between(operator, plain=plain):
        return _between(workload, operator, kind, dtype)
    wider = max(1.0, BYTES[dtype] / STREAMED_BYTES)
    params = {"n": result, "tensors": sum(elements) / result * wider}
    return Call(kind="hot" if plain else "strided", params=params, dtype=dtype)


def _kind_between(operator: Operator, *, plain: bool) -> str | None:
    """Of the kernels that were measured alone, the one that this is."""
    if operator.kind == "batch_norm":
        return "batch_norm"
    if operator.operation == "copy":
        return "join"
    one_of_channels = operator.operation == "mul" and len(operator.inputs) == 2 and not plain
    if one_of_channels and len(operator.extents) >= IMAGE_AXES - 1:
        return "scale"
    if not plain or len(operator.extents) < IMAGE_AXES - 1:
        return None
    if operator.operation == "activation" and len(operator.inputs) == 1:
        return "clamp" if operator.kind in CLAMPS else "activation"
    return "sum" if operator.operation == "add" and len(operator.inputs) == 2 else None


def touched(workload: Workload, operator: Operator, access: Access) -> int:
    points = math.prod(operator.extents[dim] for dim in access.dims)
    return min(points, workload.tensor(access.tensor).elements)


def in_order_of(access: Access) -> list[tuple[tuple[str, int], ...]]:
    return [axis.terms for axis in access.index if axis.terms]
