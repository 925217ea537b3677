"""Is a network between buffer and array timed as its closed form says, and does it contend?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from arch import catalog
from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Architecture
from mapper.cost import Metrics
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price
from tests.conformance.suite import FamilyConformance

NOC: dict[str, Any] = {
    "kind": "noc",
    "source": "gbuf",
    "topology": "mesh",
    "rows": 4,
    "cols": 4,
    "link_bandwidth": "8 B/cycle",
    "hop_latency": "2 cycle",
    "energy": "0.05 pJ/B",
}


def meshed(folder: Path, **changes: Any) -> Architecture:
    """``edge_npu`` with a network behind its buffer."""
    document = yaml.safe_load(catalog.find("arch", "edge_npu").read_text())
    document["name"] = "meshed"
    items = list(document["components"].items())
    items.insert(2, ("noc", NOC | changes))
    document["components"] = dict(items)
    path = folder / "meshed.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_architecture(str(path))


def metrics_of(architecture: Architecture, spec: str, fidelity: str = "event") -> Metrics:
    workload = load_workload(spec)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    return cost_model(fidelity).evaluate(workload, architecture, mappings)


SPEC = "gemm:M=64,N=64,K=64"


def test_the_entrance_carries_what_the_buffer_reads_and_is_written(tmp_path: Path) -> None:
    """Conservation: with multicast every bit enters once, and returns once."""
    components = metrics_of(meshed(tmp_path), SPEC).components
    from_dram = 2 * 64 * 64  # both inputs are written into the buffer once
    assert components["noc_in"].read_bytes + 64 * 64 == components["gbuf"].read_bytes
    assert components["noc_in"].write_bytes == components["gbuf"].write_bytes - from_dram


def test_a_slow_network_is_the_bottleneck_and_takes_its_closed_form(tmp_path: Path) -> None:
    slow = metrics_of(meshed(tmp_path, link_bandwidth="1 B/cycle"), SPEC)
    assert slow.operators[0].bound_by == "noc_in"
    entrance = slow.components["noc_in"]
    cycles = max(entrance.read_bytes, entrance.write_bytes)
    assert entrance.busy_ps == 1000 * cycles
    assert metrics_of(meshed(tmp_path), SPEC).latency_ps < slow.latency_ps


def test_hops_and_packets_delay_what_arrives_last(tmp_path: Path) -> None:
    """Seven hops of a mesh of 4 x 4; stored packets of 64 B take 8 cycles on six of them."""
    quick = metrics_of(meshed(tmp_path, hop_latency="0 cycle"), SPEC).latency_ps
    wormhole = metrics_of(meshed(tmp_path), SPEC).latency_ps
    stored = metrics_of(meshed(tmp_path, switching="store_and_forward"), SPEC).latency_ps
    assert wormhole == quick + 7 * 2000
    assert stored == wormhole + 6 * 8000


def test_multicast_saves_copies_and_energy(tmp_path: Path) -> None:
    once = metrics_of(meshed(tmp_path), SPEC).components
    copied = metrics_of(meshed(tmp_path, multicast=False), SPEC).components
    assert copied["noc_in"].read_bytes > once["noc_in"].read_bytes
    assert copied["noc_in"].write_bytes == once["noc_in"].write_bytes
    assert copied["noc_in"].energy_pj > once["noc_in"].energy_pj


def test_energy_is_per_byte_and_link(tmp_path: Path) -> None:
    for name, part in metrics_of(meshed(tmp_path), SPEC).components.items():
        if name.startswith("noc_"):
            links = 4 if name.startswith("noc_y") else 1
            moved = part.read_bytes + part.write_bytes
            assert math.isclose(part.energy_pj, links * moved * 0.05, rel_tol=0.02)


def test_the_area_is_that_of_all_nodes_or_said_to_be_missing(tmp_path: Path) -> None:
    unknown = meshed(tmp_path)
    known = meshed(tmp_path, area="0.02 mm2")
    assert unknown.without_area == metrics_of(unknown, SPEC).area_without == ("noc",)
    assert known.without_area == metrics_of(known, SPEC).area_without == ()
    assert known.area_mm2 == pytest.approx(unknown.area_mm2 + 16 * 0.02)


@pytest.mark.parametrize("topology", ["crossbar", "mesh", "ring"])
def test_the_models_are_ordered(tmp_path: Path, topology: str) -> None:
    architecture = meshed(tmp_path, topology=topology, link_bandwidth="2 B/cycle")
    found = [metrics_of(architecture, SPEC, f) for f in ("roofline", "analytical", "event")]
    latencies = [m.latency_ps for m in found]
    assert latencies == sorted(latencies)
    assert len({m.dynamic_energy_pj for m in found}) == 1
    assert sum(found[2].gap.values()) == latencies[2] - latencies[1]


def test_a_network_starts_at_the_innermost_buffer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be 'gbuf', the innermost sram"):
        meshed(tmp_path, source="dram")
    with pytest.raises(InputError, match="topology"):
        meshed(tmp_path, topology="mash")


def test_what_would_have_no_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"noc.packet: is a size for 'switching: store"):
        meshed(tmp_path, packet="32 B")
    with pytest.raises(InputError, match=r"noc.rows: 64 is more than the array has"):
        meshed(tmp_path, rows=64)
    assert meshed(tmp_path, packet="32 B", switching="store_and_forward")


class TestMesh(FamilyConformance):
    architecture = "mesh_npu"
