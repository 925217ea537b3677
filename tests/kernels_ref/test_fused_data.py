"""Are the measured fused kernels all there, correct, and no faster than the hardware allows?"""

from __future__ import annotations

import csv
import json
from importlib.resources import files

import pytest

from arch.load import load_architecture
from kernels_ref.fused.registry import FUSED
from kernels_ref.measure.fused import COLUMNS
from kernels_ref.measure.fused_sizes import SIZES
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.predict import load_of

DATA = files("kernels_ref") / "data"
with (DATA / "h200_fused.csv").open(newline="") as file:
    ROWS: list[dict[str, str]] = list(csv.DictReader(file))

#: The most that tensor cores of an H200 do in a microsecond: int8 and fp8 (NVIDIA H100 Tensor Core
#: GPU Architecture whitepaper, dense); its memory moves 4.9 TB/s at the measured clock.
MOST_FLOPS_PER_US, MOST_BYTES_PER_US = 1979e6, 4917e3
#: No kernel but the one named takes longer than this times torch's own.
MOST_RATIO = 1.3
SLOWER = {("gemm_2of4", 512)}


def test_every_kernel_was_measured_on_its_sizes() -> None:
    assert tuple(ROWS[0]) == COLUMNS
    found = [(row["kernel"], json.loads(row["sizes"])) for row in ROWS]
    assert found == [(name, sizes) for name in FUSED for sizes in SIZES[name]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["kernel"])
def test_result_was_correct_and_the_time_is_possible(row: dict[str, str]) -> None:
    assert float(row["relative_error"]) <= float(row["tolerance"])
    counts = FUSED[row["kernel"]].counts(json.loads(row["sizes"]))
    time_us = float(row["triton_us"])
    assert time_us > counts.flops / MOST_FLOPS_PER_US
    assert time_us > counts.bytes / MOST_BYTES_PER_US
    assert float(row["tflops"]) == pytest.approx(counts.flops / time_us / 1e6, rel=2e-3)


def test_kernels_are_about_as_fast_as_torchs_own() -> None:
    slow = {
        (row["kernel"], json.loads(row["sizes"]).get("M"))
        for row in ROWS
        if row["torch_own"] == "1" and float(row["ratio"]) > MOST_RATIO
    }
    assert slow == SLOWER


PRODUCT = {"M": 4096, "N": 4096, "K": 4096}
HEADS = {"B": 2, "H": 8, "Hkv": 8, "Sq": 1024, "Skv": 1024, "D": 64, "causal": 0}
DECODE = {"B": 16, "H": 32, "Hkv": 8, "Skv": 4096, "D": 128}
#: Kernel, the GPU model's kind and format, sizes, what only the model is told, what both count.
SAME_AS_THE_MODEL: list[tuple[str, str, str, dict[str, int], dict[str, int], set[str]]] = [
    ("gemm_bf16", "gemm", "bf16", PRODUCT, {}, {"flops", "special"}),
    ("gemm_int8", "gemm", "int8", PRODUCT, {}, {"flops", "special", "bytes"}),
    ("gemm_fp8", "gemm", "fp8", PRODUCT, {}, {"flops", "special", "bytes"}),
    ("flash_attention", "sdpa", "fp16", HEADS, {}, {"flops", "special", "bytes"}),
    ("decode_attention", "sdpa", "fp16", DECODE, {"Sq": 1, "causal": 0}, {"special", "bytes"}),
    ("row_softmax", "row_softmax", "fp16", {"R": 16384, "C": 8192}, {}, {"special", "bytes"}),
]


@pytest.mark.parametrize(
    ("name", "kind", "dtype", "sizes", "more", "what"),
    SAME_AS_THE_MODEL,
    ids=[row[0] for row in SAME_AS_THE_MODEL],
)
def test_the_gpu_model_counts_the_same_work(
    name: str,
    kind: str,
    dtype: str,
    sizes: dict[str, int],
    more: dict[str, int],
    what: set[str],
) -> None:
    model = gpu_model(chip_of(load_architecture("h200")))
    demand = load_of([Call(kind=kind, params={**sizes, **more}, dtype=dtype)], model).demand
    theirs = {
        "flops": 2 * demand.macs.sum(),
        "special": demand.scalar.sum(),
        "bytes": demand.hbm_bytes.sum(),
    }
    counts = FUSED[name].counts(sizes)
    for quantity in what:
        assert theirs[quantity] == getattr(counts, quantity)
