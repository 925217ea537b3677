"""Energy, area, leakage and access time by technology node, as estimates with a range.

Between published points everything is log-log interpolation (a straight line on logarithmic
axes), so a curve is monotone where its points are; beyond the ends of a table in size the last
segment goes on. Nodes outside 7 to 65 nm are an error. Where sources differ, an ``Estimate``
carries the lowest and the highest of them; an architecture's ``corner`` chooses which to use.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from arch import technology_data as data
from arch.datatypes import BITS, accumulator_of

MIN_NODE_NM = data.MIN_NODE_NM
MAX_NODE_NM = data.MAX_NODE_NM
DRAM_TYPES = tuple(data.DRAM_PJ_PER_BIT)
CORNERS = ("low", "nominal", "high")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the lowest and highest that the sources give."""

    nominal: float
    low: float
    high: float

    def at(self, corner: str) -> float:
        return {"low": self.low, "nominal": self.nominal, "high": self.high}[corner]

    def times(self, factor: float) -> Estimate:
        return Estimate(self.nominal * factor, self.low * factor, self.high * factor)


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)


def _of_sources(nominal: float, others: Iterable[float]) -> Estimate:
    values = (nominal, *others)
    return Estimate(nominal, min(values), max(values))


def interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    """Log-log interpolation; beyond the ends the line of the last segment goes on."""
    upper = min(max(bisect_right([point[0] for point in points], x), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[upper - 1], points[upper]
    if x == x0:
        return y0
    return y0 * math.pow(x / x0, math.log(y1 / y0) / math.log(x1 / x0))


def _by_node(values: Mapping[int, float], node_nm: int) -> float:
    _check_node(node_nm)
    return interpolate(sorted(values.items()), node_nm)


def _check_node(node_nm: int) -> None:
    if not MIN_NODE_NM <= node_nm <= MAX_NODE_NM:
        raise ValueError(f"no data for {node_nm} nm; allowed {MIN_NODE_NM} to {MAX_NODE_NM} nm")


@lru_cache(maxsize=4096)
def _sram(node_nm: int, size_bytes: int, column: str, scaling: float) -> float:
    """A column of the SRAM table at a node and size; below 22 nm scaled by ``node ** scaling``."""
    _check_node(node_nm)
    at_nodes = {
        node: interpolate(
            [(point.size_bytes, getattr(point, column)) for point in points], size_bytes
        )
        for node, points in data.SRAM.items()
    }
    if node_nm >= data.CACTI_MIN_NM:
        return _by_node(at_nodes, node_nm)
    smallest = data.CACTI_MIN_NM
    return at_nodes[smallest] * math.pow(node_nm / smallest, scaling)


def _width(points: Sequence[tuple[float, float]], word_bits: int) -> float:
    """The factor of a port width; outside the table that of its nearest end."""
    return interpolate(points, min(max(word_bits, points[0][0]), points[-1][0]))


def _flavours(pj: float, node_nm: int) -> Estimate:
    """The spread of an SRAM's energy over transistor flavours."""
    covered = max(node_nm, data.CACTI_MIN_NM)
    lop, hp = _by_node(data.SRAM_LOP_ENERGY, covered), _by_node(data.SRAM_HP_ENERGY, covered)
    return _of_sources(pj, (pj * lop, pj * hp))


def sram_read_pj_per_byte(node_nm: int, size_bytes: int, word_bits: int) -> Estimate:
    per_byte = _sram(node_nm, size_bytes, "read_pj", 0.5) / 8
    return _flavours(per_byte * _width(data.READ_BY_WIDTH, word_bits), node_nm)


def sram_write_pj_per_byte(node_nm: int, size_bytes: int, word_bits: int) -> Estimate:
    per_byte = _sram(node_nm, size_bytes, "write_pj", 0.5) / 8
    return _flavours(per_byte * _width(data.WRITE_BY_WIDTH, word_bits), node_nm)


def sram_area_mm2(node_nm: int, size_bytes: int) -> Estimate:
    """Width and banks are left out: in CACTI they change the area by less than 15 %."""
    return _exact(_sram(node_nm, size_bytes, "area_mm2", 1.0))


def sram_leakage_w(node_nm: int, size_bytes: int) -> Estimate:
    """Low-standby-power cells; the high end is high-performance cells."""
    covered = max(node_nm, data.CACTI_MIN_NM)
    fins = data.FIN_LEAKAGE if node_nm < data.CACTI_MIN_NM else 1.0
    watts = _sram(node_nm, size_bytes, "leakage_w", 0.5) * fins
    return _of_sources(watts, (watts * _by_node(data.SRAM_HP_LEAKAGE, covered),))


def sram_access_ps(node_nm: int, size_bytes: int) -> int:
    return round(_sram(node_nm, size_bytes, "access_ps", 1.0))


def register_pj_per_byte(node_nm: int, size_bytes: int) -> Estimate:
    """A flip-flop or, if that costs more, a read of the small SRAM that a register file is."""
    flop = _by_node(data.REGISTER_PJ_PER_BYTE, node_nm)
    macro = sram_read_pj_per_byte(node_nm, size_bytes, 64)
    return Estimate(max(flop, macro.nominal), max(flop, macro.low), max(flop, macro.high))


def register_area_mm2(node_nm: int, size_bytes: int) -> Estimate:
    """Flip-flops, or the small SRAM that is smaller from a few dozen bytes on.

    The flip-flop's bit area is scaled between nodes as the same source's int8 product is.
    """
    scale = _by_node(data.ALADDIN_INT8_MAC_UM2, node_nm) / data.ALADDIN_INT8_MAC_UM2[45]
    flops = 8 * size_bytes * data.REGISTER_UM2_PER_BIT * scale * 1e-6
    smallest = data.SRAM[data.CACTI_MIN_NM][0].size_bytes
    return _exact(min(flops, sram_area_mm2(node_nm, max(size_bytes, smallest)).nominal))


def mac_pj(node_nm: int, dtypes: Sequence[str]) -> Estimate:
    """A product and its addition to a sum. The widest multiplier of a unit switches, whatever
    narrower type it is given.
    """
    estimates = [_mac_pj(node_nm, dtype) for dtype in dtypes]
    return max(estimates, key=attrgetter("nominal"))


def _mac_pj(node_nm: int, dtype: str) -> Estimate:
    product, total = data.MULTIPLY_PJ[dtype], data.ADD_PJ[accumulator_of(dtype)]
    nominal = _by_node(product, node_nm) + _by_node(total, node_nm)
    scaled = (product[45] + total[45]) * _by_node(data.STILLMAKER_ENERGY, node_nm)
    others = [scaled]
    if dtype == "int8":
        others.append(_by_node(data.ALADDIN_INT8_MAC_PJ, node_nm))
    if dtype == "fp8":
        others.append(data.FP8_AGAINST_INT8 * _mac_pj(node_nm, "int8").nominal)
    return _of_sources(nominal, others)


def vector_op_pj(node_nm: int, dtypes: Sequence[str]) -> Estimate:
    """A lane's operation: the multiplier of its narrowest type, the adder of its widest."""
    narrow, wide = _extremes(dtypes)
    product, total = data.MULTIPLY_PJ[narrow], data.ADD_PJ[wide]
    nominal = _by_node(product, node_nm) + _by_node(total, node_nm)
    scaled = (product[45] + total[45]) * _by_node(data.STILLMAKER_ENERGY, node_nm)
    return _of_sources(nominal, (scaled,))


def _extremes(dtypes: Sequence[str]) -> tuple[str, str]:
    ordered = sorted(dtypes, key=lambda dtype: BITS[dtype])
    return ordered[0], ordered[-1]


def mac_area_mm2(node_nm: int, dtypes: Sequence[str]) -> Estimate:
    estimates = [_logic_mm2(node_nm, dtype, accumulator_of(dtype)) for dtype in dtypes]
    return max(estimates, key=attrgetter("nominal"))


def vector_lane_area_mm2(node_nm: int, dtypes: Sequence[str]) -> Estimate:
    return _logic_mm2(node_nm, *_extremes(dtypes))


def _logic_mm2(node_nm: int, multiplier: str, adder: str) -> Estimate:
    """A multiplier and an adder: in proportion to an int8 multiply-accumulate of Aladdin; the
    low end is Horowitz' areas, scaled; the high end the price of a faster clock.
    """
    parts = data.MULTIPLY_UM2[multiplier] + data.ADD_UM2[adder]
    int8 = data.MULTIPLY_UM2["int8"] + data.ADD_UM2["int32"]
    nominal = _by_node(data.ALADDIN_INT8_MAC_UM2, node_nm) * parts / int8
    scaled = parts * _by_node(data.STILLMAKER_AREA, node_nm)
    return _of_sources(nominal, (scaled, nominal * data.FAST_MAC_AREA)).times(1e-6)


def logic_leakage_w(area_mm2: float) -> Estimate:
    return _exact(data.LOGIC_LEAKAGE_W_PER_MM2 * area_mm2)


def dram_pj_per_byte(dram_type: str) -> Estimate:
    return Estimate(*data.DRAM_PJ_PER_BIT[dram_type]).times(8)
