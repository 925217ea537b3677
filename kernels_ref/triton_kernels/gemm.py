"""Tiled matrix product of two operands of one format, each contiguous along the reduction.

Operands are fetched by the tensor-copy engine, by as many programs as the GPU holds at a time, each
taking tile after tile. It wants rows that begin at multiples of 16 bytes: others are copied into
such rows first, since products that read each element for itself take several times as long; but
for one row of A.
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


#: Rows and elements of them that one program copies, and types of as many bits.
COPY_ROWS, COPY_DEPTH = 16, 256
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32}

#: Columns of the result, and elements of the sum at a time, of a program that has one row.
VECTOR_COLS, VECTOR_DEPTH = 4, 1024

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
def _copy_rows(
    from_ptr, to_ptr, program, rows, k, to_k, tile_rows: tl.constexpr, tile_k: tl.constexpr
):  # fmt: skip
    across = tl.cdiv(k, tile_k)
    row = (program // across * tile_rows + tl.arange(0, tile_rows)).to(tl.int64)[:, None]
    depth = (program % across * tile_k + tl.arange(0, tile_k))[None, :]
    values = tl.load(from_ptr + row * k + depth, mask=(row < rows) & (depth < k), other=0)
    tl.store(to_ptr + row * to_k + depth, values, mask=(row < rows) & (depth < to_k))


@triton.jit
def _align_rows(
    a_ptr, b_ptr, a_to_ptr, b_to_ptr, m, n, k_units, to_k_units, k_unit: tl.constexpr,
    to_k_unit: tl.constexpr, tile_rows: tl.constexpr, tile_k: tl.constexpr
):  # fmt: skip
    # Multiples of a constant, so that the compiler knows how wide its loads and stores may be.
    k, to_k = k_units * k_unit, to_k_units * to_k_unit
    own = tl.program_id(0)
    of_a = tl.cdiv(m, tile_rows) * tl.cdiv(k, tile_k)
    if own < of_a:
        _copy_rows(a_ptr, a_to_ptr, own, m, k, to_k, tile_rows, tile_k)
    else:
        _copy_rows(b_ptr, b_to_ptr, own - of_a, n, k, to_k, tile_rows, tile_k)


@triton.jit
def _store(out_desc, out_ptr, values, row, col, m, n, by_pointers: tl.constexpr):
    if by_pointers:
        rows = row + tl.arange(0, values.shape[0])
        cols = col + tl.arange(0, values.shape[1])
        store_tile(out_ptr, values, rows, cols, m, n)
    else:
        out_desc.store([row, col], values.to(out_desc.dtype))


@triton.jit
def _by_copy_engine(
    a_desc, b_desc, out_desc, out_ptr, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr,
    tile_k: tl.constexpr, group: tl.constexpr, sum_type: tl.constexpr, halves: tl.constexpr,
    by_pointers: tl.constexpr, widen: tl.constexpr
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
            _store(out_desc, out_ptr, sums, row * tile_m, col * tile_n, m, n, by_pointers)
        else:
            pair = tl.permute(tl.reshape(sums, (tile_m, 2, tile_n // 2)), (0, 2, 1))
            left, right = tl.split(pair)
            at, half = col * tile_n, tile_n // 2
            _store(out_desc, out_ptr, left, row * tile_m, at, m, n, by_pointers)
            _store(out_desc, out_ptr, right, row * tile_m, at + half, m, n, by_pointers)


@triton.jit
def _one_row(
    a_ptr, b_ptr, out_ptr, n, k_units, k_unit: tl.constexpr, tile_n: tl.constexpr,
    tile_k: tl.constexpr, sum_type: tl.constexpr
):  # fmt: skip
    k = k_units * k_unit
    cols, depth = tl.program_id(0) * tile_n + tl.arange(0, tile_n), tl.arange(0, tile_k)
    sums = tl.zeros((tile_n, tile_k), dtype=sum_type)
    for start in range(0, k, tile_k):
        inside = depth < k - start
        at = cols.to(tl.int64)[:, None] * k + start + depth[None, :]
        a = tl.load(a_ptr + start + depth, mask=inside, other=0.0)
        b = tl.load(b_ptr + at, mask=(cols < n)[:, None] & inside[None, :], other=0.0)
        sums += a.to(sum_type)[None, :] * b.to(sum_type)
    total = tl.sum(sums, axis=1)
    tl.store(out_ptr + cols, total.to(out_ptr.dtype.element_ty), mask=cols < n)


def _aligned(*tensors: torch.Tensor) -> bool:
    return all(
        (tensor.shape[1] * tensor.element_size()) % WIDEST_ACCESS_BYTES == 0
        and tensor.data_ptr() % WIDEST_ACCESS_BYTES == 0
        for tensor in tensors
    )


def product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, tile: Tile | None = None) -> None:
    """``out[M, N] = a[M, K] @ b[N, K].T``; sums of int8 are int32, others fp32."""
    tile = tile or choose_tile(a.shape[0], b.shape[0])
    if _aligned(a, b):
        _copy_engine(a, b, out, tile)
    elif a.shape[0] == 1:
        _vector(a, b, out)
    else:
        _copy_engine(*_with_aligned_rows(a, b), out, tile)


def _sum_type(a: torch.Tensor) -> tl.dtype:
    """The interpreter multiplies neither int8 nor fp8; fp32 holds sums of int8 up to 2**24."""
    return tl.int32 if a.dtype == torch.int8 and not interpreted() else tl.float32


def _vector(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """A product of one row reads each element once, which is not worth a copy."""
    n, k = b.shape
    unit = math.gcd(k, WIDEST_ACCESS_BYTES // a.element_size())
    _one_row[(-(-n // VECTOR_COLS),)](
        a,
        b,
        out,
        n,
        k // unit,
        k_unit=unit,
        tile_n=VECTOR_COLS,
        tile_k=VECTOR_DEPTH,
        sum_type=_sum_type(a),
    )


def _with_aligned_rows(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies whose rows are filled up with zeros."""
    (m, k), n, size = a.shape, b.shape[0], a.element_size()
    widest = WIDEST_ACCESS_BYTES // size
    unit = math.gcd(k, widest)
    to_k = -(-k // widest) * widest
    copies = tuple(torch.empty((rows, to_k), dtype=a.dtype, device=a.device) for rows in (m, n))
    bits = BITS[size]
    tiles = sum(-(-rows // COPY_ROWS) for rows in (m, n)) * -(-k // COPY_DEPTH)
    _align_rows[(tiles,)](
        a.view(bits),
        b.view(bits),
        copies[0].view(bits),
        copies[1].view(bits),
        m,
        n,
        k // unit,
        to_k // widest,
        k_unit=unit,
        to_k_unit=widest,
        tile_rows=COPY_ROWS,
        tile_k=COPY_DEPTH,
    )
    return copies[0], copies[1]


def _copy_engine(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, tile: Tile) -> None:
    (m, k), n = a.shape, b.shape[0]
    depth = tile.depth // a.element_size()
    by_pointers = not _aligned(out)
    way_out = [tile.rows, tile.cols // tile.halves]
    _by_copy_engine[(min(FULL_GPU_PROGRAMS, tile.programs(m, n)),)](
        TensorDescriptor.from_tensor(a, [tile.rows, depth]),
        TensorDescriptor.from_tensor(b, [tile.cols, depth]),
        None if by_pointers else TensorDescriptor.from_tensor(out, way_out),
        out,
        m,
        n,
        k,
        tile_m=tile.rows,
        tile_n=tile.cols,
        tile_k=depth,
        group=GROUP_ROWS,
        sum_type=_sum_type(a),
        halves=tile.halves,
        by_pointers=by_pointers,
        widen=interpreted(),
        num_warps=tile.warps,
        num_stages=tile.fitting_stages(out.element_size()),
    )


def gemm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    """``a[M, K]`` row-major, ``b[K, N]`` column-major."""
    product(a, b.t(), out)
