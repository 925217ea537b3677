"""Does a microcontroller keep the promises of the cost models, and say what does not fit?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.cost import InfeasibleError, Metrics
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.kernel_models import evaluate, runs_kernels

FIDELITIES = ("roofline", "analytical", "event")


@pytest.fixture(scope="module")
def network() -> Workload:
    return load_workload("mlperf_kws")


@pytest.fixture(scope="module")
def board() -> Architecture:
    return load_architecture("stm32l4r5", {"software.planner": "tflm"})


def run(network: Workload, board: Architecture, fidelity: str = "event") -> Metrics:
    return evaluate(network, board, {}, fidelity)


def test_it_brings_its_own_kernels(board: Architecture) -> None:
    assert runs_kernels(board)
    assert not runs_kernels(load_architecture("edge_npu"))


def test_fidelities_are_ordered_and_parts_add_up(network: Workload, board: Architecture) -> None:
    runs = [run(network, board, fidelity) for fidelity in FIDELITIES]
    latencies = [metrics.latency_ps for metrics in runs]
    assert latencies == sorted(latencies)
    assert latencies[0] < latencies[1]
    for metrics in runs:
        assert metrics.latency_ps == sum(o.latency_ps for o in metrics.operators)
        assert metrics.energy_pj == pytest.approx(sum(o.energy_pj for o in metrics.operators))
        assert all(c.busy_ps <= metrics.latency_ps for c in metrics.components.values())


def test_energy_is_power_times_time(network: Workload, board: Architecture) -> None:
    """45 mW, as fitted for this board."""
    metrics = run(network, board)
    assert metrics.energy_pj == pytest.approx(0.045 * metrics.latency_ps)
    doubled = board.with_overrides({"clock": "60 MHz"})
    assert run(network, doubled, "analytical").latency_ps == pytest.approx(
        2 * run(network, board, "analytical").latency_ps, rel=1e-6
    )


def test_latency_is_near_the_published_run(network: Workload, board: Architecture) -> None:
    """MLPerf Tiny v1.0, NUCLEO-L4R5ZI with X-CUBE-AI 7.3: 75.1 ms; the fit left 2 %."""
    assert run(network, board).latency_ps == pytest.approx(75.1e9, rel=0.05)


def test_both_sides_of_what_fits(network: Workload, board: Architecture) -> None:
    """DS-CNN holds two maps of 25 x 5 x 64 bytes: 16,000 in TensorFlow Lite Micro's arena."""
    assert run(network, board).memory["arena"] == 16_000
    enough = board.with_overrides({"sram.size": "16000 B"})
    assert run(network, enough).memory["sram"] == 16_000
    with pytest.raises(InfeasibleError, match=r"bytes of sram: needs 16,000, allowed 15,999"):
        run(network, board.with_overrides({"sram.size": "15999 B"}))
    with pytest.raises(InfeasibleError, match="bytes of flash"):
        run(network, board.with_overrides({"flash.size": "64 KiB"}))


def test_reserved_bytes_are_needed_too(network: Workload, board: Architecture) -> None:
    reserving = board.with_overrides({"software.reserved": "4 KiB", "sram.size": "20095 B"})
    with pytest.raises(InfeasibleError, match=r"needs 20,096"):
        run(network, reserving)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_kernels_are_those_of_int8(board: Architecture, fidelity: str) -> None:
    """Whatever fits into int8 runs, other formats do not."""
    with pytest.raises(InfeasibleError, match=r"computes in bf16; their format is int8.*dtype="):
        run(load_workload("mlperf_kws:dtype=bf16"), board, fidelity)
    assert run(load_workload("mlperf_kws:dtype=int8"), board, fidelity).latency_ps > 0


def test_training_is_not_simulated(board: Architecture) -> None:
    with pytest.raises(InfeasibleError, match=r"training is not simulated.*dse recompute"):
        run(load_workload("mlperf_kws:training=sgd"), board)
