"""Products with sparse and with structured weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, integers, normal, ours

if TYPE_CHECKING:
    import torch

#: The two kept of four in order: every pair of places.
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
#: Weights along the reduction in whose codes a byte's two groups are half of them apart.
STEP = 128


def _two_of_four_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    x, values = normal((p["M"], p["K"]), generator), normal((p["N"], p["K"] // 2), generator)
    pairs = torch.tensor(PAIRS, device=generator.device)
    kept = pairs[integers(0, len(PAIRS), (p["N"], p["K"] // 4), generator)]
    codes = (kept[..., 0] | kept[..., 1] << 2).view(p["N"], p["K"] // STEP, 2, STEP // 8)
    packed = (codes[:, :, 0] | codes[:, :, 1] << 4).to(torch.uint8)
    return x, values, packed.reshape(p["N"], p["K"] // 8).contiguous()


def places(codes: torch.Tensor) -> torch.Tensor:
    """Which column of ``K`` every kept weight is of."""
    import torch

    n = codes.shape[0]
    bytes_ = codes.view(n, -1, STEP // 8)
    groups = torch.stack((bytes_ & 15, bytes_ >> 4), dim=2).reshape(n, -1).long()
    first = 4 * torch.arange(groups.shape[1], device=codes.device)
    return torch.stack((first + (groups & 3), first + (groups >> 2)), dim=2).reshape(n, -1)


def dense_of_two_of_four(values: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    import torch

    n, kept = values.shape
    dense = torch.zeros((n, 2 * kept), dtype=values.dtype, device=values.device)
    return dense.scatter_(1, places(codes), values)


def _two_of_four_reference(x: Any, values: Any, codes: Any) -> torch.Tensor:
    import torch

    return torch.matmul(x.double(), dense_of_two_of_four(values, codes).double().t())


def _two_of_four_counts(p: Sizes) -> Counts:
    """Only kept weights are multiplied; a kept one has two bits that place it."""
    m, n, k = p["M"], p["N"], p["K"]
    moved = n * k + n * k // 8 + 2 * (m * k + m * n)
    return Counts(flops=m * n * k, special=0, bytes=moved)


def _two_of_four_baseline(x: Any, values: Any, codes: Any) -> Callable[[], Any]:
    """torch's semi-structured product; it wants at least eight rows, and multiples of eight."""
    import torch

    sparse = torch.sparse.to_sparse_semi_structured(dense_of_two_of_four(values, codes))
    return partial(torch.nn.functional.linear, x, sparse)


def _blocks_kept(p: Sizes) -> int:
    return p["M"] * p["K"] * p["percent"] // (p["block"] ** 2 * 100)


def _block_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    """Of all blocks, ``percent`` are kept at random."""
    import torch

    side, device = p["block"], generator.device
    rows, cols = p["M"] // side, p["K"] // side
    chosen = torch.randperm(rows * cols, generator=generator, device=device)[: _blocks_kept(p)]
    chosen = chosen.sort().values
    first = torch.zeros(rows + 1, dtype=torch.int32, device=device)
    first[1:] = torch.bincount(chosen // cols, minlength=rows).cumsum(dim=0)
    values = normal((chosen.numel(), side, side), generator)
    columns = (chosen % cols).to(torch.int32)
    return values, first, columns, normal((p["K"], p["N"]), generator)


def _block_reference(values: Any, first: Any, columns: Any, x: Any) -> torch.Tensor:
    import torch

    rows, side = first.numel() - 1, values.shape[1]
    dense = torch.zeros(
        (rows, x.shape[0] // side, side, side), dtype=torch.float64, device=x.device
    )
    row = torch.arange(rows, device=x.device).repeat_interleave(first.diff())
    dense[row, columns.long()] = values.double()
    return torch.matmul(dense.transpose(1, 2).reshape(rows * side, -1), x.double())


def _block_counts(p: Sizes) -> Counts:
    side, blocks = p["block"], _blocks_kept(p)
    rows = p["M"] // side
    moved = blocks * (2 * side * side + 4) + 4 * (rows + 1) + 2 * p["N"] * (p["K"] + p["M"])
    return Counts(flops=2 * blocks * side * side * p["N"], special=0, bytes=moved)


def _block_baseline(values: Any, first: Any, columns: Any, x: Any) -> Callable[[], Any]:
    import torch

    size = ((first.numel() - 1) * values.shape[1], x.shape[0])
    sparse = torch.sparse_bsr_tensor(first, columns, values, size=size, check_invariants=False)
    return partial(torch.matmul, sparse, x)


def _monarch_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    side = p["side"]
    blocks = (normal((side,) * 3, generator, side**-0.5) for _ in range(2))
    return (normal((p["T"], side * side), generator), *blocks)


def _monarch(x: Any, left: Any, right: Any) -> torch.Tensor:
    import torch

    side = left.shape[0]
    between = torch.einsum("tkc,kic->tki", x.view(-1, side, side), right)
    return torch.einsum("tki,ijk->tji", between, left).reshape(x.shape)


def _monarch_reference(x: Any, left: Any, right: Any) -> torch.Tensor:
    """The result between the two products is rounded to fp16, as a bmm's would be."""
    return _monarch(x.double(), left.double(), right.double())


def _monarch_counts(p: Sizes) -> Counts:
    """``2 b^3`` weights; every token is multiplied by all of them."""
    t, side = p["T"], p["side"]
    moved = 2 * (2 * t * side**2 + 2 * side**3)
    return Counts(flops=4 * t * side**3, special=0, bytes=moved)


def _monarch_dense(x: Any, left: Any, right: Any) -> Callable[[], Any]:
    import torch

    weights = torch.randn((x.shape[1], x.shape[1]), device=x.device).to(x.dtype)
    return partial(torch.matmul, x, weights)


def _blast_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    b, r = p["blocks"], p["rank"]
    q_in, q_out = p["n_in"] // b, p["n_out"] // b
    return (
        normal((p["T"], p["n_in"]), generator),
        normal((b, r, q_in), generator, q_in**-0.5),
        normal((b, b, r), generator),
        normal((b, q_out, r), generator, r**-0.5),
    )


def _blast_reference(x: Any, right: Any, scale: Any, left: Any) -> torch.Tensor:
    import torch

    x, right, scale, left = (tensor.double() for tensor in (x, right, scale, left))
    z = torch.einsum("tjc,jrc->tjr", x.view(x.shape[0], right.shape[0], -1), right)
    mixed = torch.einsum("ijr,tjr->tir", scale, z)
    return torch.einsum("tir,iqr->tiq", mixed, left).flatten(1)


def _blast_counts(p: Sizes) -> Counts:
    t, b, r = p["T"], p["blocks"], p["rank"]
    both = p["n_in"] + p["n_out"]
    flops = 2 * t * r * (both + b * b)
    return Counts(flops=flops, special=0, bytes=2 * (t * both + r * (both + b * b)))


def _blast_dense(x: Any, right: Any, scale: Any, left: Any) -> Callable[[], Any]:
    import torch

    shape = (x.shape[1], left.shape[0] * left.shape[1])
    return partial(torch.matmul, x, torch.randn(shape, device=x.device).to(x.dtype))


# A result that is rounded to fp16 between two products doubles the error of one rounding, 2**-11.
SPARSE = (
    Fused(
        name="gemm_2of4",
        what="two of four adjacent weights kept; expanded in registers, multiplied densely",
        source="Accelerating sparse deep neural networks, arXiv:2104.08378",
        inputs=_two_of_four_inputs,
        reference=_two_of_four_reference,
        triton=ours("sparse", "two_of_four_gemm"),
        counts=_two_of_four_counts,
        tolerance=2.0**-10,
        baseline=_two_of_four_baseline,
        baseline_name="torch.sparse semi-structured linear",
    ),
    Fused(
        name="block_sparse_product",
        what="A @ B, A in block rows (BSR) with square blocks",
        source="SMaT, arXiv:2408.11551",
        inputs=_block_inputs,
        reference=_block_reference,
        triton=ours("sparse", "block_sparse_product"),
        counts=_block_counts,
        tolerance=2.0**-10,
        baseline=_block_baseline,
        baseline_name="torch.matmul of a sparse BSR tensor",
    ),
    Fused(
        name="monarch",
        what="block-diagonal, transposed blocks, block-diagonal; sqrt(n) blocks of sqrt(n)",
        source="Monarch, arXiv:2204.00595",
        inputs=_monarch_inputs,
        reference=_monarch_reference,
        triton=ours("structured", "monarch"),
        counts=_monarch_counts,
        tolerance=2.0**-9,
        baseline=_monarch_dense,
        baseline_name="torch.matmul of the dense matrix",
        own=False,
    ),
    Fused(
        name="blast",
        what="block (i, j) is U_i diag(s_ij) V_j^T",
        source="BLAST, arXiv:2410.21262",
        inputs=_blast_inputs,
        reference=_blast_reference,
        triton=ours("structured", "blast"),
        counts=_blast_counts,
        tolerance=2.0**-9,
        baseline=_blast_dense,
        baseline_name="torch.matmul of the dense matrix",
        own=False,
    ),
)
