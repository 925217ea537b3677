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
