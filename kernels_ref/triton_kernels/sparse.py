"""Products with sparse weights: two of four kept, and whole blocks kept."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels_ref.triton_kernels.tiles import GROUP_ROWS, interpreted, store_tile, tile_at

#: Groups of four weights whose first are multiplied together: the depth of a matrix instruction.
GROUPS = 16


@triton.jit
def _columns_apart(x_ptr, out_ptr, elements, piece: tl.constexpr, groups: tl.constexpr):
    """Of every ``4 * groups`` columns, those that are first of four, then second, and so on."""
    at = tl.program_id(0).to(tl.int64) * piece + tl.arange(0, piece)
    within = at % (4 * groups)
    there = at - within + within % 4 * groups + within // 4
    tl.store(out_ptr + there, tl.load(x_ptr + at, mask=at < elements), mask=at < elements)


@triton.jit
def _column(pairs, code, place: tl.constexpr):
    """The weight in one of four places, of each pair of kept ones that ``code`` places."""
    low = (pairs & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)
    high = (pairs >> 16).to(tl.int16).to(tl.float16, bitcast=True)
    zero = tl.zeros_like(low)
    return tl.where((code & 3) == place, low, tl.where((code >> 2) == place, high, zero))


@triton.jit
def _two_of_four(
    x_ptr, pairs_ptr, codes_ptr, out_ptr, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr,
    groups: tl.constexpr, group: tl.constexpr
):  # fmt: skip
    row, col = tile_at(tl.program_id(0), tl.cdiv(n, tile_n), tl.cdiv(m, tile_m), group)
    rows, cols = row * tile_n + tl.arange(0, tile_n), col * tile_m + tl.arange(0, tile_m)
    # A byte has the codes of two groups of four that are ``groups`` apart.
    along = tl.arange(0, groups)
    codes_at = codes_ptr + rows.to(tl.int64)[:, None] * (k // 8) + along[None, :]
    pairs_at = pairs_ptr + rows.to(tl.int64)[:, None] * (k // 4) + along[None, :]
    x_at = x_ptr + cols.to(tl.int64)[None, :] * k + along[:, None]
    sums = tl.zeros((tile_n, tile_m), dtype=tl.float32)
    for step in range(k // (8 * groups)):
        inside = (rows < n)[:, None]
        codes = tl.load(codes_at + step * groups, mask=inside, other=0)
        for number in tl.static_range(2):
            half = 2 * step + number
            pairs = tl.load(pairs_at + half * groups, mask=inside, other=0)
            code = (codes >> (4 * number)) & 15
            for place in tl.static_range(4):
                x_here = x_at + (4 * half + place) * groups
                x = tl.load(x_here, mask=(cols < m)[None, :], other=0.0)
                sums = tl.dot(_column(pairs, code, place), x, sums)
    store_tile(out_ptr, tl.trans(sums), cols, rows, m, n)


def two_of_four_gemm(
    x: torch.Tensor,
    values: torch.Tensor,
    codes: torch.Tensor,
    tile: tuple[int, int, int, int] | None = None,
) -> torch.Tensor:
    """``x[M, K] @ W.T``; ``values[N, K / 2]`` are the kept weights, ``codes[N, K / 8]`` where."""
    (m, k), n = x.shape, values.shape[0]
    tile_m, tile_n, warps, stages = tile or (
        (16, 64, 4, 4) if m <= 16 else (64, 64, 4, 4) if m <= 64 else (128, 128, 8, 3)
    )
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    apart = torch.empty_like(x)
    _columns_apart[(triton.cdiv(m * k, 2048),)](
        x, apart, m * k, piece=2048, groups=GROUPS, num_warps=4
    )
    _two_of_four[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        apart, values.view(torch.int32), codes, out, m, n, k, tile_m=tile_m, tile_n=tile_n,
        groups=GROUPS, group=GROUP_ROWS, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


@triton.jit
def _blocks_kept(
    values_desc, first_ptr, column_ptr, x_desc, out_desc, block_m: tl.constexpr,
    block_k: tl.constexpr, tile_n: tl.constexpr
):  # fmt: skip
    row, col = tl.program_id(1), tl.program_id(0) * tile_n
    sums = tl.zeros((block_m, tile_n), dtype=tl.float32)
    for kept in range(tl.load(first_ptr + row), tl.load(first_ptr + row + 1)):
        weights = values_desc.load([kept * block_m, 0])
        x = x_desc.load([tl.load(column_ptr + kept) * block_k, col])
        sums = tl.dot(weights, x, sums)
    out_desc.store([row * block_m, col], sums.to(out_desc.dtype))


def block_sparse_product(
    values: torch.Tensor,
    first: torch.Tensor,
    columns: torch.Tensor,
    x: torch.Tensor,
    tile: tuple[int, int, int] | None = None,
) -> torch.Tensor:
    """``A @ x[K, N]``, A in block rows: row ``i`` has the blocks ``first[i]`` to ``first[i+1]``."""
    kept, block_m, block_k = values.shape
    rows, n = first.numel() - 1, x.shape[1]
    tile_n, warps, stages = tile or (
        (32, 4, 1) if interpreted() else (256 if block_m <= 32 else 128, 4, 5)
    )
    out = torch.empty((rows * block_m, n), dtype=x.dtype, device=x.device)
    _blocks_kept[(triton.cdiv(n, tile_n), rows)](
        TensorDescriptor.from_tensor(values.view(kept * block_m, block_k), [block_m, block_k]),
        first,
        columns,
        TensorDescriptor.from_tensor(x, [block_k, tile_n]),
        TensorDescriptor.from_tensor(out, [block_m, tile_n]),
        block_m=block_m,
        block_k=block_k,
        tile_n=tile_n,
        num_warps=warps,
        num_stages=stages,
    )
    return out
