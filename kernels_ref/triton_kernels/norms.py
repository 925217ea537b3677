"""Layer norm and RMS norm of rows; one program per row, which is kept in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _norm(x_ptr, weight_ptr, bias_ptr, out_ptr, cols, eps, width: tl.constexpr, rms: tl.constexpr):
    lane = tl.arange(0, width)
    inside = lane < cols
    at = tl.program_id(0).to(tl.int64) * cols + lane
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + lane, mask=inside, other=0.0).to(tl.float32)
    if rms:
        y = x * tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps) * weight
    else:
        centred = tl.where(inside, x - tl.sum(x, axis=0) / cols, 0.0)
        bias = tl.load(bias_ptr + lane, mask=inside, other=0.0).to(tl.float32)
        variance = tl.sum(centred * centred, axis=0) / cols
        y = centred * tl.rsqrt(variance + eps) * weight + bias
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


def _run(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float
) -> torch.Tensor:
    rows, cols = x.shape
    width = triton.next_power_of_2(cols)
    out = torch.empty_like(x)
    _norm[(rows,)](
        x,
        weight,
        weight if bias is None else bias,
        out,
        cols,
        eps,
        width=width,
        rms=bias is None,
        num_warps=min(16, max(1, width // 512)),
    )
    return out


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return _run(x, weight, bias, 1e-5)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return _run(x, weight, None, 1e-5)
