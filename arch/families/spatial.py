"""Family ``spatial``: DRAM, shared SRAM buffers, and a 2-D array of processing elements.

The array's dataflow says which loops its rows and columns may unroll. Registers belong to the
chip, to each row or column, or to each processing element. A vector unit does what is not a
contraction (additions, pooling, softmax).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arch import technology
from arch.datatypes import datatype
from arch.dram_device import DramDevice
from arch.errors import InputError
from arch.families.dram_system import device_named
from arch.families.spatial_network import arbiter, bandwidth_of, network
from arch.families.spatial_rules import STATIONARY
from arch.families.spatial_schema import (
    ComponentConfig,
    DramConfig,
    NocConfig,
    PeArrayConfig,
    RegistersConfig,
    SpatialConfig,
    SramConfig,
    VectorUnitConfig,
)
from arch.family import Family
from arch.registry import register_family
from arch.spec import (
    DIM_CLASSES,
    PS_PER_S,
    ROLES,
    Architecture,
    Axis,
    Banks,
    Component,
    Compute,
    Fold,
    Intrinsic,
    Memory,
)
from arch.technology import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Dram(Memory):
    """Off-chip memory; reads and writes share its bus. ``device``: what it is in detail."""

    device: DramDevice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sram(Memory):
    """A buffer shared by the whole chip; ``banks`` if there are several."""

    banks: Banks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers(Memory):
    """Registers or a register file, one for the chip, a row, a column or an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeArray(Compute):
    """A 2-D array of multiply-accumulate units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnit(Compute):
    """Lanes that each do one scalar operation per cycle."""


#: Classes of the loops that (rows, columns) may unroll. What stays in place (the weight ``k n``,
#: the output ``m n``, the input ``m k``) is indexed by both. Row stationary (Chen et al., ISCA
#: 2016) runs filter rows down and output rows across, and repeats that over channels and filters.
DATAFLOWS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "weight_stationary": (("k",), ("n",)),
    "output_stationary": (("m",), ("n",)),
    "input_stationary": (("k",), ("m",)),
    "row_stationary": (("k", "n"), ("m", "n")),
    "free": (DIM_CLASSES, DIM_CLASSES),
}

#: Partial sums are int32 or float32.
_SUM_BYTES = 4

#: Axes of the array that each have their own registers.
REPLICATION: Mapping[str, tuple[str, ...]] = {
    "chip": (),
    "column": ("cols",),
    "row": ("rows",),
    "pe": ("rows", "cols"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chip:
    """What components need to know of the whole."""

    clock_hz: int
    node_nm: int
    corner: str
    array: str
    axes: Mapping[str, int]
    widest_bytes: int

    @property
    def period_ps(self) -> int:
        """One clock period, rounded to the picosecond (700 MHz: 1429, 0.03 % long)."""
        return round(PS_PER_S / self.clock_hz)

    def auto(self, value: float | str, estimate: Estimate) -> float:
        """The configured value, or the technology table's at the chip's corner."""
        return estimate.at(self.corner) if isinstance(value, str) else value


@register_family("spatial")
class Spatial(Family):
    schema = SpatialConfig

    def construct(self, checked: Any, data: Mapping[str, Any]) -> Architecture:
        config: SpatialConfig = checked
        array, grid = config.array()
        chip = _Chip(
            clock_hz=config.clock,
            node_nm=config.technology,
            corner=config.corner,
            array=array,
            axes={"rows": grid.rows, "cols": grid.cols},
            widest_bytes=max(-(-datatype(dtype).bits // 8) for dtype in grid.dtypes),
        )
        return Architecture(
            name=config.name,
            family="spatial",
            description=config.description,
            clock_hz=config.clock,
            technology_nm=config.technology,
            components=tuple(
                _of_all_cores(made, config.cores) for made in _components(config, chip)
            ),
            document=data,
            cores=config.cores,
        )


def _of_all_cores(component: Component, cores: int) -> Component:
    """Area and leakage of every core's copy; there is one off-chip memory."""
    if cores == 1 or isinstance(component, Dram):
        return component
    return replace(
        component, area_mm2=component.area_mm2 * cores, leakage_w=component.leakage_w * cores
    )


def _components(config: SpatialConfig, chip: _Chip) -> list[Component]:
    made = [part for name, each in config.components.items() for part in _made(name, each, chip)]
    memories = [component for component in made if isinstance(component, Memory)]
    others = [component for component in made if not isinstance(component, Memory)]
    return [*memories, *_latches(config.array()[1], memories, chip), *others]


def _made(name: str, config: ComponentConfig, chip: _Chip) -> Iterator[Component]:
    if isinstance(config, NocConfig):
        yield from network(name, config)
    else:
        yield _component(name, config, chip)


#: What is one component each; a network is several.
SingleConfig = DramConfig | SramConfig | RegistersConfig | PeArrayConfig | VectorUnitConfig


def _component(name: str, config: SingleConfig, chip: _Chip) -> Component:
    match config:
        case DramConfig():
            return _dram(name, config, chip)
        case SramConfig():
            return _sram(name, config, chip)
        case RegistersConfig():
            return _registers(name, config, chip)
        case PeArrayConfig():
            return _pe_array(name, config, chip)
        case VectorUnitConfig():
            return _vector_unit(name, config, chip)


def _banks(config: SramConfig) -> Banks | None:
    if config.banks == 1:
        return None
    return Banks(count=config.banks, interleave_bytes=config.interleave)


def _device(name: str, timing: str) -> DramDevice:
    try:
        return device_named(timing)
    except InputError as error:
        wrong = [replace(p, where=f"components.{name}.{p.where}") for p in error.problems]
        raise InputError(wrong) from error


def _dram(name: str, config: DramConfig, chip: _Chip) -> Dram:
    energy = config.energy
    if isinstance(energy, str):
        energy = technology.dram_pj_per_byte(str(config.type)).at(chip.corner)
    device = None if config.timing is None else _device(name, config.timing)
    bandwidth, latency_ps = config.bandwidth, config.latency
    if device is not None:
        bandwidth = device.peak_bytes_per_s
        latency_ps += device.idle_latency_cycles("hit") * device.cycle_ps
    return Dram(
        name=name,
        size_bytes=config.size,
        roles=ROLES,
        read_bytes_per_s=bandwidth_of(bandwidth, 1),
        write_bytes_per_s=bandwidth_of(bandwidth, 1),
        shared_port=True,
        read_pj_per_byte=energy,
        write_pj_per_byte=energy,
        latency_ps=latency_ps,
        device=device,
        arbiter=arbiter(config),
        area_mm2=config.area,
        leakage_w=config.leakage,
    )


def _sram(name: str, config: SramConfig, chip: _Chip) -> Sram:
    node, size, word_bits = chip.node_nm, config.size, 8 * config.word
    latency = config.latency
    if isinstance(latency, str):
        latency = technology.sram_access_ps(node, size)
    read = technology.sram_read_pj_per_byte(node, size, word_bits)
    write = technology.sram_write_pj_per_byte(node, size, word_bits)
    return Sram(
        name=name,
        size_bytes=size,
        roles=tuple(config.keeps),
        read_bytes_per_s=bandwidth_of(config.read_bandwidth, 1),
        write_bytes_per_s=bandwidth_of(config.write_bandwidth, 1),
        shared_port=config.shared_port,
        read_pj_per_byte=chip.auto(config.read_energy, read),
        write_pj_per_byte=chip.auto(config.write_energy, write),
        latency_ps=latency,
        double_buffered=config.double_buffered,
        wide_outputs=config.final_outputs == "wide",
        banks=_banks(config),
        may_bypass=tuple(config.may_bypass),
        arbiter=arbiter(config),
        area_mm2=chip.auto(config.area, technology.sram_area_mm2(node, size)),
        leakage_w=chip.auto(config.leakage, technology.sram_leakage_w(node, size)),
    )


def _registers(name: str, config: RegistersConfig, chip: _Chip) -> Registers:
    replicated = REPLICATION[config.per]
    count = math.prod(chip.axes[axis] for axis in replicated)
    energy = technology.register_pj_per_byte(chip.node_nm, config.size)
    area = chip.auto(config.area, technology.register_area_mm2(chip.node_nm, config.size))
    return Registers(
        name=name,
        count=count,
        size_bytes=config.size,
        roles=tuple(config.keeps),
        read_bytes_per_s=bandwidth_of(config.read_bandwidth, count),
        write_bytes_per_s=bandwidth_of(config.write_bandwidth, count),
        shared_port=False,
        read_pj_per_byte=chip.auto(config.read_energy, energy),
        write_pj_per_byte=chip.auto(config.write_energy, energy),
        latency_ps=config.latency,
        replicated_over=replicated,
        serves=chip.array,
        double_buffered=config.double_buffered,
        may_bypass=tuple(config.may_bypass),
        arbiter=arbiter(config),
        area_mm2=area,
        leakage_w=chip.auto(config.leakage, technology.logic_leakage_w(area)),
    )


def _latches(config: PeArrayConfig, memories: Sequence[Memory], chip: _Chip) -> list[Registers]:
    """Inputs and weights are held in each element, outputs where they are added up."""
    found = []
    for role in config.latches:
        keepers = [memory for memory in memories if role in memory.roles]
        over = keepers[-1].replicated_over if role == "output" else REPLICATION["pe"]
        found.append(
            Registers(
                name=f"latch_{role}",
                count=math.prod(chip.axes[axis] for axis in over),
                size_bytes=_SUM_BYTES if role == "output" else chip.widest_bytes,
                roles=(role,),
                read_bytes_per_s=None,
                write_bytes_per_s=None,
                shared_port=False,
                read_pj_per_byte=0.0,
                write_pj_per_byte=0.0,
                replicated_over=over,
                serves=chip.array,
                double_buffered=False,
                is_latch=True,
            )
        )
    return found


def _pe_array(name: str, config: PeArrayConfig, chip: _Chip) -> PeArray:
    dtypes = tuple(config.dtypes)
    row_classes, column_classes = DATAFLOWS[config.dataflow]
    skew = config.rows + config.cols - 2 if config.interconnect == "systolic" else 0
    fold = _fold(config, skew, chip.period_ps)
    elements = config.rows * config.cols
    area = chip.auto(config.area, technology.mac_area_mm2(chip.node_nm, dtypes))
    leakage = chip.auto(config.leakage, technology.logic_leakage_w(area))
    intrinsic = Intrinsic(
        name=f"{config.dataflow}_{config.rows}x{config.cols}",
        operations=("mac",),
        axes=(
            Axis(name="rows", size=config.rows, dim_classes=row_classes),
            Axis(name="cols", size=config.cols, dim_classes=column_classes),
        ),
        dtypes=dtypes,
        interval_ps=chip.period_ps,
        latency_ps=((0 if fold else skew) + config.mac_pipeline) * chip.period_ps,
        energy_pj=chip.auto(config.mac_energy, technology.mac_pj(chip.node_nm, dtypes)),
        skips=tuple(config.skips),
    )
    return PeArray(
        name=name,
        intrinsics=(intrinsic,),
        fold=fold,
        area_mm2=elements * area,
        leakage_w=elements * leakage,
    )


def _fold(config: PeArrayConfig, skew: int, period_ps: int) -> Fold | None:
    """A fold takes its steps, ``rows`` cycles to shift the tile in, and the skew; the last of
    these cycles are the turnaround."""
    if config.folds == "hidden":
        return None
    role, shifted_in = STATIONARY[config.dataflow]
    cycles = max((config.rows if shifted_in else 0) + skew, config.turnaround)
    return Fold(
        role=role,
        time_ps=(cycles - config.turnaround) * period_ps,
        turnaround_ps=config.turnaround * period_ps,
    )


def _vector_unit(name: str, config: VectorUnitConfig, chip: _Chip) -> VectorUnit:
    dtypes = tuple(config.dtypes)
    area = chip.auto(config.area, technology.vector_lane_area_mm2(chip.node_nm, dtypes))
    leakage = chip.auto(config.leakage, technology.logic_leakage_w(area))
    intrinsic = Intrinsic(
        name=f"vector_{config.lanes}",
        operations=tuple(config.operations),
        axes=(Axis(name="lanes", size=config.lanes),),
        dtypes=dtypes,
        interval_ps=chip.period_ps,
        latency_ps=config.pipeline * chip.period_ps,
        energy_pj=chip.auto(config.op_energy, technology.vector_op_pj(chip.node_nm, dtypes)),
    )
    return VectorUnit(
        name=name,
        intrinsics=(intrinsic,),
        area_mm2=config.lanes * area,
        leakage_w=config.lanes * leakage,
    )
