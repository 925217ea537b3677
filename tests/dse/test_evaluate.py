"""Is a trial's outcome what its model says, and are limits found where they are?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy_problem

from arch.load import load_architecture
from dse.bounds import least_costs
from dse.config import Constraint, MappingSettings, SearchConfig, WeightedWorkload
from dse.evaluate import FITS, Outcome, PointEvaluator
from dse.limits import broken, violations
from dse.load_config import load_search
from dse.quantities import QUANTITIES
from dse.search import SearchRun, search
from dse.trial import TrialState
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import FIDELITIES, cost_model
from sim.prices import price

SMALL = "gemm:M=16,N=16,K=32,dtype=int8"
LARGE = "gemm:M=32,N=16,K=32,dtype=int8"


def config(*workloads: WeightedWorkload, **changes: Any) -> SearchConfig:
    return toy_problem.config(workloads=workloads, constraints=(), **changes)


def evaluate(asked: SearchConfig, overrides: Mapping[str, Any]) -> Outcome:
    workloads = {w.spec: load_workload(w.spec) for w in asked.workloads}
    return PointEvaluator(config=asked, workloads=workloads)(overrides)


def limit(name: str, value: float) -> Constraint:
    return Constraint(quantity=QUANTITIES[name], limit=value, text=f"<= {value}")


@pytest.mark.parametrize("fidelity", ["analytical", "event"])
def test_the_outcome_is_what_the_cost_model_says(fidelity: str) -> None:
    overrides = {"array.rows": 8, "gbuf.size": "64 KiB"}
    outcome = evaluate(config(WeightedWorkload(spec=SMALL), fidelity=fidelity), overrides)
    workload = load_workload(SMALL)
    architecture = load_architecture("edge_npu", overrides)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    metrics = cost_model(fidelity).evaluate(workload, architecture, mappings)
    assert outcome.state is TrialState.COMPLETE
    assert outcome.objectives["latency_ps"] == metrics.latency_ps
    assert outcome.objectives["energy_pj"] == metrics.energy_pj
    assert outcome.objectives["area_mm2"] == architecture.area_mm2
    assert outcome.objectives["power_w"] == pytest.approx(metrics.power_w)
    assert outcome.cost_model_calls == sum(r.calls for r in found.values()) + 1
    assert outcome.metrics is not None
    operators = outcome.metrics[SMALL]["operators"]
    assert [o["name"] for o in operators] == [o.name for o in workload.operators]
    assert all(o["mapping"]["optimal"] and o["mapping"]["gap"] == 0 for o in operators)


def test_time_and_energy_of_several_workloads_are_weighted_sums() -> None:
    small, large = (evaluate(config(WeightedWorkload(spec=s)), {}) for s in (SMALL, LARGE))
    both = evaluate(
        config(WeightedWorkload(spec=SMALL, weight=3), WeightedWorkload(spec=LARGE, weight=0.5)), {}
    )
    for key in ("latency_ps", "energy_pj"):
        expected = 3 * small.objectives[key] + 0.5 * large.objectives[key]
        assert both.objectives[key] == pytest.approx(expected)
    assert both.objectives["area_mm2"] == small.objectives["area_mm2"]
    power = both.objectives["energy_pj"] / both.objectives["latency_ps"]
    assert both.objectives["power_w"] == pytest.approx(power)
    assert both.objectives["edp_js"] == pytest.approx(
        power * both.objectives["latency_ps"] ** 2 * 1e-24
    )


def test_an_area_limit_is_met_at_the_area_and_broken_just_below_it() -> None:
    area = load_architecture("edge_npu").area_mm2
    asked = config(WeightedWorkload(spec=SMALL))
    met = evaluate(replace(asked, constraints=(limit("area", area),)), {})
    missed = evaluate(replace(asked, constraints=(limit("area", area * 0.999),)), {})
    assert met.state is TrialState.COMPLETE
    assert met.constraints["area"] == 0
    assert missed.state is TrialState.INFEASIBLE
    assert missed.constraints["area"] == pytest.approx(1 / 0.999 - 1)


def test_calls_of_a_design_that_cannot_run_all_are_counted() -> None:
    fits = evaluate(config(WeightedWorkload(spec=SMALL)), {})
    wide = SMALL.replace("int8", "fp32")
    assert wide != SMALL
    alone = evaluate(config(WeightedWorkload(spec=wide)), {})
    both = evaluate(config(WeightedWorkload(spec=SMALL), WeightedWorkload(spec=wide)), {})
    assert both.state is alone.state is TrialState.INFEASIBLE
    assert both.cost_model_calls == fits.cost_model_calls + alone.cost_model_calls + 1
    crowded = evaluate(config(WeightedWorkload(spec=SMALL)), {"acc.size": "1 B"})
    assert crowded.state is TrialState.INFEASIBLE
    assert crowded.cost_model_calls > 2  # to find what comes closest to fitting


def test_a_design_over_its_area_costs_no_mapping_search() -> None:
    asked = config(WeightedWorkload(spec=SMALL))
    missed = evaluate(replace(asked, constraints=(limit("area", 1e-3),)), {})
    met = evaluate(asked, {})
    assert missed.cost_model_calls == 1 < met.cost_model_calls
    assert missed.metrics is None
    assert missed.reason.startswith("area: needs ")
    for key in ("latency_ps", "energy_pj"):
        assert 0 < missed.objectives[key] <= met.objectives[key]


def test_a_limit_on_a_result_is_known_only_after_mapping() -> None:
    asked = config(WeightedWorkload(spec=SMALL))
    latency = evaluate(asked, {}).objectives["latency_ps"]
    missed = evaluate(replace(asked, constraints=(limit("latency", latency / 2),)), {})
    assert missed.state is TrialState.INFEASIBLE
    assert missed.constraints["latency"] == pytest.approx(1)
    assert missed.metrics is not None


def test_a_design_on_which_nothing_fits_says_which_memory_and_how_much() -> None:
    """The array's columns cannot hold a single partial sum of 32 bits in 1 byte."""
    outcome = evaluate(config(WeightedWorkload(spec=SMALL)), {"acc.size": "1 B"})
    assert outcome.state is TrialState.INFEASIBLE
    assert "acc" in outcome.reason
    assert outcome.constraints[FITS] > 0
    assert outcome.objectives["latency_ps"] > 0


def test_a_data_type_that_no_unit_has_leaves_no_objectives() -> None:
    outcome = evaluate(config(WeightedWorkload(spec="gemm:M=8,N=8,K=8,dtype=fp32")), {})
    assert outcome.state is TrialState.INFEASIBLE
    assert outcome.objectives == {}
    assert "fp32" in outcome.reason


CONV = "conv2d:N=1,C=8,H=14,K=16,R=3,stride=1,dtype=int8"
FUSING = "attention:heads=2,head=16,seq=32"
#: Which hardware, and whether operators are fused on one core.
WAYS = [("edge_npu", False), ("edge_npu", True), ("quad_core", False), ("quad_core", True)]


def on(arch: str, spec: str, *, fusion: bool, **changes: Any) -> SearchConfig:
    mapping = MappingSettings(objective="edp", method="exact", budget=1, fusion=fusion)
    base = load_architecture(arch).document
    return config(WeightedWorkload(spec=spec), arch=arch, base=base, mapping=mapping, **changes)


@pytest.mark.parametrize("overrides", [{}, {"array.rows": 4}, {"dram.bandwidth": "1 GB/s"}])
@pytest.mark.parametrize("spec", [SMALL, CONV, FUSING])
@pytest.mark.parametrize(("arch", "fusion"), WAYS)
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_no_mapping_beats_the_least_costs(
    spec: str, overrides: dict[str, Any], arch: str, fusion: bool, fidelity: str
) -> None:
    workload, architecture = load_workload(spec), load_architecture(arch, overrides)
    least = least_costs(workload, architecture, fidelity, fused=fusion)
    outcome = evaluate(on(arch, spec, fusion=fusion, fidelity=fidelity), overrides)
    assert 0 < least.latency_ps <= outcome.objectives["latency_ps"]
    assert 0 < least.energy_pj <= outcome.objectives["energy_pj"]


def test_a_design_that_cannot_be_is_recorded_with_what_no_schedule_beats() -> None:
    """Else a sampler learns that it is slower than what fusion makes of a sound design."""
    plain = on("edge_npu", FUSING, fusion=True)
    asked = replace(plain, constraints=(limit("latency", 300_000),))
    sound, crowded = evaluate(asked, {}), evaluate(asked, {"acc.size": "1 B"})
    assert (sound.state, crowded.state) == (TrialState.COMPLETE, TrialState.INFEASIBLE)
    assert crowded.objectives["latency_ps"] <= sound.objectives["latency_ps"]
    assert crowded.objectives["energy_pj"] <= sound.objectives["energy_pj"]
    assert crowded.constraints["latency"] <= 0 < crowded.constraints[FITS]


def test_violations_are_relative_and_every_broken_limit_is_named() -> None:
    limits = (limit("area", 2.0), limit("power", 1.0), limit("latency", 1e9))
    totals = {"area_mm2": 3.0, "power_w": 0.5, "latency_ps": 2e9}
    assert violations(limits, totals) == {"area": 0.5, "power": -0.5, "latency": 1.0}
    assert violations(limits, {"area_mm2": 1.0}) == {"area": -0.5}
    said = broken(limits, totals)
    assert said == "area: needs 3 mm2, allowed 2 mm2; latency: needs 2 ms, allowed 1 ms"


def test_the_quick_search_runs_for_real_and_alike_with_two_workers(tmp_path: Path) -> None:
    asked = load_search("quick")
    one = search(SearchRun(config=asked, run_dir=tmp_path / "one"))
    two = search(SearchRun(config=asked, run_dir=tmp_path / "two", workers=2))
    assert (one.start, one.trials) == (two.start, two.trials)
    assert len(one.pareto()) > 1
    assert len(one.trials) == asked.trials
