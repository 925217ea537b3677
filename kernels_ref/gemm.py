"""Matrix product ``out[M, N] = a[M, K] @ b[K, N]`` with sums in fp32.

``a`` and ``out`` are row-major, ``b`` is column-major: the weights of a linear layer as torch
keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arch.datatypes import accumulator_of
from kernels_ref.kernel import Counts, Kernel, Params, normal, size_bytes, triton_kernel
from mapper.workload import nests
from mapper.workload.operators import Access, Operator

if TYPE_CHECKING:
    import torch


def reference(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    import torch

    torch.matmul(a, b, out=out)


def operator(params: Params, dtype: str) -> Operator:
    nest = nests.gemm(params["M"], params["N"], params["K"])
    return Operator(
        name="gemm",
        kind="gemm",
        operation="mac",
        extents=nest.extents,
        inputs=(Access("a", nest.inputs[0]), Access("b", nest.inputs[1])),
        output=Access("out", nest.output),
        accumulator_dtype=accumulator_of(dtype),
    )


def counts(params: Params, dtype: str) -> Counts:
    m, n, k = params["M"], params["N"], params["K"]
    return Counts(
        flops=2 * m * n * k,
        read_bytes=size_bytes(m * k + k * n, dtype),
        write_bytes=size_bytes(m * n, dtype),
    )


def make_inputs(params: Params, dtype: str, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    m, n, k = params["M"], params["N"], params["K"]
    return normal((m, k), dtype, generator), normal((n, k), dtype, generator).t()


KERNEL = Kernel(
    name="gemm",
    params=("M", "N", "K"),
    dtypes=("bf16", "fp16"),
    reference=reference,
    triton=triton_kernel("gemm", "gemm"),
    operator=operator,
    counts=counts,
    make_inputs=make_inputs,
    output_shape=lambda params: (params["M"], params["N"]),
)
