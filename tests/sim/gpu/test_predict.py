"""Does the kernel model behave like hardware: monotone, bounded by its peaks, within its power?"""

from __future__ import annotations

import numpy as np
import pytest

from arch.errors import InputError
from arch.load import load_architecture
from kernels_ref.library.points import COUNTS, sample
from mapper.cost import InfeasibleError
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.predict import GpuModel, load_of, predict

GEMM_SIZES = (64, 512, 2048, 8192)


@pytest.fixture(scope="module")
def h200() -> GpuModel:
    return gpu_model(chip_of(load_architecture("h200")))


def gemm(m: int, n: int, k: int, dtype: str = "bf16") -> Call:
    return Call(kind="gemm", params={"M": m, "N": n, "K": k}, dtype=dtype)


def add(n: int) -> Call:
    return Call(kind="ew_add", params={"n": n}, dtype="bf16")


def test_no_product_beats_the_tensor_cores(h200: GpuModel) -> None:
    for dtype in ("bf16", "fp8", "int8", "fp32"):
        for size in GEMM_SIZES:
            time_us = predict([gemm(size, size, size, dtype)], h200).time_us[0]
            rate = h200.chip.rate(dtype)
            assert time_us > size**3 / (rate * h200.chip.sms * h200.chip.clock_mhz)


def test_no_sum_beats_the_memory(h200: GpuModel) -> None:
    sizes = [2**n for n in range(10, 29, 3)]
    for n, time_us in zip(sizes, predict([add(n) for n in sizes], h200).time_us, strict=True):
        assert time_us > 3 * 2 * n / h200.chip.hbm_bytes_per_us


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_longer_products_take_longer(h200: GpuModel, dimension: int) -> None:
    # Sizes that double, so that no better tile or alignment can make up for it.
    shapes = [[512, 512, 512] for _ in range(5)]
    for doubled, shape in enumerate(shapes):
        shape[dimension] <<= doubled
    times = predict([gemm(*shape) for shape in shapes], h200).time_us
    assert (np.diff(times) > 0).all()


def test_power_stays_between_idle_and_the_limit(h200: GpuModel) -> None:
    calls = [gemm(s, s, s) for s in GEMM_SIZES] + [add(2**n) for n in (12, 20, 28)]
    power_w = predict(calls, h200).power_w
    limit_w = h200.chip.power_limit_w * h200.constants["power"]["limit"]
    assert (power_w > h200.chip.idle_w).all()
    assert (power_w <= limit_w * 1.01).all()


def test_only_what_would_exceed_the_limit_runs_at_a_lower_clock(h200: GpuModel) -> None:
    small, large = predict([gemm(64, 64, 64), gemm(8192, 8192, 8192)], h200).slowdown
    assert small == 1
    assert large > 1.1


def test_calls_are_predicted_alone_as_in_company(h200: GpuModel) -> None:
    calls = [gemm(300, 1024, 768), add(99), gemm(77, 1024, 333), add(10**7)]
    together = predict(calls, h200)
    for number, call in enumerate(calls):
        alone = predict([call], h200)
        assert alone.time_us[0] == pytest.approx(together.time_us[number], rel=1e-12)
        assert alone.power_w[0] == pytest.approx(together.power_w[number], rel=1e-12)


def test_a_block_is_its_kernels_one_after_the_other(h200: GpuModel) -> None:
    params = {"model": "gpt2", "B": 1, "S": 64, "ctx": 0}
    load = load_of([Call(kind="block", params=params, dtype="bf16")], h200)
    # 2 norms, 4 products, 2 writes to the cache, attention, GELU, 2 sums.
    assert len(load.owner) == 12
    assert predict([Call(kind="block", params=params, dtype="bf16")], h200).time_us[
        0
    ] == pytest.approx(load.demand.time_us().sum())


def test_other_hardware_is_refused() -> None:
    with pytest.raises(InputError, match="kernel model is of GPUs"):
        chip_of(load_architecture("tiny"))


def test_what_no_library_has_is_refused(h200: GpuModel) -> None:
    with pytest.raises(InputError, match="no ew_add in fp8"):
        predict([Call(kind="ew_add", params={"n": 64}, dtype="fp8")], h200)


def test_every_kind_is_predicted_in_every_format_that_was_measured(h200: GpuModel) -> None:
    rng = np.random.default_rng(3)
    drawn = [sample(k, d, rng) for k, dtypes in COUNTS.items() for d in dtypes for _ in range(20)]
    calls = [Call(kind=p.kind, params=p.params, dtype=p.dtype) for p in drawn]
    found = predict(calls, h200)
    assert (found.time_us > 0.5).all()
    assert np.isfinite(found.power_w).all()


def test_a_type_that_the_tensor_cores_lack_is_infeasible() -> None:
    a100 = gpu_model(chip_of(load_architecture("a100_80g")))
    with pytest.raises(InfeasibleError, match="no tensor cores for fp8"):
        predict([gemm(64, 64, 64, "fp8")], a100)
