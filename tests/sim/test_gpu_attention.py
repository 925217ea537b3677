"""Is attention priced by its sizes, whoever named its loops?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from mapper.workload.load import load_workload
from sim.gpu.launches import launches
from sim.kernel_models import evaluate

#: Dense bf16 peak of the H200's tensor cores, multiply-adds per second (989 TFLOP/s, data sheet).
PEAK_MACS_PER_S = 989e12 / 2
SPECS = {
    "attention:heads=32,head=128,seq=1024,dtype=bf16": (1, 32, 32, 1024, 1024, 128),
    "attention:heads=32,kv_heads=8,head=128,seq=1,ctx=8192,dtype=bf16": (1, 32, 8, 1, 8192, 128),
    "attention:batch=4,heads=8,head=64,seq=256,form=streaming,dtype=bf16": (4, 8, 8, 256, 256, 64),
}


@pytest.mark.parametrize("spec", SPECS)
def test_the_kernel_has_the_sizes_of_the_operator(spec: str) -> None:
    (launch,) = launches(load_workload(spec))
    sizes = ("B", "H", "Hkv", "Sq", "Skv", "D")
    assert tuple(launch.call.params[size] for size in sizes) == SPECS[spec]


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_is_faster_than_the_peak(spec: str) -> None:
    metrics = evaluate(load_workload(spec), load_architecture("h200"), {}, "event")
    assert metrics.macs / (metrics.latency_ps * 1e-12) <= PEAK_MACS_PER_S
    assert all(c.utilization <= 1 for c in metrics.components.values())
