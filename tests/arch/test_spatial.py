"""Family spatial: do the components have the numbers that the file and arithmetic say?"""

from __future__ import annotations

import itertools

import pytest

from arch.families.spatial import Dram, PeArray, Registers, Sram, VectorUnit
from arch.load import load_architecture
from arch.spec import Architecture, Compute, Intrinsic, Memory

EDGE = load_architecture("edge_npu")


def intrinsic(architecture: Architecture, name: str) -> Intrinsic:
    component = architecture.component(name)
    assert isinstance(component, Compute)
    return component.intrinsics[0]


def memory(architecture: Architecture, name: str) -> Memory:
    component = architecture.component(name)
    assert isinstance(component, Memory)
    return component


def test_kinds_become_their_types_in_order() -> None:
    kinds = [type(component) for component in EDGE.components]
    assert kinds == [Dram, Sram, Registers, Registers, PeArray, VectorUnit]
    assert [m.name for m in EDGE.memories] == ["dram", "gbuf", "acc", "wreg"]


@pytest.mark.parametrize(
    ("dataflow", "rows", "cols"),
    [
        ("weight_stationary", ("k",), ("n",)),
        ("output_stationary", ("m",), ("n",)),
        ("input_stationary", ("k",), ("m",)),
        ("free", ("m", "n", "k", "b"), ("m", "n", "k", "b")),
    ],
)
def test_a_dataflow_says_what_an_axis_may_unroll(
    dataflow: str, rows: tuple[str, ...], cols: tuple[str, ...]
) -> None:
    axes = intrinsic(EDGE.with_overrides({"array.dataflow": dataflow}), "array").axes
    assert [(a.name, a.size) for a in axes] == [("rows", 16), ("cols", 16)]
    assert (axes[0].dim_classes, axes[1].dim_classes) == (rows, cols)


@pytest.mark.parametrize(
    ("per", "axes", "count"),
    [
        ("chip", (), 1),
        ("row", ("rows",), 8),
        ("column", ("cols",), 4),
        ("pe", ("rows", "cols"), 32),
    ],
)
def test_registers_are_one_instance_per_place(per: str, axes: tuple[str, ...], count: int) -> None:
    changed = EDGE.with_overrides({"array.rows": 8, "array.cols": 4, "acc.per": per})
    acc = memory(changed, "acc")
    assert (acc.replicated_over, acc.count, acc.serves) == (axes, count, "array")
    assert acc.read_bytes_per_s == count * 4 * 10**9  # of all instances together
    assert acc.size_bytes == 1024  # of one


@pytest.mark.parametrize(
    ("interconnect", "rows", "cols", "pipeline", "cycles"),
    [
        ("systolic", 16, 16, 1, 31),
        ("systolic", 256, 256, 0, 510),
        ("systolic", 1, 1, 3, 3),
        ("broadcast", 16, 16, 2, 2),
    ],
)
def test_latency_of_a_tile_is_its_skew_and_the_pipeline(
    interconnect: str, rows: int, cols: int, pipeline: int, cycles: int
) -> None:
    array = {"rows": rows, "cols": cols, "interconnect": interconnect, "mac_pipeline": pipeline}
    changed = EDGE.with_overrides({f"array.{key}": value for key, value in array.items()})
    assert intrinsic(changed, "array").latency_ps == cycles * 1000
    assert intrinsic(changed, "array").interval_ps == 1000


@pytest.mark.parametrize(
    ("clock", "period_ps"), [("1 GHz", 1000), ("200 MHz", 5000), ("700 MHz", 1429), ("3 GHz", 333)]
)
def test_one_step_is_one_clock_period(clock: str, period_ps: int) -> None:
    assert intrinsic(EDGE.with_overrides({"clock": clock}), "array").interval_ps == period_ps


def test_bytes_per_cycle_follow_the_clock_and_bytes_per_second_do_not() -> None:
    faster = EDGE.with_overrides({"clock": "2 GHz", "gbuf.read_bandwidth": "40 GB/s"})
    assert memory(faster, "dram").read_bytes_per_s == 32 * 10**9
    assert memory(faster, "gbuf").read_bytes_per_s == 40 * 10**9


def test_dram_has_one_bus_and_the_buffer_two_ports() -> None:
    assert memory(EDGE, "dram").shared_port
    assert not memory(EDGE, "gbuf").shared_port
    assert memory(EDGE, "wreg").read_bytes_per_s is None


def test_a_wider_type_costs_more_and_a_narrow_one_beside_it_nothing() -> None:
    def energy(dtypes: list[str]) -> float:
        return intrinsic(EDGE.with_overrides({"array.dtypes": dtypes}), "array").energy_pj

    assert energy(["int16"]) > energy(["int8"])
    assert energy(["int8", "int16"]) == energy(["int16"])


def test_area_and_leakage_are_the_sum_of_instances() -> None:
    assert EDGE.area_mm2 == pytest.approx(sum(c.area_mm2 * c.count for c in EDGE.components))
    explicit = EDGE.with_overrides(
        {"gbuf.area": "1 mm2", "acc.area": "0.1 mm2", "wreg.area": 0, "array.area": "0.001 mm2"}
        | {"vector.area": "0.01 mm2", "acc.leakage": "1 uW", "wreg.leakage": "1 uW"}
        | {"gbuf.leakage": "1 mW", "array.leakage": "1 uW", "vector.leakage": 0}
    )
    assert explicit.area_mm2 == pytest.approx(1 + 16 * 0.1 + 256 * 0.001 + 16 * 0.01)
    assert explicit.leakage_w == pytest.approx(16e-6 + 256e-6 + 1e-3 + 256e-6)


@pytest.mark.parametrize("path", ["gbuf.size", "acc.size"])
def test_a_larger_memory_is_never_cheaper(path: str) -> None:
    name = path.partition(".")[0]
    sizes = [EDGE.with_overrides({path: f"{kib} KiB"}) for kib in (1, 2, 3, 5, 8, 64, 100, 2048)]
    for small, large in itertools.pairwise(sizes):
        assert small.area_mm2 < large.area_mm2
        assert small.leakage_w < large.leakage_w
        assert memory(small, name).read_pj_per_byte < memory(large, name).read_pj_per_byte
        assert memory(small, name).write_pj_per_byte < memory(large, name).write_pj_per_byte


def test_corners_bracket_the_nominal_design() -> None:
    low, high = (EDGE.with_overrides({"corner": corner}) for corner in ("low", "high"))
    assert low.area_mm2 < EDGE.area_mm2 < high.area_mm2
    assert low.leakage_w < EDGE.leakage_w < high.leakage_w
    mac = [intrinsic(a, "array").energy_pj for a in (low, EDGE, high)]
    assert mac == sorted(mac)
    assert mac[0] < mac[2]
    assert memory(low, "gbuf").read_pj_per_byte < memory(EDGE, "gbuf").read_pj_per_byte


def test_explicit_values_are_the_same_at_every_corner() -> None:
    ws16 = load_architecture("ws16")
    assert ws16.with_overrides({"corner": "high"}) == ws16
