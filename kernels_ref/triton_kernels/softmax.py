"""Row softmax; one program per row, whatever its length."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Longest piece of a row that one program keeps in registers: 16 fp32 values per thread of 8
#: warps. Longer rows are read twice, the second time mostly from L2.
MAX_PIECE = 4096


@triton.jit
def _row_softmax(x_ptr, out_ptr, cols, piece: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, piece)
    # Maximum and sum of the row so far; the sum is rescaled whenever the maximum grows.
    top = tl.full((1,), float("-inf"), tl.float32)
    total = tl.zeros((1,), tl.float32)
    for start in range(0, cols, piece):
        inside = lanes < cols - start
        x = tl.load(x_ptr + row + start + lanes, mask=inside, other=float("-inf"))
        x = x.to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        # A row may begin with masked (minus infinite) values; their difference is not a number.
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base), axis=0)
        top = new_top
    for start in range(0, cols, piece):
        inside = lanes < cols - start
        x = tl.load(x_ptr + row + start + lanes, mask=inside, other=float("-inf"))
        y = tl.exp(x.to(tl.float32) - top) / total
        tl.store(out_ptr + row + start + lanes, y.to(out_ptr.dtype.element_ty), mask=inside)


def row_softmax(x: torch.Tensor, *, out: torch.Tensor) -> None:
    rows, cols = x.shape
    piece = min(MAX_PIECE, triton.next_power_of_2(cols))
    _row_softmax[(rows,)](x, out, cols, piece=piece, num_warps=max(1, min(8, piece // 256)))
