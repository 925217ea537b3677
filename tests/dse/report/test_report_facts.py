"""Are the facts of a report what the study's numbers say?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import pytest
from evidence_stub import evidence
from synthetic_study import BASE, SPACE, WORKLOAD, study, trial

from dse.pareto import non_dominated
from dse.report import display
from dse.report.confidence import Verdict
from dse.report.convergence import convergence
from dse.report.data import gather
from dse.report.designs import baseline, compromise, recommended
from dse.report.explain import Comparison, why
from dse.report.figures.layers import MOST_LAYERS, layer_rows
from dse.report.figures.timeline import busy_ports
from dse.report.importance import importance
from dse.report.layers import component_sum, layers, pairs, time_by_bound, utilization
from dse.report.limits import infeasible_reasons, margins, memory_margins
from dse.study import Study


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return study(tmp_path_factory.mktemp("run"))


def product(candidate: object, keys: tuple[str, ...]) -> float:
    return math.prod(candidate.objectives[k] for k in keys)  # type: ignore[attr-defined]


def test_compromise_has_the_least_product_of_objectives(searched: Study) -> None:
    keys = searched.objective_keys
    chosen = compromise(searched.pareto(), keys)
    assert product(chosen, keys) == min(product(t, keys) for t in searched.feasible)


def test_compromise_does_not_depend_on_units(searched: Study) -> None:
    def scaled(t):
        return dataclasses.replace(t, objectives={k: v * 1e-9 for k, v in t.objectives.items()})

    keys = searched.objective_keys
    front = searched.pareto()
    assert compromise([scaled(t) for t in front], keys).number == compromise(front, keys).number


def test_recommended_has_each_role_once_and_equals_the_study_best(searched: Study) -> None:
    keys = searched.objective_keys
    designs = recommended(searched.feasible, keys)
    by_key = {role.key: d.trial for d in designs for role in d.roles}
    assert set(by_key) == {None, *keys}
    assert {key: by_key[key].number for key in keys} == {
        key: searched.best(key).number for key in keys
    }
    assert len({d.trial.number for d in designs}) == len(designs)


def test_hypervolume_history_never_falls_and_ends_above_where_it_began(searched: Study) -> None:
    progress = convergence(searched)
    history = progress.history
    assert len(history) == len(searched.trials) + 1
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(history))
    assert 0 < history[0] < history[-1] <= 1


def test_reached_at_is_the_first_trial_at_99_percent(searched: Study) -> None:
    progress = convergence(searched)
    goal = 0.99 * progress.history[-1]
    assert progress.history[progress.reached_at] >= goal
    assert progress.history[progress.reached_at - 1] < goal


def test_changes_are_those_of_a_study_without_its_last_fifth(searched: Study) -> None:
    shorter = dataclasses.replace(searched, trials=searched.trials[:80])
    keys = searched.objective_keys
    before = {r: d.trial.number for d in recommended(shorter.feasible, keys) for r in d.roles}
    after = {r: d.trial.number for d in recommended(searched.feasible, keys) for r in d.roles}
    changed = {c.role: (c.before.number, c.after.number) for c in convergence(searched).changes}
    assert changed == {r: (before[r], after[r]) for r in after if before[r] != after[r]}
    assert changed, "the synthetic study is meant to change an answer late"


def test_layers_add_up_to_the_objectives(searched: Study) -> None:
    chosen = searched.pareto()[0]
    found = layers(searched.config, chosen)
    assert sum(layer.latency_ps for layer in found) == chosen.objectives["latency_ps"]
    assert sum(time_by_bound(searched.config, chosen).values()) == pytest.approx(
        chosen.objectives["latency_ps"]
    )
    assert sum(component_sum(searched.config, chosen, "energy_pj").values()) == pytest.approx(
        chosen.objectives["energy_pj"]
    )


def test_weights_multiply_layers(searched: Study) -> None:
    (workload,) = searched.config.workloads
    doubled = dataclasses.replace(
        searched.config, workloads=(dataclasses.replace(workload, weight=2.0),)
    )
    once = layers(searched.config, searched.start)
    twice = layers(doubled, searched.start)
    assert [b.latency_ps for b in twice] == [2 * a.latency_ps for a in once]
    assert utilization(doubled, searched.start) == pytest.approx(
        utilization(searched.config, searched.start)
    )


def test_pairs_are_empty_when_the_start_was_not_simulated(searched: Study) -> None:
    bare = dataclasses.replace(searched.start, metrics=None)
    assert pairs(searched.config, bare, searched.pareto()[0]) == ()
    assert baseline(dataclasses.replace(searched, start=bare), "latency_ps") is None
    assert baseline(dataclasses.replace(searched, start=bare), "area_mm2") is not None


def test_reasons_count_every_infeasible_trial(searched: Study) -> None:
    reasons = infeasible_reasons(searched)
    infeasible = sum(not t.feasible for t in searched.trials)
    assert sum(r.count for r in reasons) == infeasible > 0
    assert [r.count for r in reasons] == sorted((r.count for r in reasons), reverse=True)


def test_margin_is_the_unused_part_of_the_limit(searched: Study) -> None:
    (margin,) = margins(searched.config.constraints, searched.start)
    assert margin.share == pytest.approx(1 - searched.start.objectives["area_mm2"] / 1.5)
    (gbuf,) = memory_margins(searched.start, searched.config.architecture({}))
    assert gbuf.limit == 256 * 1024
    assert gbuf.share == pytest.approx(0.1, abs=1e-4)


def test_importance_finds_the_parameter_that_decides(tmp_path: Path) -> None:
    """Area is 0.0021 per KiB of buffer and 0.0011 per processing element in the made-up model."""
    results = {r.key: r for r in importance(study(tmp_path))}
    area = {p.path: p for p in results["area_mm2"].parameters}
    assert {p.path for p in results["area_mm2"].parameters[:2]} == {"gbuf.size", "array.rows"}
    assert area["gbuf.size"].direction > 0
    assert area["array.dataflow"].direction is None
    assert area["array.dataflow"].drop < 0.1 * area["gbuf.size"].drop
    assert results["area_mm2"].r2 > 0.5


def test_importance_needs_enough_trials(searched: Study) -> None:
    """Those that were not simulated, whose objectives are bounds, do not count."""
    simulated = [t for t in searched.trials if t.metrics is not None]
    bounds = [t for t in searched.trials if t.metrics is None]
    assert bounds
    few = dataclasses.replace(searched, trials=(*simulated[:19], *bounds))
    assert importance(few) == ()
    assert len(importance(dataclasses.replace(searched, trials=tuple(simulated[:20])))) == 3


def test_findings_grade_what_they_say(searched: Study) -> None:
    facts = gather(searched, evidence(searched))
    verdicts = {f.topic: f.verdict for f in facts.findings}
    assert verdicts["Budget"] is Verdict.GOOD
    assert verdicts["Model agreement"] is Verdict.GOOD
    assert verdicts["Mapping"] is Verdict.FAIR
    short = dataclasses.replace(searched, trials=searched.trials[:30], stopped="interrupted")
    verdicts = {f.topic: f.verdict for f in gather(short, evidence(short)).findings}
    assert verdicts["Budget"] is Verdict.WEAK


def test_reasons_for_the_choice_name_the_bottleneck(searched: Study) -> None:
    facts = gather(searched, evidence(searched))
    text = dict(facts.why)
    bounds = time_by_bound(searched.config, searched.start)
    assert text["What limits"].startswith(f"Start: {max(bounds, key=bounds.get)} limits")
    assert "saved in all" in text["Time"]


def test_savings_of_many_small_layers_are_not_named(searched: Study) -> None:
    (document,) = searched.start.metrics.values()
    one = document["operators"][1]
    facts = gather(searched, evidence(searched))

    def of_many(original, latency_ps):
        operators = [{**one, "name": f"l{i}", "latency_ps": latency_ps} for i in range(100)]
        return dataclasses.replace(
            original, metrics={WORKLOAD: {**original.metrics[WORKLOAD], "operators": operators}}
        )

    start, chosen = of_many(searched.start, 200), of_many(facts.chosen, 100)
    comparison = Comparison(
        study=dataclasses.replace(searched, start=start),
        chosen=chosen,
        pairs=pairs(searched.config, start, chosen),
        before=facts.base,
        after=facts.base,
    )
    assert dict(why(comparison))["Time"] == (
        "10 ns saved in all; it is spread over 100 layers. No layer became slower."
    )


def test_front_is_the_studys(searched: Study) -> None:
    facts = gather(searched, evidence(searched))
    expected = non_dominated(searched.feasible, searched.objective_keys)
    assert {t.number for t in facts.front} == {t.number for t in expected}


def test_point_of_every_trial_is_in_the_space(searched: Study) -> None:
    assert all(SPACE.overrides(SPACE.point(t.overrides)) == t.overrides for t in searched.trials)
    assert trial(0, BASE).metrics[WORKLOAD]["latency_ps"] > 0


@pytest.mark.parametrize(
    ("key", "number", "text"),
    [
        ("latency_ps", 2.5e9, "2.5 ms"),
        ("latency_ps", 12_300_000, "12.3 µs"),
        ("energy_pj", 3_200_000, "3.2 µJ"),
        ("area_mm2", 1.25, "1.25 mm²"),
        ("edp_js", 0.002, "0.002 J·s"),
    ],
)
def test_values_have_typeset_units(key: str, number: float, text: str) -> None:
    assert display.value(key, number) == text


@pytest.mark.parametrize(
    ("start", "new", "text"),
    [
        (2.0, 1.0, "2.00× faster"),
        (1.0, 2.5, "2.50× slower"),
        (1.0, 1.004, "equal"),
        (1.0, 1.006, "0.6 % slower"),
        (1.0, 0.95, "5 % faster"),
        (1.0, 1.11, "1.11× slower"),
        (0.0, 0.0, "equal"),
        (30.0, 1.0, "30.0× faster"),
        (300.0, 1.0, "300× faster"),
    ],
)
def test_changes_are_ratios(start: float, new: float, text: str) -> None:
    assert display.change("latency_ps", start, new) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.00001, "< 0.01 %"),
        (0.0035, "0.35 %"),
        (0.12, "12 %"),
        (0.9965, "99.7 %"),
        (0.99999, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_percentages_never_round_a_part_to_nothing_or_all(share: float, text: str) -> None:
    assert display.percent(share) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (4096, "4,096"),
        (999_999, "999,999"),
        (1_814_073_344, "1.814 billion"),
        (11_689_512, "11.69 million"),
        (16_110_000_000, "16.11 billion"),
    ],
)
def test_counts_are_written_without_exponents(number: int, text: str) -> None:
    assert display.count(number) == text


def test_axis_unit_fits_the_largest_value() -> None:
    scale = display.axis_scale("latency_ps", [5e6, 2e9])
    assert scale.label == "Latency (ms)"
    assert scale.apply([2e9]) == [2.0]


def test_layer_rows_beyond_the_longest_are_summed_not_dropped(searched: Study) -> None:
    facts = gather(searched, evidence(searched))
    many = [dataclasses.replace(p) for p in facts.pairs * 3]
    rows = layer_rows(many)
    assert len(rows) == MOST_LAYERS + 1
    assert rows[-1].name == f"{len(many) - MOST_LAYERS} other layers"
    assert sum(r.start_ps for r in rows) == sum(p.start.latency_ps for p in many)
    assert sum(r.chosen_ps for r in rows) == sum(p.chosen.latency_ps for p in many)


def test_busy_shares_conserve_busy_time(searched: Study) -> None:
    slices = evidence(searched).timeline
    operators = [s for s in slices if s.group == "operators"]
    ports = [s for s in slices if s.group == "ports"]
    end = operators[-1].start_ps + operators[-1].duration_ps
    for port, share in busy_ports(ports, operators).items():
        busy = sum(s.busy_ps for s in ports if s.track == port)
        assert share.sum() * end / len(share) == pytest.approx(busy)
