"""Is every problem of a configuration found, said, and placed; and nothing else?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from arch.catalog import find, names
from arch.errors import InputError
from dse.load_config import load_search

GOOD: dict[str, Any] = {
    "name": "good",
    "workloads": ["gemm:M=8,N=8,K=8,dtype=int8"],
    "arch": "edge_npu",
    "parameters": {"array.rows": {"choices": [8, 16]}},
    "objectives": ["latency", "area"],
    "trials": 10,
}


def write(folder: Path, **changes: Any) -> Path:
    """The good configuration with changes (``None`` removes a key), one key a line."""
    data = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
    path = folder / "asked.yaml"
    lines = (
        f"{key}: {yaml.dump(v, default_flow_style=True, width=1000)}" for key, v in data.items()
    )
    path.write_text("\n".join(line.strip().removesuffix("...").strip() for line in lines) + "\n")
    return path


@pytest.mark.parametrize("name", names("search"))
def test_shipped_searches_are_sound(name: str) -> None:
    config = load_search(name)
    assert config.name == name
    assert config.space.size > 1


def test_the_shortest_configuration_and_its_defaults(tmp_path: Path) -> None:
    config = load_search(write(tmp_path))
    assert config.space.size == 2
    assert (config.sampler.name, config.fidelity) == ("bayes", "analytical")
    assert (config.mapping.objective, config.mapping.method) == ("edp", "exact")
    assert config.workloads[0].weight == 1


def test_limits_are_read_in_their_units(tmp_path: Path) -> None:
    limits = {"area": "<= 5 mm2", "power": "<= 2 W", "latency": "<= 20 ms", "edp": "<= 2 mJ*ms"}
    config = load_search(write(tmp_path, constraints=limits))
    assert {c.quantity.key: c.limit for c in config.constraints} == {
        "area_mm2": 5.0,
        "power_w": 2.0,
        "latency_ps": 20_000_000_000,
        "edp_js": 2e-6,
    }


def test_ties_follow_through_a_chain(tmp_path: Path) -> None:
    parameters = {
        "array.rows": {"choices": [8, 16]},
        "array.cols": {"tie": "array.rows"},
        "vector.lanes": {"tie": "array.cols"},
    }
    config = load_search(write(tmp_path, parameters=parameters))
    assert config.space.overrides((1,)) == dict.fromkeys(parameters, 16)


def test_the_hash_is_of_the_question_not_of_its_budget_or_name(tmp_path: Path) -> None:
    base = load_search(write(tmp_path))
    assert load_search(write(tmp_path, trials=99, name="other")).hash == base.hash
    for change in (
        {"seed": 5},
        {"batch": 3},
        {"objectives": ["latency"]},
        {"arch": "tiny"},
        {"sampler": {"name": "bayes", "startup": 12}},
        {"parameters": {"array.rows": {"choices": [8, 16, 32]}}},
        {"constraints": {"area": "<= 5 mm2"}},
    ):
        assert load_search(write(tmp_path, **change)).hash != base.hash


def test_an_architecture_beside_the_configuration_is_found(tmp_path: Path) -> None:
    text = find("arch", "edge_npu").read_text().replace("name: edge_npu", "name: mine")
    (tmp_path / "mine.yaml").write_text(text)
    assert load_search(write(tmp_path, arch="mine.yaml")).base["name"] == "mine"


@pytest.mark.parametrize(
    ("arch", "counts", "mapping"),
    [
        ("edge_npu", [2, 4], {"fusion": True}),
        ("quad_core", [2, 4], {}),
        ("edge_npu", [1], {"method": "random", "budget": 3}),
    ],
)
def test_designs_that_are_scheduled_alike_are_compared(
    tmp_path: Path, arch: str, counts: list[int], mapping: dict[str, Any]
) -> None:
    form = {"cores": {"choices": counts}}
    config = load_search(write(tmp_path, arch=arch, parameters=form, mapping=mapping))
    assert config.space.size == len(counts)


def parameter(form: Any, path: str = "gbuf.size") -> dict[str, Any]:
    return {"parameters": {path: form}}


BAD = [
    (
        {"arch": "quad_core", "parameters": {"cores": {"choices": [1, 4]}}},
        "parameters.cores: operators are fused on several cores.*fusion: true",
    ),
    (
        {"arch": "edge_npu", "parameters": {"cores": {"choices": [2, 4]}}},
        "parameters.cores: operators are fused on several cores.*fusion: true",
    ),
    (
        {"arch": "quad_core", "mapping": {"method": "random", "budget": 3}},
        "mapping.method: on several cores mappings are exact; leave out 'random'",
    ),
    (
        {"parameters": {"cores": {"choices": [1, 2]}}, "mapping": {"method": "genetic"}},
        "mapping.method: on several cores mappings are exact; leave out 'genetic'",
    ),
    ({"name": "a b"}, "name: 'a b' is not a name: letters, digits"),
    ({"arch": "edge_npv"}, "arch: .*did you mean 'edge_npu'"),
    ({"arch": None}, "arch: this required key is missing"),
    ({"workloads": []}, "workloads: "),
    ({"workloads": ["gemn:M=1"]}, "workloads.0: unknown workload 'gemn'.*did you mean"),
    ({"workloads": ["gemm:M=-1,N=1,K=1"]}, "workloads.0: .*M: -1"),
    (
        {"workloads": [{"workload": "gemv:M=1,K=1", "weight": 0}]},
        "workloads.0.weight: 0 is out of range; allowed more than 0",
    ),
    (
        {"workloads": [{"workload": "gemv:M=1,K=1", "weigth": 2}]},
        "workloads.0.weigth: .*did you mean 'weight'",
    ),
    ({"objectives": ["latency", "energi"]}, "objectives.1: .*did you mean 'energy'"),
    ({"objectives": ["latency", "latency"]}, "objectives: lists 'latency' more than once"),
    (
        {"workloads": ["gemv:M=1,K=1", {"workload": "gemv:M=1,K=1", "weight": 2}]},
        "workloads: lists 'gemv:M=1,K=1' more than once; give it a weight",
    ),
    ({"objectives": []}, "objectives: must not be empty"),
    ({"arch": "hbm2_8ch"}, "arch: 'hbm2_8ch' computes nothing"),
    ({"workloads": ["stream:bytes=1"]}, "workloads.0: workload 'stream': .*only dse simulate"),
    ({"workloads": ["streem:bytes=1"]}, "workloads.0: .*did you mean 'stream'"),
    ({"constraints": {"speed": "<= 1"}}, "constraints.speed: 'speed' is not allowed"),
    ({"constraints": {"area": ">= 1 mm2"}}, "constraints.area: expected an upper limit"),
    ({"constraints": {"area": "<= 1"}}, "constraints.area: .*no unit"),
    ({"constraints": {"area": "<= -1 mm2"}}, "constraints.area: .*above zero"),
    ({"constraints": {"power": "<= 2 V"}}, "constraints.power: unknown unit 'V'"),
    ({"sampler": "bayse"}, "sampler: unknown sampler 'bayse'.*did you mean 'bayes'"),
    ({"sampler": {"startup": 3}}, "sampler: has no name"),
    ({"sampler": {"name": "nsga2", "popul": 3}}, "sampler.popul: .*allowed population, crossover"),
    ({"sampler": {"name": "nsga2", "population": 1}}, "sampler.population: 1 is out of range"),
    ({"trials": 0}, "trials: 0 is out of range"),
    ({"trials": "many"}, "trials: .*got 'many'"),
    ({"batch": 2.5}, "batch: .*got 2.5"),
    ({"seed": -1}, "seed: -1 is out of range"),
    ({"fidelity": "exact"}, "fidelity: 'exact' is not allowed"),
    ({"mapping": {"objective": "area"}}, "mapping.objective: 'area' is not allowed"),
    ({"budget": 3}, "budget: unknown key 'budget'"),
    ({"parameters": {}}, "parameters: "),
    (parameter({"choices": [1]}, "gbuf.siz"), "gbuf.siz: .*did you mean 'gbuf.size'"),
    (parameter({"choices": ["1 KiB", "x"]}), "gbuf.size: .*'x'"),
    (parameter({"choices": ["1 KiB", "-1 KiB"]}), "gbuf.size: '-1 KiB' is negative"),
    (parameter({"choices": ["1 KiB", "9 PB"]}), "gbuf.size: '9 PB' is out of range"),
    (parameter({"choices": "1 KiB"}), "gbuf.size: 'choices' must be a list"),
    (parameter({"pow2": ["32 KiB", "96 KiB"]}), "gbuf.size: .*not '32 KiB' doubled"),
    (parameter({"range": ["2 MiB", "1 KiB"], "step": "1 KiB"}), "gbuf.size: is empty"),
    (parameter({"choices": ["1 KiB"], "step": 1}), "gbuf.size: 'step' goes with 'range'"),
    (parameter({"choices": ["1 KiB"], "pow2": [1, 2]}), "gbuf.size: must have exactly one"),
    (parameter({"choice": ["1 KiB"]}), "gbuf.size: unknown key 'choice'.*did you mean 'choices'"),
    (parameter({}), "gbuf.size: must have exactly one"),
    (parameter(["1 KiB"]), "gbuf.size: "),
    (parameter({"tie": "array.rows"}), "gbuf.size.tie: unknown parameter of this search"),
    (
        {"parameters": {"array.rows": {"tie": "array.cols"}, "array.cols": {"tie": "array.rows"}}},
        "array.cols.tie: is a circle: array.cols -> array.rows -> array.cols",
    ),
    (
        {"parameters": {"array.rows": {"choices": [8]}, "gbuf.size": {"tie": "array.rows"}}},
        "gbuf.size: 8 has no unit",
    ),
    (
        parameter({"choices": ["weight_stationary", "os"]}, "array.dataflow"),
        "array.dataflow: 'os' is",
    ),
]


@pytest.mark.parametrize(("changes", "said"), BAD)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(InputError, match=rf"(?m)^{path}:\d+: (parameters\.)?{said}") as caught:
        load_search(path)
    text = path.read_text().splitlines()
    for problem in caught.value.problems:
        assert problem.line is not None
        key = problem.where.partition(".")[0]
        assert key in text[problem.line - 1] or key not in path.read_text()


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path, trials=0, objectives=["energi"], seed=-1, parameters={"gbuf.siz": {"pow2": [1]}}
    )
    with pytest.raises(InputError) as caught:
        load_search(path)
    assert [p.where for p in caught.value.problems] == [
        "parameters.gbuf.siz",
        "objectives.0",
        "trials",
        "seed",
    ]


def test_one_mistake_is_said_once(tmp_path: Path) -> None:
    tied = {"array.rows": {"choices": [8, 0, "x"]}, "array.cols": {"tie": "array.rows"}}
    circle = {"array.rows": {"tie": "array.cols"}, "array.cols": {"tie": "array.rows"}}
    for parameters, count in ((tied, 2), (circle, 1)):
        with pytest.raises(InputError) as caught:
            load_search(write(tmp_path, parameters=parameters))
        assert len(caught.value.problems) == count


def test_values_that_are_allowed_singly_but_not_together_are_found(tmp_path: Path) -> None:
    """A rate per cycle falls below what a memory may have when the clock is slow too."""
    parameters = {
        "clock": {"choices": ["1 MHz", "1 GHz"]},
        "gbuf.read_bandwidth": {"choices": ["32 B/cycle", "128 B/cycle"]},
        "gbuf.write_bandwidth": {"choices": ["0.1 GB/s", "1 GB/s"]},
    }
    with pytest.raises(InputError, match="parameters"):
        load_search(write(tmp_path, parameters=parameters))
