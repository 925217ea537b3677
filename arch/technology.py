"""Energy, area and leakage by technology node, with the source of each number.

Only published or tool-made points are stored; everything between is log-log interpolation
(a straight line between points on logarithmic axes), so every curve is monotone if its points
are. Nodes outside the tables are an error, never an extrapolation.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

KIB = 1024

#: SRAM at 22 nm, 64-bit port: (capacity in bytes, read pJ, write pJ per 64-bit access).
#: CACTI 7 as packaged in hwcomponents-cacti 1.0.40 (itrs-hp defaults of that package).
SRAM_22NM_64BIT = (
    (1 * KIB, 0.380, 0.785),
    (8 * KIB, 1.59, 1.77),
    (64 * KIB, 5.67, 4.43),
    (256 * KIB, 11.858, 8.825),
    (1024 * KIB, 23.5, 17.5),
    (8192 * KIB, 60.0, 54.0),
    (32768 * KIB, 120.0, 108.0),
)


@dataclass(frozen=True, slots=True)
class SramNode:
    """A 256 KiB SRAM with a 64-bit port at one node."""

    read_pj: float
    write_pj: float
    area_mm2: float
    leakage_w: float


#: The same tool and version; 22, 45 and 65 nm are CACTI itself, 28 nm its interpolation,
#: 7 and 16 nm that package's scaling of 22 nm (energy by sqrt of the node, area by the node).
SRAM_256KIB: Mapping[int, SramNode] = {
    7: SramNode(6.689, 4.978, 0.0717, 0.0158e-3),
    16: SramNode(10.112, 7.526, 0.1639, 0.0238e-3),
    22: SramNode(11.858, 8.825, 0.2253, 0.0354e-3),
    28: SramNode(20.84, 16.33, 0.3771, 0.0205e-3),
    45: SramNode(44.72, 38.49, 0.8721, 0.0067e-3),
    65: SramNode(100.58, 73.10, 1.7440, 0.0396e-3),
}

#: Factors on the energy per byte against a 64-bit port, by port width in bits. CACTI points:
#: 1 KiB at 32 bit (0.304/0.451 pJ), 256 KiB at 128 (17.8/15.3) and 512 bit (50.7/53.9).
READ_FACTOR = (
    (32, 0.304 * 2 / 0.380),
    (64, 1.0),
    (128, 17.8 / 2 / 11.858),
    (512, 50.7 / 8 / 11.858),
)
WRITE_FACTOR = (
    (32, 0.451 * 2 / 0.785),
    (64, 1.0),
    (128, 15.3 / 2 / 8.825),
    (512, 53.9 / 8 / 8.825),
)

MIN_NODE_NM = min(SRAM_256KIB)
MAX_NODE_NM = max(SRAM_256KIB)


def interpolate(points: tuple[tuple[float, float], ...], x: float) -> float:
    """Log-log interpolation; beyond the ends the line of the last segment goes on."""
    xs = [point[0] for point in points]
    upper = min(max(bisect_right(xs, x), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[upper - 1], points[upper]
    slope = math.log(y1 / y0) / math.log(x1 / x0)
    return y0 * math.pow(x / x0, slope)


def _by_node(values: Mapping[int, float], node_nm: int) -> float:
    if not MIN_NODE_NM <= node_nm <= MAX_NODE_NM:
        raise ValueError(f"no data for {node_nm} nm; allowed {MIN_NODE_NM} to {MAX_NODE_NM} nm")
    return interpolate(tuple(sorted(values.items())), node_nm)


def _clamped(points: tuple[tuple[float, float], ...], x: float) -> float:
    return interpolate(points, min(max(x, points[0][0]), points[-1][0]))


def sram_read_pj_per_byte(node_nm: int, size_bytes: int, word_bits: int = 64) -> float:
    at_22 = interpolate(tuple((size, read) for size, read, _ in SRAM_22NM_64BIT), size_bytes) / 8
    scale = _by_node({n: s.read_pj for n, s in SRAM_256KIB.items()}, node_nm)
    return at_22 * scale / SRAM_256KIB[22].read_pj * _clamped(READ_FACTOR, word_bits)


def sram_write_pj_per_byte(node_nm: int, size_bytes: int, word_bits: int = 64) -> float:
    at_22 = interpolate(tuple((size, write) for size, _, write in SRAM_22NM_64BIT), size_bytes) / 8
    scale = _by_node({n: s.write_pj for n, s in SRAM_256KIB.items()}, node_nm)
    return at_22 * scale / SRAM_256KIB[22].write_pj * _clamped(WRITE_FACTOR, word_bits)


def sram_area_mm2(node_nm: int, size_bytes: int) -> float:
    """Proportional to the capacity (the rule of the same tool for depth)."""
    per_256_kib = _by_node({n: s.area_mm2 for n, s in SRAM_256KIB.items()}, node_nm)
    return per_256_kib * size_bytes / (256 * KIB)


def sram_leakage_w(node_nm: int, size_bytes: int) -> float:
    """Proportional to the capacity (the rule of the same tool for depth)."""
    per_256_kib = _by_node({n: s.leakage_w for n, s in SRAM_256KIB.items()}, node_nm)
    return per_256_kib * size_bytes / (256 * KIB)


#: Flip-flop register, energy per byte and access: Aladdin's 8-bit register in
#: hwcomponents-library 1.0.58.
REGISTER_PJ_PER_BYTE = {7: 0.0078, 22: 0.024, 45: 0.083}
#: Flip-flop area per byte: Aladdin's 5.98 um2 a bit at 45 nm, scaled by the area ratios that
#: the same library's 8-bit multiply-accumulate shows between nodes (986, 247, 58 um2).
REGISTER_UM2_PER_BYTE = {45: 47.8, 22: 47.8 * 247 / 986, 7: 47.8 * 58 / 986}


def register_pj_per_byte(node_nm: int, size_bytes: int) -> float:
    """A flip-flop, or the small SRAM that a larger register file is, if that costs more."""
    flop = _by_node(REGISTER_PJ_PER_BYTE, node_nm)
    return max(flop, sram_read_pj_per_byte(node_nm, size_bytes))


def register_area_mm2(node_nm: int, size_bytes: int) -> float:
    return _by_node(REGISTER_UM2_PER_BYTE, node_nm) * size_bytes * 1e-6


#: Multiply-accumulate (product plus 32-bit sum), pJ. 45 nm: Horowitz, ISSCC 2014 (unverified
#: copy of figure 1.1.9); 7 nm: Jouppi et al., ISCA 2021 (unverified copy of table 2). int4 and
#: int16 by the slope of those tables between 8 and 32 bits (multiplier ~ bits^1.98).
MAC_PJ: Mapping[str, Mapping[int, float]] = {
    "int4": {45: 0.151, 7: 0.046},
    "int8": {45: 0.30, 7: 0.10},
    "int16": {45: 0.89, 7: 0.35},
    "int32": {45: 3.2, 7: 1.51},
    "fp8": {45: 0.60, 7: 0.20},
    "bf16": {45: 1.58, 7: 0.59},
    "fp16": {45: 2.0, 7: 0.72},
    "fp32": {45: 4.6, 7: 1.69},
}
#: Area of an int8 multiply-accumulate, um2: Aladdin's in hwcomponents-library 1.0.58.
MAC_INT8_UM2 = {45: 986.0, 22: 247.0, 7: 58.0}
#: Area against int8 (multiplier plus adder areas at 45 nm of Horowitz, ISSCC 2014, unverified).
MAC_AREA_FACTOR = {
    "int4": 0.49,
    "int8": 1.0,
    "int16": 2.7,
    "int32": 8.7,
    "fp8": 2.0,
    "bf16": 12.0,
    "fp16": 13.9,
    "fp32": 28.4,
}
#: Leakage of logic, W per mm2: 32.5 uW for a multiply-accumulate of 1288 um2 (SAED 32 nm,
#: Design Compiler reports published with arXiv 2503.06342); taken for every node.
LOGIC_LEAKAGE_W_PER_MM2 = 32.5e-6 / 1288e-6


def mac_pj(node_nm: int, dtypes: tuple[str, ...]) -> float:
    """The widest multiplier of the unit switches, whatever narrower type it is given."""
    return max(_by_node(MAC_PJ[dtype], node_nm) for dtype in dtypes)


def mac_area_mm2(node_nm: int, dtypes: tuple[str, ...]) -> float:
    int8 = _by_node(MAC_INT8_UM2, node_nm) * 1e-6
    return int8 * max(MAC_AREA_FACTOR[dtype] for dtype in dtypes)


def logic_leakage_w(area_mm2: float) -> float:
    return LOGIC_LEAKAGE_W_PER_MM2 * area_mm2


#: Off-chip access, pJ per bit. ddr3, ddr4, hbm2, gddr6: Jouppi et al., ISCA 2021 (unverified);
#: lpddr4: common accelerator of published tool comparisons (CACTI-IO class, 7-8 pJ/bit).
DRAM_PJ_PER_BIT: Mapping[str, float] = {
    "lpddr4": 8.0,
    "ddr3": 30.0,
    "ddr4": 20.3,
    "gddr6": 6.5,
    "hbm2": 3.97,
    "hbm3": 3.59,
}
