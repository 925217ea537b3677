"""Tiled matrix product of two operands of one format, each contiguous along the reduction.

Aligned operands are fetched by the tensor-copy engine, by as many programs as the GPU holds at a
time, each taking tile after tile; others by pointers, one program per tile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels_ref.triton_kernels.tiles import GROUP_ROWS, interpreted, store_tile, tile_at

#: Streaming multiprocessors of an H100 or H200 SXM (NVIDIA H100 Tensor Core GPU Architecture
#: whitepaper): fewer programs than this leave some idle.
FULL_GPU_PROGRAMS = 132

#: Bytes of a thread's widest access, and what the tensor-copy engine wants strides to be
#: multiples of (PTX ISA, cp.async.bulk.tensor).
WIDEST_ACCESS_BYTES = 16


#: Shared memory that a program may have on compute capability 9.0 (CUDA C++ Programming Guide,
#: table of technical specifications), less what barriers take.
SHARED_BYTES = 227 * 1024 - 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Extents of one program's tile, and how Triton compiles it. ``depth`` is in bytes.

    ``speed`` is the rate of a multiprocessor relative to the largest tile's.
    """

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int
    speed: float

    def programs(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // self.cols)

    def waves(self, m: int, n: int) -> int:
        return -(-self.programs(m, n) // FULL_GPU_PROGRAMS)

    def effort(self, m: int, n: int) -> float:
        """Time of a product relative to others of the same depth."""
        return self.waves(m, n) * self.rows * self.cols / self.speed

    def fitting_stages(self, out_bytes: int) -> int:
        """As many stages as leave room for the result on its way out."""
        way_out = self.rows * self.cols // self.halves * out_bytes
        return min(self.stages, (SHARED_BYTES - way_out) // (self.depth * (self.rows + self.cols)))

    @property
    def halves(self) -> int:
        """Wide results leave in halves, which leaves shared memory for another stage."""
        return 2 if self.cols == 256 else 1


# A warpgroup's matrix instruction takes 64 rows (PTX ISA, wgmma), mma.sync 16. Speeds of tiles of
# 64 rows and more are from products of 8192 cubed; those of smaller ones, which wait for memory,
# order the sizes that were tried as they were measured (NVIDIA H200, 2026-11-30,
# python -m kernels_ref.measure.tune bf16 fp8 int8).
TILES = (
    Tile(rows=128, cols=256, depth=128, warps=8, stages=4, speed=1.0),
    Tile(rows=128, cols=128, depth=128, warps=4, stages=4, speed=0.89),
    Tile(rows=64, cols=256, depth=128, warps=4, stages=4, speed=0.88),
    Tile(rows=64, cols=128, depth=128, warps=4, stages=4, speed=0.61),
    Tile(rows=64, cols=64, depth=256, warps=4, stages=4, speed=0.57),
    Tile(rows=64, cols=32, depth=512, warps=4, stages=4, speed=0.3),
    Tile(rows=16, cols=64, depth=256, warps=4, stages=4, speed=0.3),
    Tile(rows=16, cols=32, depth=512, warps=4, stages=4, speed=0.3),
)


def choose_tile(m: int, n: int) -> Tile:
    """The tile of least effort; it counts waves of programs over all multiprocessors."""
    return min(TILES, key=lambda tile: tile.effort(m, n))


@triton.jit
def _by_pointers(
    a_ptr, b_ptr, out_ptr, m, n_units, k_units, n_unit: tl.constexpr, k_unit: tl.constexpr,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr, group: tl.constexpr,
    sum_type: tl.constexpr, widen: tl.constexpr
):  # fmt: skip
    # Multiples of a constant, so that the compiler knows how wide its loads and stores may be.
    n, k = n_units * n_unit, k_units * k_unit
    row, col = tile_at(tl.program_id(0), tl.cdiv(m, tile_m), tl.cdiv(n, tile_n), group)
    rows, cols = row * tile_m + tl.arange(0, tile_m), col * tile_n + tl.arange(0, tile_n)
    depth = tl.arange(0, tile_k)
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + cols.to(tl.int64)[None, :] * k + depth[:, None]
    sums = tl.zeros((tile_m, tile_n), dtype=sum_type)
    for start in range(0, k, tile_k):
        inside = depth < k - start
        a = tl.load(a_ptrs + start, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptrs + start, mask=(cols < n)[None, :] & inside[:, None], other=0.0)
        if widen:
            a, b = a.to(tl.float32), b.to(tl.float32)
        sums = tl.dot(a, b, sums, out_dtype=sum_type)
    store_tile(out_ptr, sums, rows, cols, m, n)


@triton.jit
def _by_copy_engine(
    a_desc, b_desc, out_desc, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr,
    tile_k: tl.constexpr, group: tl.constexpr, sum_type: tl.constexpr, halves: tl.constexpr,
    widen: tl.constexpr
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(m, tile_m), tl.cdiv(n, tile_n)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        row, col = tile_at(tile, tiles_m, tiles_n, group)
        sums = tl.zeros((tile_m, tile_n), dtype=sum_type)
        for start in range(0, k, tile_k):
            a = a_desc.load([row * tile_m, start])
            b = b_desc.load([col * tile_n, start])
            if widen:
                a, b = a.to(tl.float32), b.to(tl.float32)
            sums = tl.dot(a, b.T, sums, out_dtype=sum_type)
        if halves == 1:
            out_desc.store([row * tile_m, col * tile_n], sums.to(out_desc.dtype))
        else:
            pair = tl.permute(tl.reshape(sums, (tile_m, 2, tile_n // 2)), (0, 2, 1))
            left, right = tl.split(pair)
            out_desc.store([row * tile_m, col * tile_n], left.to(out_desc.dtype))
            out_desc.store([row * tile_m, col * tile_n + tile_n // 2], right.to(out_desc.dtype))


def _aligned(*tensors: torch.Tensor) -> bool:
    return all(
        (tensor.shape[1] * tensor.element_size()) % WIDEST_ACCESS_BYTES == 0
        and tensor.data_ptr() % WIDEST_ACCESS_BYTES == 0
        for tensor in tensors
    )


def product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, tile: Tile | None = None) -> None:
    """``out[M, N] = a[M, K] @ b[N, K].T``; sums of int8 are int32, others fp32."""
    (m, k), n = a.shape, b.shape[0]
    tile = tile or choose_tile(m, n)
    run = _copy_engine if _aligned(a, b, out) else _pointers
    run(a, b, out, (m, n, k), tile)


def _sum_type(a: torch.Tensor) -> tl.dtype:
    """The interpreter multiplies neither int8 nor fp8; fp32 holds sums of int8 up to 2**24."""
    return tl.int32 if a.dtype == torch.int8 and not interpreted() else tl.float32


def _copy_engine(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, size: tuple[int, int, int], tile: Tile
) -> None:
    m, n, k = size
    depth = tile.depth // a.element_size()
    _by_copy_engine[(min(FULL_GPU_PROGRAMS, tile.programs(m, n)),)](
        TensorDescriptor.from_tensor(a, [tile.rows, depth]),
        TensorDescriptor.from_tensor(b, [tile.cols, depth]),
        TensorDescriptor.from_tensor(out, [tile.rows, tile.cols // tile.halves]),
        m,
        n,
        k,
        tile_m=tile.rows,
        tile_n=tile.cols,
        tile_k=depth,
        group=GROUP_ROWS,
        sum_type=_sum_type(a),
        halves=tile.halves,
        widen=interpreted(),
        num_warps=tile.warps,
        num_stages=tile.fitting_stages(out.element_size()),
    )


def _pointers(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, size: tuple[int, int, int], tile: Tile
) -> None:
    m, n, k = size
    widest = WIDEST_ACCESS_BYTES // a.element_size()
    n_unit, k_unit = (math.gcd(extent, widest) for extent in (n, k))
    _by_pointers[(tile.programs(m, n),)](
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
        tile_k=tile.depth // a.element_size(),
        group=GROUP_ROWS,
        sum_type=_sum_type(a),
        widen=interpreted(),
        num_warps=tile.warps,
        num_stages=tile.stages,
    )


def gemm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    """``a[M, K]`` row-major, ``b[K, N]`` column-major."""
    product(a, b.t(), out)
