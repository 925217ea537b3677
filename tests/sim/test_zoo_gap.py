"""On whole networks: is the event model never below the analytical one, and why is it above?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from mapper.search.network import map_workload
from mapper.workload import zoo
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price

PLAIN: dict[str, str] = {}
TIMED = {"dram.timing": "hbm2_8ch", "dram.bandwidth": "auto"}


def check(network: str, arch: str, overrides: dict[str, str]) -> None:
    workload, architecture = load_workload(network), load_architecture(arch, overrides)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    quick = cost_model("analytical").evaluate(workload, architecture, mappings)
    careful = cost_model("event").evaluate(workload, architecture, mappings)
    for one, other in zip(quick.operators, careful.operators, strict=True):
        assert one.latency_ps <= other.latency_ps, other.name
        assert sum(other.gap.values()) == other.latency_ps - one.latency_ps, other.name
        assert all(ps > 0 for ps in other.gap.values()), other.name
    assert sum(careful.gap.values()) == careful.latency_ps - quick.latency_ps


@pytest.mark.parametrize("overrides", [PLAIN, TIMED], ids=["plain", "timed"])
@pytest.mark.parametrize("network", ["resnet18:image=64", "gpt2-medium:layers=1,seq=32"])
def test_small_networks(network: str, overrides: dict[str, str]) -> None:
    check(network, "edge_npu", overrides)


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [PLAIN, TIMED], ids=["plain", "timed"])
@pytest.mark.parametrize("network", zoo.names())
def test_every_network_of_the_zoo(network: str, overrides: dict[str, str]) -> None:
    check(network, "edge_npu", {**overrides, "dram.size": "1 TiB"})
