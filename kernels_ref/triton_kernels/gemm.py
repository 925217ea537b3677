"""Tiled matrix product; one program per tile of the output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

#: Streaming multiprocessors of an H100 or H200 SXM (NVIDIA H100 Tensor Core GPU Architecture
#: whitepaper): fewer programs than this leave some idle.
FULL_GPU_PROGRAMS = 132

#: Rows of tiles that are walked together, so that their columns of ``b`` are read from L2.
GROUP_ROWS = 8


#: Elements of 16 bits in the widest access of a thread, 16 bytes.
WIDEST_ACCESS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Extents of one program's tile, and how Triton compiles it."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int

    def programs(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // self.cols)


# Largest first. A warpgroup's matrix instruction takes 64 rows (PTX ISA, wgmma), mma.sync 16.
TILES = (
    Tile(rows=128, cols=256, depth=64, warps=8, stages=4),
    Tile(rows=128, cols=128, depth=64, warps=8, stages=3),
    Tile(rows=64, cols=128, depth=64, warps=4, stages=4),
    Tile(rows=64, cols=64, depth=64, warps=4, stages=4),
    Tile(rows=32, cols=64, depth=128, warps=4, stages=4),
    Tile(rows=16, cols=64, depth=128, warps=4, stages=4),
)


def choose_tile(m: int, n: int) -> Tile:
    """The largest tile that is at least half used by ``m`` rows and occupies the whole GPU.

    Where none does, the one with the most programs.
    """
    fitting = [tile for tile in TILES if tile.rows < 2 * m] or [TILES[-1]]
    full = [tile for tile in fitting if tile.programs(m, n) >= FULL_GPU_PROGRAMS]
    return full[0] if full else max(fitting, key=lambda tile: tile.programs(m, n))


@triton.jit
def _gemm(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n_units,
    k_units,
    n_unit: tl.constexpr,
    k_unit: tl.constexpr,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    tile_k: tl.constexpr,
    group_rows: tl.constexpr,
    widen: tl.constexpr,
):
    # Multiples of a constant, so that the compiler knows how wide its loads and stores may be.
    n, k = n_units * n_unit, k_units * k_unit
    program = tl.program_id(0)
    tiles_n = tl.cdiv(n, tile_n)
    first_row = program // (group_rows * tiles_n) * group_rows
    rows_here = tl.minimum(tl.cdiv(m, tile_m) - first_row, group_rows)
    within = program % (group_rows * tiles_n)
    rows = (first_row + within % rows_here) * tile_m + tl.arange(0, tile_m)
    cols = within // rows_here * tile_n + tl.arange(0, tile_n)
    depth = tl.arange(0, tile_k)
    # 64-bit: an offset may pass 2**31 elements.
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + cols.to(tl.int64)[None, :] * k + depth[:, None]
    sums = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, k, tile_k):
        inside = depth < k - start
        a = tl.load(a_ptrs + start, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptrs + start, mask=(cols < n)[None, :] & inside[:, None], other=0.0)
        if widen:
            a, b = a.to(tl.float32), b.to(tl.float32)
        sums = tl.dot(a, b, sums)
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(
        out_ptrs,
        sums.to(out_ptr.dtype.element_ty),
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def gemm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    (m, k), n = a.shape, b.shape[1]
    tile = choose_tile(m, n)
    n_unit, k_unit = (math.gcd(size, WIDEST_ACCESS) for size in (n, k))
    _gemm[(tile.programs(m, n),)](
        a,
        b,
        out,
        m,
        n // n_unit,
        k // k_unit,
        n_unit=n_unit,
        k_unit=k_unit,
        tile_m=tile.rows,
        tile_n=tile.cols,
        tile_k=tile.depth,
        group_rows=GROUP_ROWS,
        # Triton's interpreter keeps bf16 as integers and would multiply those.
        widen=a.device.type == "cpu",
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
