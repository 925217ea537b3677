"""Are operands in different formats priced as kernels run them, or refused, never replaced?"""

from __future__ import annotations

import csv
import json
import math
from importlib.resources import files

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from mapper.cost import Metrics
from mapper.workload.load import load_workload
from sim.kernel_models import evaluate

#: What the kernel model says of rows that nothing was fitted to but ``WIDENED_PER_CYCLE``.
ALLOWED = {"gemm_w4a16": 0.35, "gemm_w4a8": 0.45}


def run(spec: str, fidelity: str = "analytical") -> Metrics:
    return evaluate(load_workload(spec), load_architecture("h200"), {}, fidelity)


def gemm(m: int, formats: str, size: int = 4096) -> Metrics:
    return run(f"gemm:M={m},N={size},K={size},{formats}")


@pytest.mark.parametrize(
    ("weights", "bits"),
    [("int8", 8), ("fp8", 8), ("int4", 4), ("int4_g128", 4.125), ("nvfp4", 4.5)],
)
def test_narrow_weights_move_their_own_bytes(weights: str, bits: float) -> None:
    plain, narrow = (gemm(16, f"dtype=bf16{w}", 8192) for w in ("", f",weights={weights}"))
    moved = [
        m.components["hbm"].read_bytes + m.components["hbm"].write_bytes for m in (plain, narrow)
    ]
    assert moved[0] - moved[1] == pytest.approx(8192 * 8192 * (16 - bits) / 8, rel=0.01)
    assert narrow.latency_ps < plain.latency_ps
    (note,) = narrow.notes
    assert f"{weights} weights" in note
    assert ("not measured" in note) == (bits == 8)


def test_many_rows_are_no_faster_for_narrow_weights() -> None:
    """The tensor cores work in the wide format, and widening comes on top."""
    assert gemm(4096, "dtype=bf16,weights=int8").latency_ps > gemm(4096, "dtype=bf16").latency_ps
    assert gemm(4096, "dtype=bf16,weights=int8") != gemm(4096, "dtype=int8")


@pytest.mark.parametrize("kind", sorted(ALLOWED))
def test_mixed_kernels_take_about_what_was_measured(kind: str) -> None:
    """External: Triton kernels of our own on an H200."""
    text = (files("kernels_ref") / "data" / "h200_fused.csv").read_text()
    rows = [row for row in csv.DictReader(text.splitlines()) if row["kernel"] == kind]
    assert len(rows) == 4
    activations = "int8" if kind == "gemm_w4a8" else "fp16"
    for row in rows:
        sizes = ",".join(f"{name}={value}" for name, value in json.loads(row["sizes"]).items())
        found = run(f"gemm:{sizes},dtype={activations},weights=int4_g128").latency_ps / 1e6
        assert abs(found / float(row["triton_us"]) - 1) < ALLOWED[kind], (sizes, found)


@pytest.mark.parametrize(
    "formats",
    [
        "dtype=int8,weights=bf16",
        "dtype=bf16,weights=fp16",
        "dtype=fp8,weights=int8",
        "dtype=fp32,weights=int8",
        "dtype=int8,weights=fp8",
    ],
)
def test_what_no_library_multiplies_is_refused_with_one_message(formats: str) -> None:
    activations, weights = (part.split("=")[1] for part in formats.split(","))
    with pytest.raises(InputError, match=f"multiplies {activations} with {weights}") as error:
        gemm(64, formats)
    assert len(error.value.problems) == 1


def test_sparse_and_convolution_kernels_need_equal_formats() -> None:
    with pytest.raises(InputError, match="2:4 sparse kernels need equal formats"):
        run("gemm:M=64,N=512,K=512,dtype=bf16,weights=int8,sparsity=2:4")
    with pytest.raises(InputError, match="no such convolutions"):
        run("conv2d:C=64,H=16,K=64,R=3,dtype=bf16,weights=int8")


def test_a_model_with_narrow_weights_decodes_faster_and_fits_into_less() -> None:
    spec = "llama3.1-8b:layers=2,phase=decode,batch=1,ctx=1024,dtype=bf16"
    plain, narrow = run(spec), run(f"{spec},weights=int4_g128")
    assert narrow.latency_ps < plain.latency_ps
    assert narrow.memory["hbm"] < plain.memory["hbm"]


def test_the_fidelities_of_mixed_products_are_ordered() -> None:
    spec = "gemm:M=128,N=14336,K=4096,dtype=bf16,weights=int4_g128"
    latencies = [run(spec, f).latency_ps for f in ("roofline", "analytical", "event")]
    assert latencies == sorted(latencies)
    assert math.isfinite(run(spec).energy_pj)
