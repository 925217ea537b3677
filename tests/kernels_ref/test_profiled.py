"""Are profiled kernels told apart by label, and times of kernels that overlap counted once?"""

from __future__ import annotations

import csv
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from kernels_ref.measure.launched import COLUMNS, _launch, _launches
from kernels_ref.measure.names import is_helper, label
from kernels_ref.measure.profiled import main

TILED = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64"
PAD = "void nhwcAddPaddingKernel<__half, __half, float, true, (cudnnKernelDataType_t)0>(int)"
NAMES = {
    f"{TILED}_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn": "sm90 64x64x64_g1",
    f"{TILED}_warpgroupsize1x1x1_g8_execute_segment_k_off_kernel__5x_cudnn": "sm90 64x64x64_g8",
    "sm80_xmma_fprop_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x32x32"
    "_stage4_warpsize4x1x1_g1_tensor16x8x16_execute_kernel__5x_cudnn": "sm80 i 128x32x32_g1",
    "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x5"
    "_nhwc_align8>(Params)": "mma16816 optimized 128x128_32x5",
    "void implicit_convolve_sgemm<__nv_bfloat16, __nv_bfloat16, 1024, 5, 5, 3, 3>(int)": (
        "implicit fma 1024.5.5"
    ),
    "conv2d_c1_k1_nhwc_specialized": "depthwise special",
    PAD: "pad",
}


def event(name: str, ts: float, dur: float, cat: str = "kernel") -> dict[str, Any]:
    args = {"grid": [4, 2, 1], "block": [128, 1, 1], "shared memory": 0, "registers per thread": 32}
    return {"name": name, "cat": cat, "ts": ts, "dur": dur, "args": args}


@pytest.mark.parametrize(("name", "short"), NAMES.items())
def test_a_label_keeps_engine_and_tile(name: str, short: str) -> None:
    assert label(name) == short
    assert is_helper(name) == (short == "pad")


def test_kernels_that_overlap_are_busy_once() -> None:
    """Of [0, 4], [2, 5] and [8, 9] six microseconds are covered; the sum is eight."""
    launch = _launch([event("b", 2, 3), event("a", 0, 4), event("a", 8, 1)])
    assert launch.busy_us == 6
    assert {k["name"]: (k["count"], k["us"]) for k in launch.kernels} == {"a": (2, 5), "b": (1, 3)}


def test_the_faster_call_of_each_point_counts() -> None:
    marks = [event(f"point {n}", ts, 9, "user_annotation") for n, ts in ((0, 10), (0, 20), (1, 30))]
    kernels = [event("before", 1, 5), event("a", 12, 6), event("a", 21, 4), event("b", 31, 2)]
    found = _launches([*marks, *kernels], 3)
    assert [launch and launch.busy_us for launch in found] == [4, 2, None]


def test_gathering_keeps_each_call_once_and_leaves_out_the_unseen(tmp_path: Path) -> None:
    sizes = {"N": 8, "C": 64, "H": 56, "K": 64, "R": 3, "stride": 1, "groups": 1}
    shape = {"grid": [4, 2, 1], "block": [128, 1, 1], "smem": 0, "regs": 32}
    kernels = [
        {"name": next(iter(NAMES)), "count": 2, "us": 7.0, **shape},
        {"name": PAD, "count": 1, "us": 1.5, **shape},
    ]
    row = ["conv2d", json.dumps(sizes), "bf16", "8.123", json.dumps(kernels)]
    for number in range(2):
        with lzma.open(tmp_path / f"launched_{number}.csv.xz", "wt", newline="") as file:
            csv.writer(file).writerows([COLUMNS, row])
    out = tmp_path / "out.csv.xz"
    main(["--out", str(out), *(str(p) for p in sorted(tmp_path.glob("launched*")))])
    with lzma.open(out, "rt", newline="") as file:
        (found,) = csv.DictReader(file)
    assert {name: int(found[name]) for name in sizes} == sizes
    assert (found["kernels"], found["longest_runs"], found["blocks"]) == ("3", "2", "8")
    assert (found["busy_us"], found["total_us"]) == ("8.12", "8.5")
    assert (found["longest_us"], found["helpers_us"]) == ("7", "1.5")
    assert found["longest"] == "sm90 64x64x64_g1"
