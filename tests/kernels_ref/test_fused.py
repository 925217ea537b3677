"""Do fused Triton kernels compute their definitions, and do the counts equal the tensors?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from kernels_ref.fused.record import Fused, relative_error
from kernels_ref.fused.registry import FUSED
from kernels_ref.fused.sparse import dense_of_two_of_four
from kernels_ref.fused.weights import GROUP, pack, unpack

pytest.importorskip("triton")

from kernels_ref.measure import tune
from kernels_ref.measure.fused import main

DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"
PACKED = [{"M": 5, "N": 70, "K": 2 * GROUP}, {"M": 40, "N": 64, "K": GROUP}]
SIZES: dict[str, list[dict[str, int]]] = {
    "gemm_bf16": [{"M": 33, "N": 40, "K": 200}],
    "gemm_int8": [{"M": 33, "N": 40, "K": 200}],
    "gemm_fp8": [{"M": 33, "N": 48, "K": 208}],
    "gemm_w4a16": PACKED,
    "gemm_lut4": PACKED,
    "gemm_ternary": PACKED,
    "gemm_w4a8": PACKED,
    "gemm_mixed_int8": [{"M": 5, "N": 70, "K": 200, "outliers": 3}],
    "gemm_bit_planes": [
        {"M": 3, "N": 33, "K": 96, "a_bits": 2, "b_bits": 3},
        {"M": 9, "N": 20, "K": 64, "a_bits": 1, "b_bits": 1},
    ],
    "flash_attention": [
        {"B": 1, "H": 2, "Hkv": 1, "Sq": 37, "Skv": 37, "D": 32, "causal": 1},
        {"B": 2, "H": 2, "Hkv": 2, "Sq": 17, "Skv": 50, "D": 16, "causal": 0},
    ],
    "decode_attention": [
        {"B": 1, "H": 4, "Hkv": 2, "Skv": 150, "D": 32},
        {"B": 2, "H": 1, "Hkv": 1, "Skv": 63, "D": 16},
    ],
    "flash_attention_backward": [
        {"B": 1, "H": 2, "Hkv": 1, "Sq": 37, "Skv": 37, "D": 16, "causal": 1},
        {"B": 1, "H": 1, "Hkv": 1, "Sq": 17, "Skv": 40, "D": 32, "causal": 0},
    ],
    "window_attention": [
        {"B": 1, "H": 2, "Hkv": 1, "Sq": 75, "Skv": 75, "D": 16, "window": 20},
        {"B": 1, "H": 1, "Hkv": 1, "Sq": 40, "Skv": 40, "D": 16, "window": 100},
    ],
    "gemm_2of4": [{"M": 5, "N": 70, "K": 1024}, {"M": 1024, "N": 16, "K": 128}],
    "block_sparse_product": [
        {"M": 64, "N": 40, "K": 96, "block": 16, "percent": 50},
        {"M": 64, "N": 40, "K": 96, "block": 32, "percent": 20},
    ],
    "monarch": [{"T": 19, "side": 16}],
    "blast": [{"T": 19, "n_in": 96, "n_out": 66, "blocks": 3, "rank": 24}],
    "neighborhood_attention": [
        {"B": 1, "H": 2, "rows": 9, "cols": 7, "D": 16, "window_rows": 3, "window_cols": 5},
        {"B": 2, "H": 1, "rows": 1, "cols": 37, "D": 16, "window_rows": 1, "window_cols": 8},
    ],
    "simplicial_attention": [
        {"B": 1, "H": 2, "N": 21, "D": 16, "window": 18, "window2": 3},
    ],
    "gated_linear_attention": [
        {"B": 1, "H": 2, "N": 150, "Dk": 16, "Dv": 32},
    ],
    "triangular_inverse": [{"B": 3, "D": 8}],
    "fft_convolution": [{"B": 3, "H": 2, "side": 16}],
    "all_reduce_rms_norm": [{"R": 3, "C": 100, "ranks": 3}, {"R": 2, "C": 64, "ranks": 1}],
    "row_softmax": [{"R": 3, "C": 100}],
    "layer_norm": [{"R": 3, "C": 100}],
    "rms_norm": [{"R": 3, "C": 1000}],
}
RESULTS_OF_FOUR_BYTES = {"gemm_int8", "gemm_bit_planes", "triangular_inverse"}
CASES = [
    pytest.param(kernel, sizes, id=f"{name}-{i}")
    for name, kernel in FUSED.items()
    for i, sizes in enumerate(SIZES[name])
]


@pytest.mark.parametrize(("kernel", "sizes"), CASES)
def test_result_is_the_definition(kernel: Fused, sizes: dict[str, int]) -> None:
    inputs = kernel.inputs(sizes, torch.Generator(DEVICE).manual_seed(3))
    assert relative_error(kernel, inputs) <= kernel.tolerance


def tensors_in(inputs: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    for each in inputs:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, tuple):
            yield from tensors_in(each)


@pytest.mark.parametrize(("kernel", "sizes"), CASES)
def test_bytes_are_those_of_the_tensors(kernel: Fused, sizes: dict[str, int]) -> None:
    inputs = kernel.inputs(sizes, torch.Generator(DEVICE).manual_seed(3))
    read = sum(x.nbytes for x in tensors_in(inputs))
    result_bytes = 4 if kernel.name in RESULTS_OF_FOUR_BYTES else 2
    results = sum(x.numel() for x in tensors_in((kernel.reference(*inputs),)))
    assert kernel.counts(sizes).bytes == read + results * result_bytes


@pytest.mark.parametrize("bits", [2, 4])
def test_packing_is_reversible(bits: int) -> None:
    codes = torch.randint(0, 1 << bits, (3, 2 * GROUP), generator=torch.Generator().manual_seed(1))
    packed = pack(codes, bits)
    assert packed.nbytes == codes.numel() * bits // 8
    assert torch.equal(unpack(packed, bits), codes)


def test_attention_sees_the_diagonal_and_nothing_after_it() -> None:
    sizes = {"B": 1, "H": 1, "Hkv": 1, "Sq": 20, "Skv": 20, "D": 16, "causal": 1}
    q, k, v, causal = FUSED["flash_attention"].inputs(sizes, torch.Generator(DEVICE).manual_seed(5))
    first = FUSED["flash_attention"].triton(q, k, v, causal)
    v[:, :, 11:] = 100.0
    second = FUSED["flash_attention"].triton(q, k, v, causal)
    assert torch.equal(first[:, :, :11], second[:, :, :11])
    assert not torch.equal(first[:, :, 11], second[:, :, 11])


def test_the_list_names_every_kernel_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[::2]] == list(FUSED)
    for line, kernel in zip(lines[1::2], FUSED.values(), strict=True):
        assert kernel.source in line


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize("program", [main, tune.main])
def test_without_a_gpu_measuring_says_so(
    program: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert program(["--kernel", "rms_norm"] if program is main else ["decode"]) == 2
    assert "needs an NVIDIA GPU" in capsys.readouterr().err


def test_an_unknown_kernel_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--kernel", "gemm_int7"])
    assert "'gemm_int8'" in capsys.readouterr().err


def test_a_window_that_holds_everything_is_causal_attention() -> None:
    sizes = {"B": 1, "H": 2, "Hkv": 1, "Sq": 40, "Skv": 40, "D": 16, "window": 40}
    q, k, v, window = FUSED["window_attention"].inputs(sizes, torch.Generator(DEVICE))
    causal = FUSED["flash_attention"].reference(q, k, v, True)
    torch.testing.assert_close(FUSED["window_attention"].reference(q, k, v, window), causal)
    counts = [
        FUSED[n].counts({**sizes, "causal": 1}) for n in ("window_attention", "flash_attention")
    ]
    assert counts[0] == counts[1]


def test_two_of_four_keeps_two_adjacent_weights_of_four() -> None:
    sizes = {"M": 1, "N": 5, "K": 256}
    _, values, codes = FUSED["gemm_2of4"].inputs(sizes, torch.Generator(DEVICE).manual_seed(3))
    kept = dense_of_two_of_four(values, codes).view(5, -1, 4) != 0
    assert (kept.sum(dim=2) == 2).all()
    assert FUSED["gemm_2of4"].counts(sizes).flops == 2 * int(kept.sum())


def test_bit_planes_are_odd_integers() -> None:
    sizes = {"M": 1, "N": 3, "K": 32, "a_bits": 1, "b_bits": 1}
    a, b = FUSED["gemm_bit_planes"].inputs(sizes, torch.Generator(DEVICE).manual_seed(3))
    same = FUSED["gemm_bit_planes"].reference(a, a)
    assert same.item() == 32
    assert (FUSED["gemm_bit_planes"].reference(a, b) % 2 == 0).all()
