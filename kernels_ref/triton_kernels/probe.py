"""One matrix instruction per program, to see how tensor cores round."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _probe(
    a_ptr, b_ptr, c_ptr, out_ptr, rows: tl.constexpr, cols: tl.constexpr, depth: tl.constexpr,
    precision: tl.constexpr
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    row, col, along = tl.arange(0, rows), tl.arange(0, cols), tl.arange(0, depth)
    a = tl.load(a_ptr + program * rows * depth + row[:, None] * depth + along[None, :])
    b = tl.load(b_ptr + program * cols * depth + col[None, :] * depth + along[:, None])
    at = program * rows * cols + row[:, None] * cols + col[None, :]
    c = tl.load(c_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, c, input_precision=precision))


def probe(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """``a[P, M, K]``, ``b[P, N, K]``, ``c[P, M, N]``: ``a @ b.T + c`` of each program."""
    out = torch.empty_like(c)
    programs, rows, depth = a.shape
    _probe[(programs,)](
        a, b, c, out, rows=rows, cols=b.shape[1], depth=depth, precision="tf32", num_warps=4
    )
    return out
