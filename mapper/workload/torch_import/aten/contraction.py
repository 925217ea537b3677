"""Matrix products."""

from __future__ import annotations

from mapper.workload.nests import Nest, at
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.folding import note_bias
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import join_leading


@lowers("aten.linear")
def lower_linear(call: Call) -> Value:
    """``out[..., N] = in[..., K] * weight[N, K]``, leading axes joined to ``M`` where possible."""
    data = join_leading(call["input"], 1)
    weight = call["weight"]
    rows = row_dims(len(data.shape) - 1)
    nest = Nest(
        extents={
            **dict(zip(rows, data.shape, strict=False)),
            "N": weight.shape[0],
            "K": weight.shape[1],
        },
        inputs=(at(*rows, "K"), at("N", "K")),
        output=at(*rows, "N"),
    )
    note_bias(call, call["bias"])
    kernel = Kernel(kind="gemm", operation="mac", nest=nest)
    shape = (*data.shape[:-1], weight.shape[0])
    view = call.draft.emit(call.name, kernel, [data, weight], shape, call.dtype)
    return call.draft.reshape(view, call.shape)


def row_dims(count: int) -> tuple[str, ...]:
    """``M`` for the innermost of the row loops, ``M1``, ``M2`` ... outwards."""
    return tuple("M" if level == 0 else f"M{level}" for level in reversed(range(count)))
