"""Products with sparse weights: two of four kept, and whole blocks kept."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels_ref.triton_kernels.gemm import product
from kernels_ref.triton_kernels.quantized import splits_of, sum_parts
from kernels_ref.triton_kernels.tiles import GROUP_ROWS, interpreted, store_tile, tile_at

#: Groups of four weights in half a step along the reduction.
GROUPS = 16


@triton.jit
def _half(word, high: tl.constexpr):
    return ((word >> 16 if high else word) & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def _placed(pairs, code, native: tl.constexpr):
    """Two columns in a word, and two in another: zeros but for what ``code`` places there."""
    first, second = code & 3, code >> 2
    if native:
        # Which two bytes each column takes: those of a zero, of the first weight, of the second.
        chosen = 0x44444444 ^ (0x54 << (8 * first)) ^ (0x76 << (8 * second))
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 zero, rest;
            mov.b32 zero, 0;
            shr.b32 rest, $3, 16;
            prmt.b32 $0, $2, zero, $3;
            prmt.b32 $1, $2, zero, rest;
            }""",
            "=&r,=r,r,r",
            [pairs, chosen],
            dtype=(tl.int32, tl.int32),
            is_pure=True,
            pack=1,
        )
    low, high = pairs & 0xFFFF, pairs & -65536
    left = tl.where(first == 0, low, 0) | tl.where(first == 1, low << 16, 0)
    left |= tl.where(second == 1, high, 0)
    right = tl.where(first == 2, low, 0) | tl.where(second == 3, high, 0)
    return left, right | tl.where(second == 2, (high >> 16) & 0xFFFF, 0)


@triton.jit
def _dense(pairs, code, native: tl.constexpr):
    """Four columns for each pair of kept weights, which ``code`` places with two bits each."""
    left, right = _placed(pairs, code.to(tl.int32), native)
    even = tl.interleave(_half(left, False), _half(right, False))
    odd = tl.interleave(_half(left, True), _half(right, True))
    return tl.interleave(even, odd)


@triton.jit
def _two_of_four(
    x_ptr, pairs_ptr, codes_ptr, out_ptr, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr,
    groups: tl.constexpr, splits: tl.constexpr, group: tl.constexpr, native: tl.constexpr
):  # fmt: skip
    split = tl.program_id(1)
    row, col = tile_at(tl.program_id(0), tl.cdiv(n, tile_n), tl.cdiv(m, tile_m), group)
    rows, cols = row * tile_n + tl.arange(0, tile_n), col * tile_m + tl.arange(0, tile_m)
    # A byte has the codes of two groups of four that are ``groups`` apart.
    along, deep = tl.arange(0, groups), tl.arange(0, 8 * groups)
    codes_at = codes_ptr + rows.to(tl.int64)[:, None] * (k // 8) + along[None, :]
    pairs_at = pairs_ptr + rows.to(tl.int64)[:, None] * (k // 4) + along[None, :]
    x_at = x_ptr + cols.to(tl.int64)[:, None] * k + deep[None, :]
    sums = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    steps = k // (8 * groups)
    here = (rows < n)[:, None] & (split < steps)
    codes = tl.load(codes_at + split * groups, mask=here, other=0)
    low = tl.load(pairs_at + 2 * split * groups, mask=here, other=0)
    high = tl.load(pairs_at + (2 * split + 1) * groups, mask=here, other=0)
    for step in tl.range(split, steps, splits):
        x = tl.load(x_at + step * 8 * groups, mask=(cols < m)[:, None], other=0.0)
        halves = tl.join(_dense(low, codes & 15, native), _dense(high, codes >> 4, native))
        # The weights of the next step are on their way while this one's are multiplied.
        later = step + splits
        here = (rows < n)[:, None] & (later < steps)
        codes = tl.load(codes_at + later * groups, mask=here, other=0)
        low = tl.load(pairs_at + 2 * later * groups, mask=here, other=0)
        high = tl.load(pairs_at + (2 * later + 1) * groups, mask=here, other=0)
        # Through shared memory: from registers the matrix instructions would run one at a time.
        w = tl.reshape(tl.permute(halves, (0, 2, 1)), (tile_n, 8 * groups))
        sums = tl.dot(x, tl.trans(w), sums)
    store_tile(out_ptr + split.to(tl.int64) * m * n, sums, cols, rows, m, n)


@triton.jit
def _expand(
    pairs_ptr, codes_ptr, out_ptr, n, k, rows: tl.constexpr, groups: tl.constexpr,
    native: tl.constexpr
):  # fmt: skip
    """Half a step of ``rows`` rows of weights, zeros and all."""
    half = tl.program_id(0)
    row = (tl.program_id(1) * rows + tl.arange(0, rows)).to(tl.int64)[:, None]
    along, deep = tl.arange(0, groups)[None, :], tl.arange(0, 4 * groups)[None, :]
    pairs = tl.load(pairs_ptr + row * (k // 4) + half * groups + along, mask=row < n, other=0)
    codes_at = codes_ptr + row * (k // 8) + half // 2 * groups + along
    code = (tl.load(codes_at, mask=row < n, other=0) >> (half % 2 * 4)) & 15
    out_at = out_ptr + row * k + half * 4 * groups + deep
    tl.store(out_at, _dense(pairs, code, native), mask=row < n)


#: Of a thread; two programs of four warps and more then fit on a multiprocessor.
MOST_REGISTERS = 168

#: From so many rows of activations on, weights are expanded once and not for every tile.
EXPANDED_FROM = 256


def two_of_four_tile(m: int) -> tuple[int, int, int, int]:
    """Rows of activations, rows of weights, warps and stages.

    The fastest tried on an H200 (2026-11-30, ``kernels_ref.measure.tune sparse``).
    """
    return min(max(16, triton.next_power_of_2(m)), 128), 64, 4, 4 if m <= 16 else 3


def two_of_four_gemm(
    x: torch.Tensor,
    values: torch.Tensor,
    codes: torch.Tensor,
    tile: tuple[int, int, int, int] | None = None,
) -> torch.Tensor:
    """``x[M, K] @ W.T``; ``values[N, K / 2]`` are the kept weights, ``codes[N, K / 8]`` where."""
    (m, k), n = x.shape, values.shape[0]
    pairs, native = values.view(torch.int32), not interpreted()
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m >= EXPANDED_FROM and tile is None:
        dense = torch.empty((n, k), dtype=x.dtype, device=x.device)
        _expand[(k // (4 * GROUPS), triton.cdiv(n, 64))](
            pairs, codes, dense, n, k, rows=64, groups=GROUPS, native=native, num_warps=4
        )
        product(x, dense, out)
        return out
    tile_m, tile_n, warps, stages = tile or two_of_four_tile(m)
    programs = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    splits = splits_of(programs, k // (8 * GROUPS), 2)
    parts = torch.empty((splits, m, n), device=x.device) if splits > 1 else out
    _two_of_four[(programs, splits)](
        x, pairs, codes, parts, m, n, k, tile_m=tile_m, tile_n=tile_n, groups=GROUPS,
        splits=splits, group=GROUP_ROWS, native=native, num_warps=warps, num_stages=stages,
        maxnreg=MOST_REGISTERS,
    )  # fmt: skip
    if splits > 1:
        sum_parts(parts, out)
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
