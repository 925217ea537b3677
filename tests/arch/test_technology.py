"""Technology table: is it monotone, does it hit its sources, does it refuse what it has not?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch import technology as tech
from arch import technology_data as data
from arch.units import parse_size

NODES = st.integers(tech.MIN_NODE_NM, tech.MAX_NODE_NM)
SIZES = st.integers(16, 1 << 30)
SRAM_CURVES = {
    "read": lambda node, size: tech.sram_read_pj_per_byte(node, size, 64),
    "write": lambda node, size: tech.sram_write_pj_per_byte(node, size, 64),
    "area": tech.sram_area_mm2,
    "leakage": tech.sram_leakage_w,
}


@pytest.mark.parametrize("curve", SRAM_CURVES)
@given(node=NODES, sizes=st.tuples(SIZES, SIZES))
def test_a_larger_sram_costs_more(curve: str, node: int, sizes: tuple[int, int]) -> None:
    small, large = (SRAM_CURVES[curve](node, size) for size in sorted(sizes))
    assert 0 < small.nominal <= large.nominal
    assert sizes[0] == sizes[1] or small.nominal < large.nominal


@pytest.mark.parametrize("curve", ["read", "write", "area"])
@given(size=SIZES, nodes=st.tuples(NODES, NODES))
def test_a_finer_node_costs_less(curve: str, size: int, nodes: tuple[int, int]) -> None:
    fine, coarse = (SRAM_CURVES[curve](node, size) for node in sorted(nodes))
    assert fine.nominal <= coarse.nominal


@given(node=NODES, sizes=st.tuples(SIZES, SIZES))
def test_registers_are_monotone_too(node: int, sizes: tuple[int, int]) -> None:
    small, large = sorted(sizes)
    for curve in (tech.register_pj_per_byte, tech.register_area_mm2):
        assert curve(node, small).nominal <= curve(node, large).nominal


@given(node=NODES, size=SIZES, word=st.integers(8, 2048))
def test_a_range_holds_its_nominal_value(node: int, size: int, word: int) -> None:
    estimates = [
        *(curve(node, size) for curve in SRAM_CURVES.values()),
        tech.sram_read_pj_per_byte(node, size, word),
        tech.register_pj_per_byte(node, size),
        *(tech.mac_pj(node, [dtype]) for dtype in data.MULTIPLY_PJ),
        *(tech.mac_area_mm2(node, [dtype]) for dtype in data.MULTIPLY_PJ),
        tech.vector_op_pj(node, ["int8", "int32"]),
        *(tech.dram_pj_per_byte(kind) for kind in tech.DRAM_TYPES),
    ]
    for estimate in estimates:
        assert 0 < estimate.low <= estimate.nominal <= estimate.high
        corners = [estimate.at(corner) for corner in tech.CORNERS]
        assert corners == [estimate.low, estimate.nominal, estimate.high]


# hwcomponents-cacti 1.0.40 with its own build of CACTI: SRAM(width=64, size=...), read and write
# energy in pJ. It interpolates 28 nm linearly, we on logarithmic axes.
@pytest.mark.parametrize(
    ("node", "size", "read", "write", "tolerance"),
    [
        (22, "1 KiB", 0.380, 0.785, 0.002),
        (22, "8 KiB", 1.59, 1.77, 0.002),
        (22, "64 KiB", 5.67, 4.43, 0.002),
        (22, "256 KiB", 11.858, 8.825, 0.0002),
        (22, "1 MiB", 23.5, 17.5, 0.002),
        (22, "8 MiB", 60.0, 54.0, 0.002),
        (22, "32 MiB", 120.0, 108.0, 0.004),
        (7, "256 KiB", 6.689, 4.978, 0.0002),
        (16, "256 KiB", 10.112, 7.526, 0.0002),
        (28, "256 KiB", 20.84, 16.33, 0.05),
        (45, "256 KiB", 44.72, 38.49, 0.0002),
        (65, "256 KiB", 100.58, 73.10, 0.0002),
    ],
)
def test_sram_energy_equals_another_tools(
    node: int, size: str, read: float, write: float, tolerance: float
) -> None:
    size_bytes = parse_size(size)
    ours = tech.sram_read_pj_per_byte(node, size_bytes, 64).nominal * 8
    assert ours == pytest.approx(read, rel=tolerance)
    ours = tech.sram_write_pj_per_byte(node, size_bytes, 64).nominal * 8
    assert ours == pytest.approx(write, rel=tolerance)


# The same tool: area in mm2 and access time in ns of 256 KiB.
@pytest.mark.parametrize(
    ("node", "area", "access_ns", "tolerance"),
    [
        (7, 0.0717, 0.480, 0.002),
        (16, 0.1639, 1.097, 0.002),
        (22, 0.2253, 1.509, 0.002),
        (28, 0.3771, 1.797, 0.05),
        (45, 0.8721, 2.732, 0.002),
        (65, 1.7440, 3.556, 0.002),
    ],
)
def test_sram_area_and_time_equal_another_tools(
    node: int, area: float, access_ns: float, tolerance: float
) -> None:
    assert tech.sram_area_mm2(node, 256 << 10).nominal == pytest.approx(area, rel=tolerance)
    assert tech.sram_access_ps(node, 256 << 10) == pytest.approx(access_ns * 1e3, rel=tolerance)


# The same tool, 256 KiB at 22 nm with wider ports.
@pytest.mark.parametrize(("bits", "read", "write"), [(128, 17.8, 15.3), (512, 50.7, 53.9)])
def test_a_wider_port_costs_more_per_access_and_less_per_byte(
    bits: int, read: float, write: float
) -> None:
    size = 256 << 10
    ours = tech.sram_read_pj_per_byte(22, size, bits).nominal * bits / 8
    assert ours == pytest.approx(read, rel=0.005)
    ours = tech.sram_write_pj_per_byte(22, size, bits).nominal * bits / 8
    assert ours == pytest.approx(write, rel=0.005)
    assert (
        tech.sram_read_pj_per_byte(22, size, bits).nominal
        < tech.sram_read_pj_per_byte(22, size, 64).nominal
    )


# hwcomponents-library 1.0.58, AladdinIntMAC 8x8+32 bit: 1.154, 0.339, 0.109 pJ; and synthesis
# of the multiply-accumulate published with arXiv 2503.06342: 0.38 pJ (SAED 32 nm, 500 MHz).
def test_the_range_of_a_multiply_accumulate_holds_the_sources() -> None:
    for node, pj in ((45, 1.154), (22, 0.339), (7, 0.109), (32, 0.38)):
        estimate = tech.mac_pj(node, ["int8"])
        assert estimate.low <= pj <= estimate.high * 1.0001


@pytest.mark.parametrize("node", [0, 6, 66, 90, 22_000])
def test_no_node_is_extrapolated(node: int) -> None:
    for curve in SRAM_CURVES.values():
        with pytest.raises(ValueError, match="allowed 7 to 65 nm"):
            curve(node, 1024)
    with pytest.raises(ValueError, match="allowed 7 to 65 nm"):
        tech.mac_pj(node, ["int8"])


def test_interpolation_is_exact_at_points_and_a_power_law_between() -> None:
    points = [(1.0, 2.0), (4.0, 8.0), (16.0, 8.0)]
    assert [tech.interpolate(points, x) for x, _ in points] == pytest.approx([2.0, 8.0, 8.0])
    assert tech.interpolate(points, 2.0) == pytest.approx(4.0)
    assert tech.interpolate(points, 8.0) == pytest.approx(8.0)
    assert tech.interpolate(points, 0.5) == pytest.approx(1.0)
