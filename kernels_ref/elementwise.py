"""Sum of two arrays of equal shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arch.datatypes import accumulator_of
from kernels_ref.kernel import Counts, Kernel, Params, normal, size_bytes, triton_kernel
from mapper.workload.nests import at
from mapper.workload.operators import Access, Operator

if TYPE_CHECKING:
    import torch


def reference(x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> None:
    import torch

    torch.add(x, y, out=out)


def operator(params: Params, dtype: str) -> Operator:
    return Operator(
        name="ew_add",
        kind="add",
        operation="add",
        extents={"N": params["elements"]},
        inputs=(Access("x", at("N")), Access("y", at("N"))),
        output=Access("out", at("N")),
        accumulator_dtype=accumulator_of(dtype),
    )


def counts(params: Params, dtype: str) -> Counts:
    moved = size_bytes(params["elements"], dtype)
    return Counts(flops=params["elements"], read_bytes=2 * moved, write_bytes=moved)


def shape(params: Params) -> tuple[int, ...]:
    return (params["elements"],)


def make_inputs(params: Params, dtype: str, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    return normal(shape(params), dtype, generator), normal(shape(params), dtype, generator)


KERNEL = Kernel(
    name="ew_add",
    params=("elements",),
    dtypes=("bf16", "fp16", "fp32"),
    reference=reference,
    triton=triton_kernel("elementwise", "ew_add"),
    operator=operator,
    counts=counts,
    make_inputs=make_inputs,
    output_shape=shape,
)
