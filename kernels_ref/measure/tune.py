"""Time tile sizes on this machine's GPU: ``python -m kernels_ref.measure.tune SECTION...``.

Prints a line per kernel, size and tile, from which ``kernels_ref.triton_kernels`` has its choices.
``--warm`` only compiles, so that several processes can do so at once before one measures.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from triton.errors import TritonError

from arch.errors import InputError
from kernels_ref.fused.record import normal
from kernels_ref.fused.registry import FUSED
from kernels_ref.measure.fused import time_us
from kernels_ref.measure.kernels import Card
from kernels_ref.triton_kernels.attention import AttentionTile, Mask, attend, decode_attention
from kernels_ref.triton_kernels.attention_backward import gradients
from kernels_ref.triton_kernels.convolution import fft_convolution
from kernels_ref.triton_kernels.gemm import TILES, Tile, product
from kernels_ref.triton_kernels.quantized import packed_gemm
from kernels_ref.triton_kernels.sparse import block_sparse_product, two_of_four_gemm

#: Buffers of a trial, so that a call finds little of its data in the L2.
SETS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    what: str
    tile: str
    calls: Sequence[Callable[[], Any]]
    flops: float


PRODUCT_SIZES = (
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (1024, 1024, 1024),
    (512, 4096, 4096),
    (128, 4096, 14336),
    (64, 14336, 4096),
    (16, 14336, 4096),
    (1, 4096, 4096),
)
MORE_TILES = (
    Tile(rows=256, cols=128, depth=128, warps=8, stages=3, speed=1.0),
    Tile(rows=128, cols=128, depth=128, warps=8, stages=4, speed=1.0),
    Tile(rows=128, cols=64, depth=128, warps=4, stages=5, speed=1.0),
    Tile(rows=64, cols=16, depth=512, warps=4, stages=4, speed=1.0),
    Tile(rows=16, cols=16, depth=1024, warps=4, stages=4, speed=1.0),
)


def _calls(
    function: Callable[..., Any], operands: Sequence[tuple[Any, ...]], **options: Any
) -> list[Callable[[], Any]]:
    return [partial(function, *given, **options) for given in operands]


def _fits(tile: Tile, m: int) -> bool:
    return tile.rows < 2 * m or tile.rows <= 64


def _products(dtype: str, result: str, generator: Any) -> Iterator[Trial]:
    import torch

    kind, out_kind = getattr(torch, dtype), getattr(torch, result)
    for m, n, k in PRODUCT_SIZES:
        operands = [
            (normal((m, k), generator).to(kind), normal((n, k), generator).to(kind))
            for _ in range(SETS if m * n < 2**24 else 2)
        ]
        out = torch.empty((m, n), dtype=out_kind, device="cuda")
        what, flops = f"{dtype} {m}x{n}x{k}", 2.0 * m * n * k
        if dtype == "bfloat16":
            calls = _calls(torch.matmul, [(a, b.t()) for a, b in operands], out=out)
            yield Trial(what=what, tile="torch", calls=calls, flops=flops)
        for tile in (*TILES, *MORE_TILES):
            if _fits(tile, m):
                calls = _calls(product, operands, out=out, tile=tile)
                yield Trial(what=what, tile=str(tile), calls=calls, flops=flops)


def _attention_operands(depth: int, length: int, generator: Any) -> list[Any]:
    shape = (2, 16, length, depth)
    return [tuple(normal(shape, generator) for _ in range(3)) for _ in range(2)]


FORWARD_TILES = [
    AttentionTile(queries=q, keys=k, warps=w, stages=s)
    for q, k, w, s in (
        (128, 128, 8, 2),
        (128, 128, 8, 3),
        (128, 64, 8, 2),
        (128, 64, 8, 3),
        (128, 64, 4, 3),
        (64, 128, 4, 2),
        (64, 64, 4, 3),
        (128, 128, 4, 2),
        (256, 64, 8, 3),
    )
]
BACKWARD_TILES = [
    AttentionTile(queries=q, keys=k, warps=w, stages=s)
    for q, k, w, s in (
        (64, 128, 8, 2),
        (64, 128, 8, 3),
        (64, 64, 4, 2),
        (64, 64, 4, 3),
        (128, 128, 8, 2),
        (128, 64, 8, 2),
        (32, 128, 8, 2),
        (32, 128, 4, 2),
        (32, 128, 8, 3),
        (64, 128, 4, 2),
        (64, 256, 8, 2),
    )
]


def _forward(generator: Any) -> Iterator[Trial]:
    for depth, causal in itertools.product((64, 128), (False, True)):
        operands = _attention_operands(depth, 4096, generator)
        flops = 4.0 * 32 * 4096**2 * depth / (2 if causal else 1)
        for tile in FORWARD_TILES:
            calls = _calls(attend, operands, mask=Mask(causal=causal), tile=tile)
            what = f"forward D={depth} causal={causal}"
            yield Trial(what=what, tile=str(tile), calls=calls, flops=flops)


def _backward(generator: Any) -> Iterator[Trial]:
    for depth, causal in itertools.product((64, 128), (False, True)):
        operands = _attention_operands(depth, 4096, generator)
        results = [call() for call in _calls(attend, operands, mask=Mask(causal=causal))]
        flops = 10.0 * 32 * 4096**2 * depth / (2 if causal else 1)
        for tile in BACKWARD_TILES:
            triples = zip(operands, results, strict=True)
            given = [(inputs, result, inputs[0]) for inputs, result in triples]
            calls = _calls(gradients, given, causal=causal, tile=tile)
            what = f"backward D={depth} causal={causal}"
            yield Trial(what=what, tile=str(tile), calls=calls, flops=flops)


def _decode(generator: Any) -> Iterator[Trial]:
    for batch, length in ((16, 4096), (64, 8000), (1, 16384)):
        sizes = {"B": batch, "H": 32, "Hkv": 8, "Skv": length, "D": 128}
        operands = [FUSED["decode_attention"].inputs(sizes, generator) for _ in range(3)]
        flops = FUSED["decode_attention"].counts(sizes).flops
        for keys, warps, stages in itertools.product((32, 64, 128), (4,), (2, 3, 4)):
            tile = AttentionTile(queries=1, keys=keys, warps=warps, stages=stages)
            calls = _calls(decode_attention, operands, tile=tile)
            yield Trial(what=f"decode {batch} {length}", tile=str(tile), calls=calls, flops=flops)


PACKED_TILES = (
    (16, 64, 4, 4),
    (16, 64, 4, 3),
    (16, 32, 4, 4),
    (64, 64, 4, 2),
    (64, 128, 4, 2),
    (128, 64, 4, 2),
    (128, 128, 8, 2),
    (16, 128, 4, 5),
    (16, 128, 8, 5),
    (64, 64, 4, 4),
    (64, 128, 4, 4),
    (64, 128, 8, 4),
    (128, 128, 8, 4),
    (128, 128, 8, 3),
    (256, 128, 8, 3),
    (128, 64, 4, 4),
    (128, 64, 4, 3),
    (64, 64, 4, 3),
)


def _packed(generator: Any) -> Iterator[Trial]:
    for name, bits in (("gemm_w4a16", 4), ("gemm_lut4", 4), ("gemm_ternary", 2)):
        for m, n, k in ((1, 14336, 4096), (16, 4096, 14336), (128, 14336, 4096), (4096,) * 3):
            sizes = {"M": m, "N": n, "K": k}
            operands = [FUSED[name].inputs(sizes, generator) for _ in range(SETS)]
            for tile in PACKED_TILES:
                if tile[0] < 2 * max(m, 16):
                    calls = _calls(packed_gemm, operands, bits=bits, tile=tile)
                    flops = 2.0 * m * n * k
                    yield Trial(
                        what=f"{name} {m}x{n}x{k}", tile=str(tile), calls=calls, flops=flops
                    )


def _sparse(generator: Any) -> Iterator[Trial]:
    for m, n, k in ((16, 14336, 4096), (128, 14336, 4096), (4096,) * 3):
        given = [
            FUSED["gemm_2of4"].inputs({"M": m, "N": n, "K": k}, generator) for _ in range(SETS)
        ]
        for tile in PACKED_TILES:
            if tile[0] < 2 * max(m, 16):
                calls = _calls(two_of_four_gemm, given, tile=tile)
                what, flops = f"2of4 {m}x{n}x{k}", 1.0 * m * n * k
                yield Trial(what=what, tile=str(tile), calls=calls, flops=flops)
    for block in (32, 64):
        sizes = {"M": 4096, "N": 4096, "K": 4096, "block": block, "percent": 10}
        kernel = FUSED["block_sparse_product"]
        given = [kernel.inputs(sizes, generator) for _ in range(SETS)]
        for shape in itertools.product((64, 128, 256), (4, 8), (3, 4, 5)):
            calls = _calls(block_sparse_product, given, tile=shape)
            what, work = f"blocks of {block}", kernel.counts(sizes).flops
            yield Trial(what=what, tile=str(shape), calls=calls, flops=work)


def _fourier(generator: Any) -> Iterator[Trial]:
    for side, tiles in (
        (32, ((32, 4), (32, 2), (32, 1))),
        (64, ((64, 4), (64, 8), (32, 4), (32, 2))),
        (128, ((64, 8), (32, 8))),
    ):
        sizes = {"B": 4, "H": 768, "side": side}
        kernel = FUSED["fft_convolution"]
        given = [kernel.inputs(sizes, generator) for _ in range(SETS)]
        for tile in tiles:
            calls = _calls(fft_convolution, given, tile=tile)
            work = kernel.counts(sizes).flops
            yield Trial(what=f"fourier {side}", tile=str(tile), calls=calls, flops=work)


SECTIONS: dict[str, Callable[[Any], Iterator[Trial]]] = {
    "bf16": partial(_products, "bfloat16", "bfloat16"),
    "fp8": partial(_products, "float8_e4m3fn", "bfloat16"),
    "int8": partial(_products, "int8", "int32"),
    "forward": _forward,
    "backward": _backward,
    "decode": _decode,
    "packed": _packed,
    "sparse": _sparse,
    "fourier": _fourier,
}


def main(arguments: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.tune")
    parser.description = __doc__
    parser.add_argument("sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--warm", action="store_true", help="compile only")
    given = parser.parse_args(arguments)
    try:
        Card()
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    generator = torch.Generator("cuda").manual_seed(0)
    for section in given.sections:
        for trial in SECTIONS[section](generator):
            try:
                trial.calls[0]()
                us = 1.0 if given.warm else time_us(trial.calls)
            except (TritonError, RuntimeError) as error:  # what does not fit is a result too
                sys.stdout.write(f"{trial.what} | {trial.tile} | {str(error)[:100]!r}\n")
                continue
            if not given.warm:
                line = f"{trial.what} | {trial.tile} | {us:.2f} us | {trial.flops / us / 1e6:.1f}"
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
