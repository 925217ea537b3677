"""Products of narrow weights on a GPU: the kernel model beside our Triton kernels on an H200.

    python benchmarks/gpu_mixed_formats.py

``gemm_w4a16`` set the one constant (weights that an SM widens in a cycle), the largest row of
``gemm_w4a8`` that int8 kernels widen meanwhile; ``gemm_ternary`` only judges. Backward passes of
attention are cuDNN's, whose forward pass is taken off as predicted.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files

from arch.load import load_architecture
from mapper.workload.load import load_workload
from sim.gpu.attention_call import BACKWARD_SHARE
from sim.kernel_models import evaluate

DATA = files("kernels_ref") / "data" / "h200_fused.csv"
#: By kernel the formats of activations and weights.
FORMATS = {
    "gemm_w4a16": ("fp16", "int4_g128"),
    "gemm_ternary": ("fp16", "ternary"),
    "gemm_w4a8": ("int8", "int4_g128"),
}
#: Products of a backward pass in two operators, over those of a forward pass.
BACKWARD_PRODUCTS = 3.5


def main() -> None:
    rows = list(csv.DictReader(DATA.read_text().splitlines()))
    print("| kernel | sizes | measured us | predicted us | error % |")
    print("|---|---|---|---|---|")
    for kind in FORMATS:
        _print(kind, _products([row for row in rows if row["kernel"] == kind]))
    backward = [row for row in rows if row["kernel"] == "flash_attention_backward"]
    _print("flash_attention_backward", map(_backward, backward))


def _print(kind: str, found: Iterator[tuple[str, float, float]]) -> None:
    errors = []
    for sizes, measured, predicted in found:
        errors.append(100 * (predicted / measured - 1))
        print(f"| {kind} | {sizes} | {measured:.1f} | {predicted:.1f} | {errors[-1]:+.1f} |")
    print(f"| {kind} | mean absolute error | | | {sum(map(abs, errors)) / len(errors):.1f} |")


def _products(rows: list[dict[str, str]]) -> Iterator[tuple[str, float, float]]:
    for row in rows:
        activations, weights = FORMATS[row["kernel"]]
        sizes = " ".join(f"{name}={value}" for name, value in json.loads(row["sizes"]).items())
        spec = f"gemm:{sizes.replace(' ', ',')},dtype={activations},weights={weights}"
        yield sizes, float(row["triton_us"]), _time_us(spec)


def _backward(row: Mapping[str, str]) -> tuple[str, float, float]:
    p = json.loads(row["sizes"])
    spec = "attention:batch={B},heads={H},kv_heads={Hkv},head={D},seq={Sq},causal={causal}"
    forward = _time_us(spec.format(**p) + ",dtype=fp16")
    sizes = " ".join(f"{name}={value}" for name, value in p.items())
    measured = float(row["torch_us"]) - forward
    return sizes, measured, forward * BACKWARD_PRODUCTS * BACKWARD_SHARE


def _time_us(spec: str) -> float:
    architecture = load_architecture("h200")
    return evaluate(load_workload(spec), architecture, {}, "analytical").latency_ps / 1e6


if __name__ == "__main__":
    main()
