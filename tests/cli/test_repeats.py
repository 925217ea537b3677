"""Operators of repeated layers share a row: nothing is lost, and only equals are joined."""

from __future__ import annotations

import re

from dse.cli.repeats import repeated
from mapper.cost import OperatorMetrics
from tests.cli.running import Dse


def operator(name: str, latency_ps: int = 5) -> OperatorMetrics:
    return OperatorMetrics(
        name=name, latency_ps=latency_ps, energy_pj=1.0, bound_by="dram", macs=2, components={}
    )


def test_layers_are_joined_by_their_index_where_they_cost_the_same() -> None:
    names = ["embed", *(f"layers.{i}.{part}" for i in range(12) for part in ("q", "k"))]
    costs = {"layers.3.q": 6, "layers.4.q": 6, "layers.10.k": 7}
    rows = repeated([operator(name, costs.get(name, 5)) for name in names], {})
    assert [(row.name, row.times, row.sample.latency_ps) for row in rows] == [
        ("embed", 1, 5),
        ("layers.0-2,5-11.q", 10, 5),
        ("layers.0-9,11.k", 11, 5),
        ("layers.3-4.q", 2, 6),
        ("layers.10.k", 1, 7),
    ]


def test_other_kinds_and_other_names_stay_apart() -> None:
    rows = repeated(
        [operator("layers.0.mix"), operator("layers.1.mix"), operator("layers.2.norm")],
        {"layers.0.mix": "attention", "layers.1.mix": "scan"},
    )
    assert [(row.name, row.times) for row in rows] == [
        ("layers.0.mix", 1),
        ("layers.1.mix", 1),
        ("layers.2.norm", 1),
    ]


def test_the_table_of_a_deep_network_adds_up(dse: Dse) -> None:
    done = dse(
        "simulate",
        *("--arch", "edge_npu", "--set", "dram.size=16 GiB"),
        *("--workload", "gpt3-1.3b:phase=decode,ctx=64", "--fidelity", "analytical"),
    )
    assert done.code == 0
    macs = [
        int(found.group(1).replace(",", ""))
        for line in done.out.splitlines()
        if (found := re.search(r"(?:matmul|attention_scores|attention_context) +([\d,]+) ", line))
    ]
    total = re.search(r"MACs +([\d,]+)", done.out)
    assert total is not None
    assert sum(macs) == int(total.group(1).replace(",", ""))
    assert "layers.0-23.attention.qkv " in done.out
    assert len(done.out.splitlines()) < 50
