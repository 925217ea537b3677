"""Which kernels the libraries have for products that do not run on wgmma with bulk copies.

Tiles, steps, stages, threads and shared memory are those that kernels' names and launches show
(``kernels_ref/data/h200_launched.csv``), of kernels seen more than once.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Registers of a thread besides its accumulators, by family; wmma kernels are simpler.
OTHER_REGISTERS = 72
WMMA_REGISTERS = 48
MOST_REGISTERS = 255
SM_REGISTERS = 65_536
SM_THREADS = 2048
MOST_RESIDENT = 16
#: What a block takes of the shared memory besides what it asks for (CUDA programming guide).
RESERVED_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A tile of ``rows x cols`` results; a step is so many elements of the sum."""

    family: str
    rows: int
    cols: int
    step: int
    stages: int
    threads: int
    shared_bytes: int
    swizzled: bool = True

    def resident(self, shared_bytes: int) -> int:
        """Blocks that fit onto an SM with so much shared memory."""
        other = WMMA_REGISTERS if self.family.startswith("wmma") else OTHER_REGISTERS
        registers = min(MOST_REGISTERS, self.rows * self.cols / self.threads + other)
        limits = (
            shared_bytes // (self.shared_bytes + RESERVED_BYTES),
            int(SM_REGISTERS / (registers * self.threads)),
            SM_THREADS // self.threads,
            MOST_RESIDENT,
        )
        return max(1, min(limits))


def _kernels(family: str, *shapes: tuple[int, ...], swizzled: bool = True) -> tuple[Kernel, ...]:
    """Of (rows, cols, step, stages, threads, shared KiB)."""
    return tuple(
        Kernel(
            family=family,
            rows=rows,
            cols=cols,
            step=step,
            stages=stages,
            threads=threads,
            shared_bytes=shared << 10,
            swizzled=swizzled,
        )
        for rows, cols, step, stages, threads, shared in shapes
    )


#: mma of 16x8x8, loads through registers: rows of any alignment.
MMA_ODD = _kernels(
    "mma_odd",
    (64, 64, 32, 2, 128, 16),
    (128, 128, 32, 2, 128, 32),
    (128, 256, 32, 2, 256, 48),
)
#: The same work, of one warp for 16x16 and of four for 32x32, through wmma.
WMMA_ODD = _kernels(
    "wmma_odd",
    (16, 16, 64, 1, 32, 4),
    (16, 16, 128, 2, 32, 16),
    (32, 32, 64, 1, 128, 9),
    (32, 32, 128, 1, 128, 17),
)
#: Batches in bf16 have one such kernel, of short steps.
WMMA_ODD_BATCH = _kernels("wmma_odd", (32, 32, 32, 1, 128, 5))
#: mma of 16x8x16, asynchronous copies of 4 bytes: rows of even length.
MMA_EVEN = _kernels(
    "mma_even",
    (64, 64, 64, 4, 64, 64),
    (64, 128, 64, 3, 128, 72),
    (64, 256, 64, 3, 128, 120),
    (128, 128, 64, 3, 128, 96),
    (128, 256, 64, 3, 256, 144),
    (256, 128, 64, 3, 256, 144),
)
MMA_EVEN_BATCH = MMA_EVEN[1:] + _kernels(
    "mma_even", (128, 128, 32, 4, 128, 64), (64, 256, 32, 4, 128, 80), (128, 256, 32, 3, 256, 72)
)
WMMA_EVEN = _kernels(
    "wmma_even",
    (16, 16, 64, 1, 32, 4),
    (16, 16, 128, 2, 32, 16),
    (32, 32, 64, 2, 128, 17),
    (32, 32, 128, 1, 128, 17),
    (32, 32, 128, 2, 128, 33),
)
WMMA_EVEN_BATCH = _kernels(
    "wmma_even", (32, 32, 32, 1, 128, 5), (32, 32, 64, 2, 128, 18), (32, 32, 128, 2, 128, 36)
)
MMA_INT8 = _kernels(
    "mma_int8",
    (64, 64, 128, 6, 128, 96),
    (64, 128, 128, 3, 128, 72),
    (64, 128, 128, 6, 128, 144),
    (128, 128, 128, 5, 128, 160),
    (256, 128, 128, 3, 256, 144),
)
#: fp32 on the CUDA cores; these are not swizzled.
SIMT = _kernels(
    "simt",
    (32, 32, 8, 3, 64, 6),
    (32, 64, 8, 3, 64, 9),
    (32, 128, 8, 3, 64, 16),
    (64, 64, 8, 3, 128, 12),
    (64, 128, 8, 3, 128, 18),
    (64, 256, 8, 3, 128, 32),
    (128, 32, 8, 3, 128, 15),
    (128, 64, 8, 3, 128, 18),
    (128, 128, 8, 3, 128, 33),
    swizzled=False,
)
#: Matrix-vector kernels for a few rows: a block of 128 threads for eight columns.
FEW = _kernels(
    "few",
    (2, 8, 256, 1, 128, 1),
    (4, 8, 256, 1, 128, 1),
    (7, 8, 256, 1, 128, 1),
    (9, 8, 256, 1, 128, 1),
    swizzled=False,
)
#: Convolutions: persistent wgmma blocks of three warp groups, and mma kernels.
CONV_WGMMA = _kernels(
    "wgmma",
    (64, 64, 64, 7, 384, 226),
    (64, 128, 64, 6, 384, 226),
    (128, 64, 64, 6, 384, 226),
    (256, 64, 32, 6, 384, 226),
    (128, 128, 64, 5, 384, 226),
    (256, 128, 32, 5, 384, 226),
    (128, 256, 32, 5, 384, 226),
    swizzled=False,
)
CONV_WGMMA_TF32 = _kernels(
    "wgmma",
    (64, 32, 32, 7, 384, 226),
    (64, 64, 32, 7, 384, 226),
    (64, 128, 32, 6, 384, 226),
    (128, 64, 32, 6, 384, 226),
    (256, 32, 32, 6, 384, 226),
    (128, 128, 32, 5, 384, 226),
    swizzled=False,
)
CONV_MMA = _kernels(
    "mma",
    (64, 64, 64, 5, 128, 80),
    (128, 128, 32, 5, 128, 80),
    (256, 64, 32, 5, 128, 80),
    (64, 128, 32, 4, 128, 72),
    (128, 32, 32, 4, 128, 42),
    (64, 32, 64, 5, 128, 60),
    swizzled=False,
)
#: Convolutions on the CUDA cores, 32 pixels by 32 results, channels as they are.
CONV_DIRECT = _kernels("direct", (32, 32, 8, 2, 64, 8), swizzled=False)

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
CATALOGUES: dict[str, tuple[tuple[Kernel, ...], tuple[int, ...]]] = {
    "gemm.odd.bf16": (MMA_ODD, SPLITS),
    "gemm.odd.fp16": (MMA_ODD + WMMA_ODD, SPLITS),
    "bmm.odd.bf16": (MMA_ODD + WMMA_ODD_BATCH, (1,)),
    "bmm.odd.fp16": (MMA_ODD + WMMA_ODD[2:], (1,)),
    "gemm.even": (MMA_EVEN + WMMA_EVEN, SPLITS),
    "bmm.even": (MMA_EVEN_BATCH + WMMA_EVEN_BATCH, (1,)),
    "gemm.int8": (MMA_INT8, (1,)),
    "gemm.simt": (SIMT, SPLITS),
    "bmm.simt": (SIMT, (1,)),
    "conv2d.dense2": (CONV_WGMMA + CONV_MMA, (1,)),
    "conv2d.dense4": (CONV_WGMMA_TF32, (1,)),
    "conv2d.large2": (CONV_MMA, (1,)),
    "conv2d.large4": (CONV_MMA, (1,)),
    "conv2d.direct": (CONV_DIRECT, (1,)),
}
#: On Ampere, cuBLAS has one kernel for batches in fp32, whatever their sizes: of 16,661 batched
#: products that NeuSight profiled for training on an A100 PCIe 40 GB (github.com/sitar-lab/NeuSight
#: at 6945927d, CUDA 12.1), 99.6 % start ampere_sgemm_128x128_nn.
AMPERE_BATCH = "bmm.simt.ampere"
CATALOGUES[AMPERE_BATCH] = (SIMT[-1:], (1,))

#: Products of few rows have more to choose from.
FEW_ROWS = 12
CATALOGUES |= {
    f"{name}.few": (CATALOGUES[name][0] + FEW, CATALOGUES[name][1])
    for name in ("gemm.odd.bf16", "gemm.odd.fp16", "gemm.even", "gemm.simt")
}


def kernels(name: str) -> tuple[tuple[Kernel, ...], tuple[int, ...]]:
    return CATALOGUES[name]
