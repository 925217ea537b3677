"""Softmax of every row of a row-major matrix; sums in fp32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arch.datatypes import accumulator_of
from kernels_ref.kernel import Counts, Kernel, Params, normal, size_bytes, triton_kernel
from mapper.workload.nests import at
from mapper.workload.operators import Access, Operator

if TYPE_CHECKING:
    import torch

#: Compare with the maximum, subtract it, exponentiate, add, multiply by the reciprocal sum.
FLOPS_PER_ELEMENT = 5


def reference(x: torch.Tensor, *, out: torch.Tensor) -> None:
    import torch

    torch.softmax(x, dim=-1, out=out)


def operator(params: Params, dtype: str) -> Operator:
    return Operator(
        name="row_softmax",
        kind="softmax",
        operation="softmax",
        extents={"M": params["rows"], "N": params["cols"]},
        inputs=(Access("x", at("M", "N")),),
        output=Access("out", at("M", "N")),
        accumulator_dtype=accumulator_of(dtype),
        ops_per_point=FLOPS_PER_ELEMENT,
    )


def counts(params: Params, dtype: str) -> Counts:
    elements = params["rows"] * params["cols"]
    moved = size_bytes(elements, dtype)
    return Counts(flops=FLOPS_PER_ELEMENT * elements, read_bytes=moved, write_bytes=moved)


def shape(params: Params) -> tuple[int, ...]:
    return params["rows"], params["cols"]


def make_inputs(params: Params, dtype: str, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    return (normal(shape(params), dtype, generator),)


KERNEL = Kernel(
    name="row_softmax",
    params=("rows", "cols"),
    dtypes=("bf16", "fp16", "fp32"),
    reference=reference,
    triton=triton_kernel("softmax", "row_softmax"),
    operator=operator,
    counts=counts,
    make_inputs=make_inputs,
    output_shape=shape,
)
