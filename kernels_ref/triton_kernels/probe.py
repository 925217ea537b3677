"""Small kernels that look at the hardware: how tensor cores round, how blocks are dispatched."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid


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
    tl.store(out_ptr + at, tl.dot(a, b, c, input_precision=precision, out_dtype=c.dtype))


def probe(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """``a[P, M, K]``, ``b[P, N, K]``, ``c[P, M, N]``: ``a @ b.T + c`` of each program."""
    out = torch.empty_like(c)
    programs, rows, depth = a.shape
    _probe[(programs,)](
        a, b, c, out, rows=rows, cols=b.shape[1], depth=depth, precision="tf32", num_warps=4
    )
    return out


@triton.jit
def _dispatched(start_ptr, sm_ptr, least_ns: tl.constexpr):
    program = tl.program_id(0)
    began = globaltimer()
    tl.store(start_ptr + program, began)
    tl.store(sm_ptr + program, smid())
    now = globaltimer()
    while now - began < least_ns:
        now = globaltimer()


def dispatched(programs: int, least_ns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """When each of so many blocks started (ns) and on which SM, if each lasts ``least_ns``."""
    start = torch.zeros(programs, dtype=torch.int64, device="cuda")
    sm = torch.zeros(programs, dtype=torch.int32, device="cuda")
    _dispatched[(programs,)](start, sm, least_ns=least_ns, num_warps=4)
    return start, sm
