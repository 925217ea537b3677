"""Searches over microcontrollers: boards and planners as parameters, SRAM as an objective."""

from __future__ import annotations

from pathlib import Path

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from dse.evaluate import PointEvaluator
from dse.load_config import load_search
from dse.trial import TrialState
from mapper.memory_plan.mcu import plan_on
from mapper.workload.load import load_workload

SEARCH = """
name: small
workloads: [mlperf_ad]
arch: {arch}
parameters: {parameters}
objectives: [latency, {objective}]
trials: 4
"""


def _search(folder: Path, **form: str):  # type: ignore[no-untyped-def]
    file = folder / "small.yaml"
    file.write_text(SEARCH.format(**form), encoding="utf-8")
    return load_search(file)


def test_a_board_as_an_override_is_that_board() -> None:
    """Conservation: everything of the other board, and what else is overridden."""
    start, other = load_architecture("stm32f746"), load_architecture("stm32u575")
    assert start.with_overrides({"board": "stm32u575"}) == other
    assert start.with_overrides({"board": "stm32f746"}) == start
    changed = start.with_overrides({"board": "stm32u575", "software.planner": "tflm"})
    assert changed == other.with_overrides({"software.planner": "tflm"})


@pytest.mark.parametrize("board", ["edge_npu", "stm32f999"])
def test_only_boards_are_boards(board: str) -> None:
    with pytest.raises(InputError, match="unknown board"):
        load_architecture("stm32f746").with_overrides({"board": board})


def test_sram_is_what_the_plan_needs(tmp_path: Path) -> None:
    """Differential: the objective and the plan itself, on two boards by two planners."""
    parameters = (
        "{board: {choices: [stm32f746, stm32u575]}, software.planner: {choices: [tflm, optimal]}}"
    )
    config = _search(tmp_path, arch="stm32f746", parameters=parameters, objective="ram")
    network = load_workload("mlperf_ad")
    evaluate = PointEvaluator(config=config, workloads={"mlperf_ad": network})
    for point in config.space.points():
        overrides = config.space.overrides(point)
        outcome = evaluate(overrides)
        plan = plan_on(network, config.architecture(overrides))
        assert outcome.state is TrialState.COMPLETE
        assert outcome.objectives["ram_bytes"] == plan.peak_bytes


def test_what_does_not_fit_still_says_how_much_it_needs(tmp_path: Path) -> None:
    """Both sides of a gate: SRAM of exactly the plan, and the next smaller size that is allowed."""
    config = _search(
        tmp_path,
        arch="stm32f746",
        parameters="{sram.size: {choices: [1 KiB, 8 KiB]}}",
        objective="ram",
    )
    network = load_workload("mlperf_kws")
    evaluate = PointEvaluator(config=config, workloads={"mlperf_ad": network})
    small, large = (evaluate({"sram.size": size}) for size in ("1 KiB", "8 KiB"))
    assert small.objectives["ram_bytes"] == large.objectives["ram_bytes"]
    fits = large.objectives["ram_bytes"] <= 8192
    assert (small.state, large.state) == (
        TrialState.INFEASIBLE,
        TrialState.COMPLETE if fits else TrialState.INFEASIBLE,
    )


def test_sram_is_known_of_microcontrollers_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'ram' is known of microcontrollers only"):
        _search(
            tmp_path,
            arch="edge_npu",
            parameters="{array.rows: {choices: [8, 16]}}",
            objective="ram",
        )


def test_the_shipped_search_is_sound() -> None:
    config = load_search("vww_board")
    assert config.space.size == 80
    assert config.objective_keys == ("latency_ps", "energy_pj", "ram_bytes")


FAMILY = """
name: family
workloads: ["mlperf_ad", "mlperf_kws"]
arch: stm32f746
parameters:
  workload: {choices: ["mlperf_kws", "mlperf_ad"]}
  software.planner: {choices: [tflm, vmcu]}
objectives: [size, ram]
trials: 4
"""


def test_each_design_runs_the_workload_that_it_chose(tmp_path: Path) -> None:
    """Closed form: size is the inverse of the network's multiply-accumulates, and only its."""
    file = tmp_path / "family.yaml"
    file.write_text(FAMILY, encoding="utf-8")
    config = load_search(file)
    networks = {w.spec: load_workload(w.spec) for w in config.workloads}
    evaluate = PointEvaluator(config=config, workloads=networks)
    for spec, network in networks.items():
        outcome = evaluate({"workload": spec, "software.planner": "vmcu"})
        assert outcome.metrics is not None
        assert list(outcome.metrics) == [spec]
        assert outcome.objectives["per_gmac"] == pytest.approx(1e9 / network.macs)
    assert list(evaluate({}).metrics or ()) == ["mlperf_ad"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('choices: ["mlperf_kws", "mlperf_ad"]', 'choices: ["mlperf_ic"]', "unknown workload"),
        ('choices: ["mlperf_kws", "mlperf_ad"]', "range: [1, 2]", "must be a list of choices"),
        ('  workload: {choices: ["mlperf_kws", "mlperf_ad"]}\n', "", "'size' is the same"),
        ("[size, ram]\n", '[ram]\nconstraints: {size: "<= 3"}\n', "'size' is an objective only"),
    ],
)
def test_what_is_wrong_with_a_family_is_said(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "family.yaml"
    assert old in FAMILY
    file.write_text(FAMILY.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_search(file)
