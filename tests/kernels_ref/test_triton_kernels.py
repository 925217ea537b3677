"""Does every Triton kernel compute its reference, on odd sizes too?

On a machine without a GPU they run in Triton's interpreter; ``TRITON_INTERPRET=0`` runs them
on the GPU. Triton itself exists for Linux only.
"""

from __future__ import annotations

import os

import pytest
import torch

from kernels_ref.accuracy import TOLERANCE, relative_error
from kernels_ref.kernel import Kernel, poisoned
from kernels_ref.registry import KERNELS

pytest.importorskip("triton")

from kernels_ref.triton_kernels.gemm import SHARED_BYTES, TILES, Tile, choose_tile
from kernels_ref.triton_kernels.softmax import MAX_PIECE

DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"

SIZES = {
    "gemm": [
        {"M": 1, "N": 64, "K": 128},
        {"M": 1, "N": 67, "K": 1030},
        {"M": 19, "N": 88, "K": 301},
        {"M": 33, "N": 65, "K": 127},
        {"M": 64, "N": 64, "K": 1},
        {"M": 140, "N": 72, "K": 96},
    ],
    "row_softmax": [
        {"rows": 1, "cols": 1},
        {"rows": 3, "cols": 1000},
        {"rows": 21, "cols": 60},
        {"rows": 2, "cols": MAX_PIECE},
        {"rows": 2, "cols": MAX_PIECE + 1},
        {"rows": 1, "cols": 3 * MAX_PIECE - 5},
    ],
    "ew_add": [{"elements": 1}, {"elements": 1024}, {"elements": 5001}],
}
CASES = [
    pytest.param(kernel, params, dtype, id=f"{kernel.name}-{dtype}-{i}")
    for kernel in KERNELS.values()
    for dtype in kernel.dtypes
    for i, params in enumerate(SIZES[kernel.name])
]


@pytest.mark.parametrize("implementation", ["torch", "triton"])
@pytest.mark.parametrize(("kernel", "params", "dtype"), CASES)
def test_result_is_the_reference_in_fp64(
    kernel: Kernel, params: dict[str, int], dtype: str, implementation: str
) -> None:
    generator = torch.Generator(DEVICE).manual_seed(7)
    inputs = kernel.make_inputs(params, dtype, generator)
    out = poisoned(kernel.output_shape(params), dtype, generator)
    kernel.implementations[implementation](*inputs, out=out)
    assert relative_error(kernel, inputs, out) < TOLERANCE[dtype]


@pytest.mark.parametrize("masked", [3, MAX_PIECE + 3])
def test_softmax_of_a_row_that_begins_masked(masked: int) -> None:
    kernel = KERNELS["row_softmax"]
    x = torch.zeros((1, MAX_PIECE + 7), device=DEVICE)
    x[:, :masked] = float("-inf")
    out = torch.full_like(x, float("nan"))
    kernel.triton(x, out=out)
    torch.testing.assert_close(out, x.softmax(dim=-1))


def test_softmax_does_not_overflow() -> None:
    x = torch.tensor([[3e4, 3e4, 0.0]], device=DEVICE)
    out = torch.full_like(x, float("nan"))
    KERNELS["row_softmax"].triton(x, out=out)
    torch.testing.assert_close(out, torch.tensor([[0.5, 0.5, 0.0]], device=DEVICE))


def test_a_small_product_gets_small_tiles_and_a_large_one_the_largest() -> None:
    assert choose_tile(1, 4096) == TILES[-1]
    assert choose_tile(8192, 8192) == TILES[0]


@pytest.mark.parametrize(("m", "n"), [(1, 64), (17, 4096), (512, 512), (1000, 3000), (8192, 64)])
def test_no_tile_does_the_work_of_the_chosen_one_in_fewer_steps(m: int, n: int) -> None:
    chosen = choose_tile(m, n)
    for tile in TILES:
        as_fast_and_no_larger = (
            tile.speed >= chosen.speed and tile.rows * tile.cols <= chosen.rows * chosen.cols
        )
        assert not (as_fast_and_no_larger and tile.waves(m, n) < chosen.waves(m, n))


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("out_bytes", [2, 4])
def test_a_tile_fits_in_shared_memory(tile: Tile, out_bytes: int) -> None:
    stages = tile.fitting_stages(out_bytes)
    operands = stages * tile.depth * (tile.rows + tile.cols)
    assert stages >= 3
    assert operands + tile.rows * tile.cols // tile.halves * out_bytes <= SHARED_BYTES
