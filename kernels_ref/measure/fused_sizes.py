"""On which sizes the fused kernels are checked and timed."""

from __future__ import annotations

from collections.abc import Sequence

PRODUCTS = (
    {"M": 8192, "N": 8192, "K": 8192},
    {"M": 4096, "N": 4096, "K": 4096},
    {"M": 512, "N": 4096, "K": 4096},
    {"M": 64, "N": 14336, "K": 4096},
)
WEIGHTS = (
    {"M": 1, "N": 14336, "K": 4096},
    {"M": 16, "N": 4096, "K": 14336},
    {"M": 128, "N": 14336, "K": 4096},
    {"M": 4096, "N": 4096, "K": 4096},
)
ROWS = ({"R": 128, "C": 4096}, {"R": 4096, "C": 4096}, {"R": 16384, "C": 8192})
SIZES: dict[str, Sequence[dict[str, int]]] = {
    "gemm_bf16": (*PRODUCTS, {"M": 1, "N": 4096, "K": 4096}, {"M": 128, "N": 4096, "K": 14336}),
    "gemm_int8": PRODUCTS,
    "gemm_fp8": PRODUCTS,
    "gemm_w4a16": WEIGHTS,
    "gemm_lut4": WEIGHTS,
    "gemm_ternary": WEIGHTS,
    "gemm_w4a8": WEIGHTS,
    "gemm_mixed_int8": tuple({**size, "outliers": 16} for size in WEIGHTS[1:]),
    "gemm_bit_planes": (
        {"M": 1, "N": 14336, "K": 4096, "a_bits": 4, "b_bits": 2},
        {"M": 128, "N": 4096, "K": 4096, "a_bits": 2, "b_bits": 2},
        {"M": 2048, "N": 2048, "K": 2048, "a_bits": 1, "b_bits": 1},
    ),
    "gemm_2of4": (
        {"M": 16, "N": 14336, "K": 4096},
        {"M": 128, "N": 14336, "K": 4096},
        {"M": 4096, "N": 4096, "K": 4096},
        {"M": 1024, "N": 8192, "K": 4096},
        {"M": 512, "N": 4096, "K": 11008},
    ),
    "block_sparse_product": (
        {"M": 4096, "N": 4096, "K": 4096, "block": 64, "percent": 10},
        {"M": 8192, "N": 1024, "K": 8192, "block": 64, "percent": 20},
        {"M": 4096, "N": 4096, "K": 4096, "block": 32, "percent": 10},
    ),
    "monarch": ({"T": 8192, "side": 64}, {"T": 16384, "side": 32}),
    "blast": (
        {"T": 8192, "n_in": 4096, "n_out": 4096, "blocks": 4, "rank": 1024},
        {"T": 4096, "n_in": 4096, "n_out": 14336, "blocks": 8, "rank": 1024},
    ),
    "flash_attention": (
        {"B": 4, "H": 32, "Hkv": 8, "Sq": 2048, "Skv": 2048, "D": 128, "causal": 1},
        {"B": 1, "H": 16, "Hkv": 16, "Sq": 8192, "Skv": 8192, "D": 64, "causal": 1},
        {"B": 2, "H": 16, "Hkv": 16, "Sq": 4096, "Skv": 4096, "D": 128, "causal": 0},
        {"B": 8, "H": 32, "Hkv": 8, "Sq": 500, "Skv": 500, "D": 64, "causal": 1},
    ),
    "flash_attention_backward": (
        {"B": 2, "H": 16, "Hkv": 16, "Sq": 4096, "Skv": 4096, "D": 128, "causal": 1},
        {"B": 2, "H": 16, "Hkv": 16, "Sq": 4096, "Skv": 4096, "D": 64, "causal": 0},
        {"B": 4, "H": 32, "Hkv": 32, "Sq": 1000, "Skv": 1000, "D": 128, "causal": 1},
    ),
    "window_attention": (
        {"B": 1, "H": 32, "Hkv": 8, "Sq": 8192, "Skv": 8192, "D": 128, "window": 1024},
        {"B": 4, "H": 16, "Hkv": 16, "Sq": 4096, "Skv": 4096, "D": 64, "window": 500},
    ),
    "decode_attention": (
        {"B": 16, "H": 32, "Hkv": 8, "Skv": 4096, "D": 128},
        {"B": 64, "H": 32, "Hkv": 8, "Skv": 8000, "D": 128},
        {"B": 1, "H": 32, "Hkv": 8, "Skv": 16384, "D": 128},
    ),
    "neighborhood_attention": (
        {"B": 8, "H": 8, "rows": 56, "cols": 56, "D": 64, "window_rows": 7, "window_cols": 7},
        {"B": 4, "H": 8, "rows": 1, "cols": 4096, "D": 64, "window_rows": 1, "window_cols": 255},
    ),
    "simplicial_attention": (
        {"B": 1, "H": 2, "N": 512, "D": 64, "window": 128, "window2": 32},
        {"B": 1, "H": 8, "N": 4096, "D": 128, "window": 512, "window2": 32},
    ),
    "gated_linear_attention": (
        {"B": 4, "H": 16, "N": 2048, "Dk": 128, "Dv": 128},
        {"B": 8, "H": 8, "N": 4096, "Dk": 64, "Dv": 128},
    ),
    "triangular_inverse": ({"B": 4096, "D": 128}, {"B": 32768, "D": 128}),
    "fft_convolution": (
        {"B": 16, "H": 768, "side": 32},
        {"B": 16, "H": 768, "side": 64},
        {"B": 4, "H": 768, "side": 128},
    ),
    "layer_norm": ROWS,
    "rms_norm": ROWS,
    "row_softmax": ROWS,
    "all_reduce_rms_norm": (
        {"R": 128, "C": 4096, "ranks": 2},
        {"R": 4096, "C": 8192, "ranks": 2},
    ),
}
