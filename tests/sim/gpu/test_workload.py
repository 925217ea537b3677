"""Does a workload on a GPU keep the promises of the three fidelities, and fuse what it should?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from dse.report.figures.timeline import AROUND, draw_run
from dse.tokens import flops_utilization, token_rates
from mapper.cost import InfeasibleError, Metrics
from mapper.workload.load import load_workload
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.launches import launches
from sim.gpu.predict import predict
from sim.kernel_models import evaluate
from sim.timeline import timeline

LARGE = "gemm:M=8192,N=8192,K=8192,dtype=bf16"
SMALL = "gemm:M=16,N=64,K=64,dtype=bf16"


def run(workload: str, fidelity: str) -> Metrics:
    return evaluate(load_workload(workload), load_architecture("h200"), {}, fidelity)


@pytest.mark.parametrize("workload", [LARGE, SMALL])
def test_fidelities_are_ordered_and_spend_the_same_dynamic_energy(workload: str) -> None:
    found = [run(workload, fidelity) for fidelity in ("roofline", "analytical", "event")]
    latencies = [m.latency_ps for m in found]
    assert latencies == sorted(latencies)
    for m in found:
        assert m.dynamic_energy_pj == pytest.approx(found[0].dynamic_energy_pj)
        assert m.energy_pj == pytest.approx(sum(c.energy_pj for c in m.components.values()))
        assert m.latency_ps == sum(o.latency_ps for o in m.operators)


@pytest.mark.parametrize("workload", [LARGE, SMALL, "gpt2:batch=2,seq=128,dtype=bf16"])
def test_causes_of_the_gap_add_up_to_it(workload: str) -> None:
    analytical, event = (run(workload, fidelity) for fidelity in ("analytical", "event"))
    assert analytical.gap == {}
    assert set(event.gap) <= {"dispatch", "rounds"}
    assert all(ps >= 0 for ps in event.gap.values())
    assert sum(event.gap.values()) == event.latency_ps - analytical.latency_ps


@pytest.mark.parametrize("fidelity", ["roofline", "analytical", "event"])
def test_power_stays_within_the_limit_at_every_fidelity(fidelity: str) -> None:
    model = gpu_model(chip_of(load_architecture("h200")))
    limit_w = model.chip.power_limit_w * model.constants["power"]["limit"]
    found = run(LARGE, fidelity)
    assert found.power_w <= limit_w * 1.005
    assert all(0 <= c.utilization <= 1 for c in found.components.values())


def limited(limit: str) -> Metrics:
    architecture = load_architecture("h200", {"power_limit": limit})
    return evaluate(load_workload(LARGE), architecture, {}, "analytical")


def test_a_limit_above_the_power_at_the_lowest_clock_is_kept_and_one_below_it_refused() -> None:
    model = gpu_model(chip_of(load_architecture("h200")))
    slow = limited("500W")
    assert slow.latency_ps > run(LARGE, "analytical").latency_ps
    assert slow.power_w == pytest.approx(500 * model.constants["power"]["limit"], rel=0.005)
    for limit in (50, 100):
        with pytest.raises(
            InfeasibleError, match=rf"lowest clock is .* W, limit {limit} W"
        ) as found:
            limited(f"{limit}W")
        assert found.value.violation > 0


@pytest.mark.parametrize("fidelity", ["roofline", "analytical", "event"])
@pytest.mark.parametrize(
    "workload", ["gemm:M=64,N=4096,K=4096,dtype=bf16", "gpt2:batch=2,seq=128,dtype=bf16"]
)
def test_the_memory_is_utilized_for_as_long_as_it_is_busy(workload: str, fidelity: str) -> None:
    found = run(workload, fidelity)
    assert found.components["hbm"].busy_ps > 0
    for part in (found, *found.operators):
        hbm = part.components["hbm"]
        assert hbm.utilization == pytest.approx(hbm.busy_ps / part.latency_ps)


def test_results_are_written_and_operands_read() -> None:
    hbm = run("gemm:M=4096,N=4096,K=64,dtype=bf16", "event").components["hbm"]
    assert hbm.write_bytes == 4096 * 4096 * 2
    assert hbm.read_bytes == 2 * 4096 * 64 * 2


def test_a_single_product_takes_what_the_kernel_model_says() -> None:
    model = gpu_model(chip_of(load_architecture("h200")))
    call = Call(kind="gemm", params={"M": 8192, "N": 8192, "K": 8192}, dtype="bf16")
    found = run(LARGE, "analytical")
    assert found.latency_ps / 1e6 == pytest.approx(predict([call], model).time_us[0], rel=1e-6)
    assert 0.5 < found.components["tensor"].utilization < 0.9


def test_attention_becomes_one_kernel_and_nothing_else_is_lost() -> None:
    network = load_workload("gpt2:batch=1,seq=64,dtype=bf16")
    found = list(launches(network))
    attentions = [launch for launch in found if launch.call.kind == "sdpa"]
    assert len(attentions) == 12
    assert all(a.call.params["H"] == 12 and a.call.params["causal"] == 1 for a in attentions)
    assert sum(launch.macs for launch in found) == network.macs
    assert len(found) == len(network.operators) - 2 * len(attentions)


def test_what_does_not_fit_into_the_hbm_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="hbm"):
        run("gemm:M=16,N=500000,K=500000,dtype=bf16", "event")


def test_a_language_model_costs_so_much_per_token() -> None:
    network = load_workload("gpt2:batch=2,seq=128,dtype=bf16")
    architecture = load_architecture("h200")
    metrics = evaluate(network, architecture, {}, "event")
    rates = token_rates(network, metrics)
    assert rates is not None
    assert rates.tokens == 2 * 128
    assert rates.tokens * rates.energy_pj_per_token == pytest.approx(metrics.energy_pj)
    assert rates.tokens_per_s == pytest.approx(rates.tokens / (metrics.latency_ps * 1e-12))
    used = flops_utilization(architecture, metrics)
    peak_macs_per_s = 2048 * 132 * 1980e6
    assert used is not None
    # Attention is causal: the useful products are a little fewer than all.
    assert 0.9 < used * peak_macs_per_s * metrics.latency_ps * 1e-12 / network.macs <= 1


def test_what_looks_nothing_up_has_no_tokens() -> None:
    assert token_rates(load_workload(SMALL), run(SMALL, "event")) is None


def test_a_lookup_moves_its_rows_not_the_table() -> None:
    network = load_workload("gpt2:batch=2,seq=128,dtype=bf16")
    metrics = evaluate(network, load_architecture("h200"), {}, "event")
    lookup = next(o for o in metrics.operators if o.components["tensor"] and o.name == "embed")
    assert lookup.components["hbm"].write_bytes == 2 * 128 * 768 * 2


def test_the_picture_of_a_run_shows_kernels_where_nothing_is_known_within_them() -> None:
    network, h200 = load_workload("gpt2:batch=1,seq=64,dtype=bf16"), load_architecture("h200")
    figure = draw_run(list(timeline(network, h200, {})), h200)
    assert figure is not None
    below = figure.axes[1]
    names = [label.get_text() for label in below.get_yticklabels()]
    longest = max(evaluate(network, h200, {}, "event").operators, key=lambda o: o.latency_ps)
    assert longest.name in names
    assert len(below.patches) == len(names) == AROUND


def test_what_a_kernel_keeps_busy_is_spread_over_it() -> None:
    architecture = load_architecture("h200")
    slices = list(timeline(load_workload("mobilenet_v1:image=32,width=0.25"), architecture, {}))
    kernels = {s.name: s for s in slices if s.group == "operators"}
    for piece in (s for s in slices if s.group == "ports"):
        kernel = kernels[piece.name]
        assert piece.start_ps == kernel.start_ps
        assert piece.duration_ps == max(kernel.duration_ps, piece.busy_ps)
