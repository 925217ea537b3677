"""The shipped architectures: do they load, say where their numbers are from, and round-trip?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from arch import catalog
from arch.datatypes import datatype
from arch.load import dump_architecture, load_architecture
from arch.schema_json import json_schema
from arch.spec import ROLES, Architecture, Compute, Memory
from arch.strict_yaml import read

NAMES = catalog.names("arch")
#: Memories by themselves compute nothing.
COMPUTING = [
    name for name in NAMES if read(catalog.find("arch", name)).data["family"] != "dram_system"
]
#: A parameter that is a number other than zero.
NUMBER = re.compile(r" *(?!description)\w+: [1-9.]")
REQUIRED = {"eyeriss", "tpu_v1", "gemmini", "nvdla_small", "edge_npu", "ws16", "tiny"}


def test_the_architectures_of_the_documentation_are_there() -> None:
    assert set(NAMES) >= REQUIRED


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_description_and_sources(name: str) -> None:
    architecture = load_architecture(name)
    assert architecture.name == name
    assert architecture.description
    assert architecture.document["sources"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tiny"])
def test_every_number_has_its_source_beside_it(name: str) -> None:
    bare = [
        line
        for line in catalog.find("arch", name).read_text().splitlines()
        if NUMBER.match(line) and "#" not in line
    ]
    assert bare == []


@pytest.mark.parametrize("name", COMPUTING)
def test_whole_networks_can_run_on_it(name: str) -> None:
    architecture = load_architecture(name)
    operations = {o for c in architecture.computes for i in c.intrinsics for o in i.operations}
    assert operations >= {"mac", "add", "mul", "max", "mean", "copy", "activation"}
    assert operations >= {"softmax", "norm"}
    for role in ROLES:
        assert any(role in m.roles for m in architecture.memories[1:])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_back_to_an_equal_architecture(name: str, tmp_path: Path) -> None:
    architecture = load_architecture(name)
    path = tmp_path / f"{name}.yaml"
    path.write_text(dump_architecture(architecture))
    assert load_architecture(path) == architecture


def test_a_changed_design_is_written_under_its_own_name(tmp_path: Path) -> None:
    design = load_architecture("edge_npu", {"gbuf.size": "96 KiB", "array.rows": 12})
    path = tmp_path / "pareto_3.yaml"
    path.write_text(dump_architecture(design, name="pareto_3"))
    assert load_architecture(path) == replace(design, name="pareto_3")


@pytest.mark.parametrize("text", ["1e9", "true", "~", "yes", "a: b", "# no", "ünïcode", "'", "12"])
def test_any_text_survives_being_written(tmp_path: Path, text: str) -> None:
    tiny = load_architecture("tiny")
    document = {**tiny.document, "description": text, "name": "copy"}
    path = tmp_path / "copy.yaml"
    path.write_text(dump_architecture(replace(tiny, document=document)))
    assert load_architecture(path).description == text


@pytest.mark.parametrize("name", NAMES)
def test_the_published_schema_accepts_it(name: str) -> None:
    jsonschema.validate(read(catalog.find("arch", name)).data, json_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"clok": "1 GHz"},
        {"clock": 5},
        {"technology": 22},
        {"components": []},
        {"family": "other"},
    ],
)
def test_the_published_schema_refuses_what_the_loader_refuses(change: dict[str, object]) -> None:
    data = {**read(catalog.find("arch", "tiny")).data, **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())


def peak_macs_per_s(architecture: Architecture) -> float:
    array = architecture.computes[0].intrinsics[0]
    return array.axes[0].size * array.axes[1].size * architecture.clock_hz


# Jouppi et al., ISCA 2017: 92 TOPS of multiplies and adds; Chen et al., JSSC 2017: 168 PEs,
# 67.2 GOPS of multiplies and adds at 200 MHz.
@pytest.mark.parametrize(
    ("name", "peak", "tolerance"), [("tpu_v1", 92e12 / 2, 0.01), ("eyeriss", 33.6e9, 1e-9)]
)
def test_peak_rates_are_those_published(name: str, peak: float, tolerance: float) -> None:
    assert peak_macs_per_s(load_architecture(name)) == pytest.approx(peak, rel=tolerance)


def test_tpu_v1_buffers_and_bandwidth_are_those_published() -> None:
    tpu = load_architecture("tpu_v1")
    sizes = {m.name: m.size_bytes * m.count for m in tpu.memories}
    assert sizes["unified_buffer"] == 24 << 20
    assert sizes["accumulators"] == 4 << 20
    assert sizes["weight_fifo"] == 4 * 256 * 256
    unified = tpu.component("unified_buffer")
    assert isinstance(unified, Memory)
    assert unified.read_bytes_per_s is not None
    assert unified.read_bytes_per_s / 2**30 == pytest.approx(167, abs=0.5)


# Published silicon: TPU v1 under 331 mm2 (ISCA 2017), Eyeriss 12.25 mm2 of core (JSSC 2017),
# nv_small 0.55 mm2 at 16 nm (NVDLA primer). Ours has buffers and arithmetic only, so it is less.
@pytest.mark.parametrize(
    ("name", "area_mm2"), [("tpu_v1", 331.0), ("eyeriss", 12.25), ("nvdla_small", 0.55)]
)
def test_area_is_a_part_of_the_published_die(name: str, area_mm2: float) -> None:
    assert 0.1 * area_mm2 < load_architecture(name).area_mm2 < area_mm2


def test_ws16_is_what_the_other_tools_were_given() -> None:
    ws16 = load_architecture("ws16")
    found = {
        m.name: (m.size_bytes, m.read_bytes_per_s, m.write_bytes_per_s, m.double_buffered)
        for m in ws16.memories[1:]
    }
    giga = 10**9
    assert found == {
        "gb": (256 << 10, 32 * giga, 32 * giga, False),
        "acc": (1 << 10, 16 * 8 * giga, 16 * 8 * giga, False),
        "rf_w": (1 << 10, 256 * giga, 256 * giga, False),
    }
    energies = [(m.read_pj_per_byte, m.write_pj_per_byte) for m in ws16.memories]
    expected = [(64, 64), (11.858 / 8, 8.825 / 8), (0.304 / 4, 0.451 / 4), (0.10, 0.10)]
    assert energies == [pytest.approx(pair) for pair in expected]
    array = ws16.component("array")
    assert isinstance(array, Compute)
    assert array.intrinsics[0].energy_pj == 0.2
    assert array.intrinsics[0].latency_ps == 0
    assert ws16.memories[0].read_bytes_per_s == 16 * giga
    assert (ws16.area_mm2, ws16.leakage_w) == (0, 0)


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("edge_llm", {"bf16", "int4_g128"}),
        ("edge_llm", {"int8", "int4"}),
        ("edge_llm", {"int8", "ternary"}),
        ("dc_npu", {"mxfp4"}),
        ("dc_npu", {"bf16", "nvfp4"}),
        ("dc_npu", {"fp8"}),
    ],
)
def test_narrow_formats_have_an_architecture(name: str, dtypes: set[str]) -> None:
    """Operands of these formats are widened to one that the array computes in."""
    arrays = [i for c in load_architecture(name).computes for i in c.intrinsics if i.axes]
    offered = {dtype for i in arrays if "mac" in i.operations for dtype in i.dtypes}
    assert any(all(datatype(dtype).fits_in(datatype(wide)) for dtype in dtypes) for wide in offered)
