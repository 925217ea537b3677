"""How the tiles of an output are walked, which every product shares."""

from __future__ import annotations

import triton
import triton.language as tl

#: Rows of tiles that are walked together, so that their columns of the other operand are in L2.
GROUP_ROWS = 8


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, which has no bf16, fp8 or wide integers."""
    return bool(triton.knobs.runtime.interpret)


@triton.jit
def tile_at(program, tiles_m, tiles_n, group: tl.constexpr):
    """Row and column of a program's tile: ``group`` rows of tiles, column by column."""
    first = program // (group * tiles_n) * group
    here = tl.minimum(tiles_m - first, group)
    within = program % (group * tiles_n)
    return first + within % here, within // here


@triton.jit
def store_tile(out_ptr, values, rows, cols, m, n):
    """Row-major ``out[m, n]``; 64-bit, since an offset may pass 2**31 elements."""
    at = rows.to(tl.int64)[:, None] * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + at, values.to(out_ptr.dtype.element_ty), mask=mask)
