"""A made-up search with the shape of a real one: closed-form models, about a hundred trials.

The numbers come from simple arithmetic (not from ``sim``), so that the report can be checked
without running a search; layers are those of ResNet-18 at 224 x 224.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arch.load import load_architecture
from dse.config import (
    Constraint,
    MappingSettings,
    SamplerSettings,
    SearchConfig,
    WeightedWorkload,
)
from dse.pareto import non_dominated
from dse.quantities import QUANTITIES
from dse.space import Parameter, Point, Space
from dse.study import Study
from dse.trial import Trial, TrialState

WORKLOAD = "resnet18"
KIB = 1024

#: name, output channels, input channels, output height, kernel size
LAYERS = (
    ("conv1", 64, 3, 112, 7),
    *((f"layer1.{b}.conv{c}", 64, 64, 56, 3) for b in (0, 1) for c in (1, 2)),
    ("layer2.0.conv1", 128, 64, 28, 3),
    ("layer2.0.conv2", 128, 128, 28, 3),
    ("layer2.0.downsample", 128, 64, 28, 1),
    *((f"layer2.1.conv{c}", 128, 128, 28, 3) for c in (1, 2)),
    ("layer3.0.conv1", 256, 128, 14, 3),
    ("layer3.0.conv2", 256, 256, 14, 3),
    ("layer3.0.downsample", 256, 128, 14, 1),
    *((f"layer3.1.conv{c}", 256, 256, 14, 3) for c in (1, 2)),
    ("layer4.0.conv1", 512, 256, 7, 3),
    ("layer4.0.conv2", 512, 512, 7, 3),
    ("layer4.0.downsample", 512, 256, 7, 1),
    *((f"layer4.1.conv{c}", 512, 512, 7, 3) for c in (1, 2)),
    ("fc", 1000, 512, 1, 1),
)

SPACE = Space(
    parameters=(
        Parameter(
            path="array.rows",
            values=(8, 12, 16, 24, 32, 48),
            ordered=True,
            ties=("array.cols",),
        ),
        Parameter(
            path="gbuf.size",
            values=tuple(f"{n} KiB" for n in (64, 96, 128, 192, 256, 384, 512, 768, 1024)),
            ordered=True,
        ),
        Parameter(
            path="gbuf.read_bandwidth",
            values=tuple(f"{n} B/cycle" for n in (16, 32, 64, 128)),
            ordered=True,
        ),
        Parameter(
            path="dram.bandwidth",
            values=tuple(f"{n} B/cycle" for n in (8, 16, 32)),
            ordered=True,
        ),
        Parameter(
            path="array.dataflow",
            values=("weight_stationary", "output_stationary", "input_stationary"),
            ordered=False,
        ),
    )
)
BASE: dict[str, Any] = {
    "array.rows": 16,
    "array.cols": 16,
    "gbuf.size": "256 KiB",
    "gbuf.read_bandwidth": "32 B/cycle",
    "dram.bandwidth": "16 B/cycle",
    "array.dataflow": "weight_stationary",
}
AREA_LIMIT_MM2 = 1.5


def _number(text: Any) -> float:
    return float(str(text).split()[0])


def _layer(layer: tuple[str, int, int, int, int], o: Mapping[str, Any]) -> dict[str, Any]:
    name, k, c, p, r = layer
    macs = k * c * p * p * r * r
    rows = o["array.rows"]
    lanes = c * (r if o["array.dataflow"] == "input_stationary" else 1)
    filled = min(1.0, lanes / rows) * min(1.0, k / rows)
    buffer = _number(o["gbuf.size"]) * KIB / 2
    weights, inputs, outputs = k * c * r * r, c * (p * (2 if p < 112 else 1)) ** 2, k * p * p
    refetch = max(1.0, min(weights, inputs) / buffer) ** 0.5
    traffic = int((weights + inputs) * refetch + outputs)
    reuse = {"weight_stationary": 1.0, "output_stationary": 1.25, "input_stationary": 0.9}
    near = int(macs / rows * 1.4 * reuse[o["array.dataflow"]])
    busy = {
        "dram": traffic / _number(o["dram.bandwidth"]) * 1000,
        "gbuf": near / _number(o["gbuf.read_bandwidth"]) * 1000,
        "array": macs / (rows * rows * filled) * 1000,
    }
    energy = {"dram": traffic * 64.0, "gbuf": near * (0.6 + buffer / 4e5), "array": macs * 0.32}
    bound = max(busy, key=lambda n: busy[n])
    return {
        "name": name,
        "latency_ps": int(busy[bound]) + 20_000,
        "energy_pj": sum(energy.values()),
        "bound_by": bound,
        "busy": {n: int(b) for n, b in busy.items()},
        "energy": energy,
        "bytes": {"dram": traffic, "gbuf": near, "array": 0},
        "mapping": {
            "calls": 4000,
            "optimal": r != 7,
            "lower_bound": busy[bound] * 0.97,
            "gap": 0.0 if r != 7 else 0.031,
        },
    }


def metrics(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The document of one workload, as ``dse simulate --json`` would print it."""
    o = {**BASE, **overrides}
    layers = [_layer(layer, o) for layer in LAYERS]
    latency = sum(layer["latency_ps"] for layer in layers)
    size = _number(o["gbuf.size"])
    area = 0.09 + 0.0011 * o["array.rows"] ** 2 + 0.0021 * size
    area += 0.001 * _number(o["gbuf.read_bandwidth"]) + 0.006 * _number(o["dram.bandwidth"])
    dynamic = sum(layer["energy_pj"] for layer in layers)
    energy = dynamic + area * 0.02 * latency
    components = {
        name: {
            "busy_ps": sum(layer["busy"][name] for layer in layers),
            "energy_pj": sum(layer["energy"][name] for layer in layers)
            + (energy - dynamic if name == "array" else 0.0),
            "read_bytes": sum(layer["bytes"][name] for layer in layers),
            "write_bytes": 0,
            "utilization": sum(layer["busy"][name] for layer in layers) / latency,
        }
        for name in ("dram", "gbuf", "array")
    }
    return {
        "latency_ps": latency,
        "energy_pj": energy,
        "dynamic_energy_pj": dynamic,
        "area_mm2": area,
        "power_w": energy / latency,
        "macs": 1_814_073_344,
        "fidelity": "analytical",
        "memory": {"gbuf": int(size * KIB * 0.9)},
        "components": components,
        "operators": [
            {key: layer[key] for key in ("name", "latency_ps", "energy_pj", "bound_by", "mapping")}
            for layer in layers
        ],
    }


def trial(number: int, overrides: Mapping[str, Any], limit: float = AREA_LIMIT_MM2) -> Trial:
    """What an evaluation would record."""
    document = metrics(overrides)
    objectives = {key: float(document[key]) for key in ("latency_ps", "energy_pj", "area_mm2")}
    objectives["power_w"] = document["power_w"]
    objectives["edp_js"] = objectives["latency_ps"] * objectives["energy_pj"] * 1e-24
    o = {**BASE, **overrides}
    needs = 40 * KIB * o["array.rows"] / 8
    room = _number(o["gbuf.size"]) * KIB
    short = needs / room - 1
    area = objectives["area_mm2"]
    violation = area / limit - 1
    reason = f"area: needs {area:.4g}, allowed {limit} (mm2)" if violation > 0 else ""
    if short > 0:
        reason = f"gbuf: needs {needs:,.6g}, allowed {room:,.6g} (bytes, conv1)"
    return Trial(
        number=number,
        overrides=overrides,
        state=TrialState.INFEASIBLE if reason else TrialState.COMPLETE,
        reason=reason,
        objectives=objectives,
        constraints={"area": violation, **({"fits": short} if short > 0 else {})},
        metrics=None if short > 0 else {WORKLOAD: document},
        fidelity="analytical",
        seed=7,
        cost_model_calls=84_000,
        seconds=1.5,
        config_hash="0f3a9c12",
        version="0.1.0",
        sampler_state={},
    )


def config(
    objectives: tuple[str, ...] = ("latency", "energy", "area"),
    trials: int = 100,
    limit: float = AREA_LIMIT_MM2,
) -> SearchConfig:
    area = QUANTITIES["area"]
    return SearchConfig(
        name="demo",
        description="ResNet-18 on an edge accelerator",
        workloads=(WeightedWorkload(spec=WORKLOAD),),
        arch="edge_npu",
        base=load_architecture("edge_npu").document,
        space=SPACE,
        mapping=MappingSettings(objective="edp", method="exact", budget=1),
        objectives=tuple(QUANTITIES[name] for name in objectives),
        constraints=(Constraint(quantity=area, limit=limit, text=f"<= {limit} mm2"),),
        fidelity="analytical",
        sampler=SamplerSettings(name="bayes"),
        trials=trials,
        batch=1,
        seed=7,
        text="name: demo\nworkload: resnet18\narch: edge_npu\n# <b>not markup</b> & more\n",
    )


def study(
    run_dir: Path,
    count: int = 100,
    *,
    objectives: tuple[str, ...] = ("latency", "energy", "area"),
    limit: float = AREA_LIMIT_MM2,
    stopped: str = "budget",
) -> Study:
    """A search that first samples at random and then around its front, like a Bayesian one."""
    settings = config(objectives, trials=100, limit=limit)
    generator = np.random.default_rng(7)
    keys = [o.key for o in settings.objectives]
    trials: list[Trial] = []
    seen: set[Point] = set()
    while len(trials) < count:
        point = _suggest(generator, trials, keys)
        if point not in seen:
            seen.add(point)
            trials.append(trial(len(trials) + 1, SPACE.overrides(point), limit))
    return Study(
        config=settings,
        start=trial(0, BASE, limit),
        trials=tuple(trials),
        run_dir=run_dir,
        stopped=stopped,
        workloads={},
    )


def _suggest(generator: np.random.Generator, trials: list[Trial], keys: list[str]) -> Point:
    feasible = [t for t in trials if t.feasible]
    if len(trials) < 16 or not feasible or generator.random() < 0.25:
        return SPACE.sample(generator)
    front = non_dominated(feasible, keys)
    point = list(SPACE.point(front[int(generator.integers(len(front)))].overrides))
    for _ in range(int(generator.integers(1, 3))):
        axis = int(generator.integers(len(point)))
        step = int(generator.choice([-1, 1]))
        point[axis] = min(max(point[axis] + step, 0), len(SPACE.parameters[axis].values) - 1)
    return tuple(point)
