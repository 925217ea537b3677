"""Short labels of the kernels that libraries launch: what kind they are, and their tiles.

cuDNN's and cuBLAS's names say which engine a kernel belongs to and how it cuts its work, in ways
that differ by engine; a label keeps that and drops types and layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

#: Kernels that lay out, convert, pad, clear or add up what others work on, by a part of the name.
HELPERS = {
    "Memset": "clear",
    "Memcpy": "copy",
    "nhwcAddPadding": "pad",
    "tensorTransformGeneric": "transform",
    "nhwcSlice": "slice",
    "nhwcToNchw": "to NCHW",
    "nchwToNhwc": "to NHWC",
    "convertTensor": "convert",
    "splitKreduce": "add up",
    "init_device_workspace": "start",
    "precompute_indices": "indices",
}

#: Others by a part of their names.
PLAIN = {
    "c1_k1_nhwc_specialized": "depthwise special",
    "c1_k1_nhwc": "depthwise",
    "depthwise_convolution": "depthwise tiled",
    "grouped_direct": "direct",
    "nvjet": "nvjet",
    "inograd": "winograd",
    "fft": "fft",
    "gemv": "gemv",
    "reduce": "reduce",
}

#: How the addresses of inputs are found, if not by copy engines.
INDEXED = {None: "", "indexed": "i ", "indexed_wo_smem": "w "}

RULES: tuple[Rule, ...] = (
    (
        re.compile(r"convolve_common_engine.*?NHWC<[^,]*, [^,]*, (\d+), (\d+), (\d+)"),
        lambda m: "common " + ".".join(m.groups()),
    ),
    (
        re.compile(r"(implicit|precomputed)_convolve_sgemm<.*?, (\d+), (\d+), (\d+)"),
        lambda m: f"{m[1]} fma " + ".".join(m.groups()[1:]),
    ),
    (
        re.compile(
            r"(sm90|sm80)_xmma_fprop_implicit_gemm_(indexed_wo_smem|indexed)?"
            r".*?_tilesize(\d+x\d+x\d+).*?(_g\d+)_"
        ),
        lambda m: f"{m[1]} {INDEXED[m[2]]}{m[3]}{m[4]}",
    ),
    (
        re.compile(r"(sm90|sm80)_xmma_gemm_.*?_tilesize(\d+x\d+x\d+)"),
        lambda m: f"{m[1]} gemm {m[2]}",
    ),
    (
        re.compile(r"s(\d+)fprop_(\w+?)_\w*?_(\d+x\d+_\d+x\d+)"),
        lambda m: f"mma{m[1]} {m[2]} {m[3]}",
    ),
    (
        re.compile(r"cutlass_(\d+)_\w*?gemm_\w*?_?(\d+x\d+)(_\d+x\d+)?_.*?align(\d)"),
        lambda m: f"cutlass{m[1]} {m[2]}{m[3] or ''} a{m[4]}",
    ),
)


@cache
def label(name: str) -> str:
    """The kind of a kernel and its tile; of an unknown one the beginning of its name."""
    for pattern, text in RULES:
        found = pattern.search(name)
        if found:
            return text(found)
    for part, text_of in (HELPERS | PLAIN).items():
        if part in name:
            return text_of
    return name.removeprefix("void ")[:24].replace(",", ";")


def is_helper(name: str) -> bool:
    return label(name) in HELPERS.values()
