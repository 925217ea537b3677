"""Row softmax; one program per long row or per few short ones."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

#: Most values that one program keeps in registers: 16 fp32 values per thread of 8 warps. Longer
#: rows are read twice, the second time mostly from L2.
MAX_PIECE = 4096

#: Short rows are taken together up to this many values.
MIN_PIECE = 1024

#: 8 values per thread.
PIECE_PER_WARP = 256

#: Elements of 16 bits in the widest access of a thread, 16 bytes.
WIDEST_ACCESS = 8


@triton.jit
def _row_softmax(
    x_ptr,
    out_ptr,
    rows,
    col_units,
    col_unit: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    # A multiple of a constant, so that the compiler knows how wide its loads may be.
    cols = col_units * col_unit
    row = tl.program_id(0) * height + tl.arange(0, height)[:, None]
    lane = tl.arange(0, width)[None, :]
    # Rows past the last one compute it again, so that all values are finite or of a real row.
    at = tl.minimum(row, rows - 1).to(tl.int64) * cols + lane
    # Maximum and sum of each row so far; a sum is rescaled whenever its maximum grows.
    top = tl.full((height, 1), float("-inf"), tl.float32)
    total = tl.zeros((height, 1), tl.float32)
    for start in range(0, cols, width):
        inside = lane < cols - start
        x = tl.load(x_ptr + at + start, mask=inside, other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=1, keep_dims=True))
        # A row may begin with masked (minus infinite) values; their difference is not a number.
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base), axis=1, keep_dims=True)
        top = new_top
    for start in range(0, cols, width):
        inside = lane < cols - start
        x = tl.load(x_ptr + at + start, mask=inside, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - top) / total
        y = y.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + at + start, y, mask=inside & (row < rows))


def row_softmax(x: torch.Tensor, *, out: torch.Tensor) -> None:
    rows, cols = x.shape
    width = min(MAX_PIECE, triton.next_power_of_2(cols))
    height = max(1, MIN_PIECE // width)
    unit = math.gcd(cols, WIDEST_ACCESS)
    _row_softmax[(triton.cdiv(rows, height),)](
        x,
        out,
        rows,
        cols // unit,
        col_unit=unit,
        height=height,
        width=width,
        num_warps=min(8, height * width // PIECE_PER_WARP),
    )
