"""Sum of all ranks' rows, residual and RMS norm in one kernel that reads its peers' memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _reduce_norm(
    peers, residual_ptr, weight_ptr, out_ptr, sum_ptr, cols, eps, width: tl.constexpr
):  # fmt: skip
    lane = tl.arange(0, width)
    inside = lane < cols
    at = tl.program_id(0).to(tl.int64) * cols + lane
    total = tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32)
    for rank in tl.static_range(len(peers)):
        total += tl.load(peers[rank] + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(sum_ptr + at, total.to(sum_ptr.dtype.element_ty), mask=inside)
    weight = tl.load(weight_ptr + lane, mask=inside, other=0.0).to(tl.float32)
    y = total * tl.rsqrt(tl.sum(total * total, axis=0) / cols + eps) * weight
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


def reduce_norm(
    peers: tuple[torch.Tensor, ...], residual: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Norm and sum, stacked; ``peers`` are every rank's ``[R, C]``, its own among them."""
    rows, cols = residual.shape
    width = triton.next_power_of_2(cols)
    out = torch.empty((2, rows, cols), dtype=residual.dtype, device=residual.device)
    _reduce_norm[(rows,)](
        peers, residual, weight, out[0], out[1], cols, 1e-5, width=width,
        num_warps=min(16, max(1, width // 512)),
    )  # fmt: skip
    return out


def reduce_norm_of_parts(
    parts: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """All ranks' ``parts[P, R, C]`` in one memory, which stands for several GPUs' memories."""
    return reduce_norm(parts.unbind(0), residual, weight)
