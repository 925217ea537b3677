"""The configuration of family ``spatial``: fields, limits, and rules between components."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from arch import quantity, technology, units
from arch.errors import InputError, suggest
from arch.quantity import Quantity
from arch.schema import Finding, StrictModel
from arch.spec import ROLES

Role = Literal["input", "weight", "output"]
Dtype = Literal["int4", "int8", "int16", "int32", "fp8", "bf16", "fp16", "fp32"]
VectorOperation = Literal["add", "mul", "max", "mean", "copy", "activation", "softmax", "norm"]
DramType = Literal["lpddr4", "ddr3", "ddr4", "gddr5", "gddr6", "hbm2", "hbm3"]
Corner = Literal["low", "nominal", "high"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def _distinct(values: list[str]) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"lists {', '.join(repeated)} more than once")
    return values


def _some(values: list[str]) -> list[str]:
    if not values:
        raise ValueError("must list at least one")
    return _distinct(values)


# Limits: the widest of any chip known, see each line; zero where an ideal part makes sense.
DramSize = Annotated[
    int,  # a few MiB of pseudo-static RAM to a many-socket server
    Quantity(parse=quantity.size, show=units.format_size, low=2 * MIB, high=8 << 40),
]
SramSize = Annotated[
    int,  # one line to the largest on-chip memories of one die
    Quantity(parse=quantity.size, show=units.format_size, low=16, high=GIB),
]
RegisterSize = Annotated[
    int,  # one operand to a register file of a GPU core
    Quantity(parse=quantity.size, show=units.format_size, low=1, high=4 * MIB),
]
WordSize = Annotated[int, Quantity(parse=quantity.size, show=units.format_size, low=1, high=256)]
DramBandwidth = Annotated[
    int,  # a serial flash interface to eight stacks of HBM3E
    Quantity(parse=quantity.bandwidth, show=units.format_bandwidth, low=100e6, high=10e12),
]
SramBandwidth = Annotated[
    int | Literal["unlimited"],  # a byte at 100 MHz to 8 KiB per cycle at 2 GHz
    Quantity(
        parse=quantity.bandwidth,
        show=units.format_bandwidth,
        low=100e6,
        high=16e12,
        words=("unlimited",),
    ),
]
DramEnergy = Annotated[
    float | Literal["auto"],  # on-package links 0.2 pJ/bit to DDR2 with its bus 75 pJ/bit
    Quantity(
        parse=quantity.energy_per_byte,
        show=units.format_energy_per_bit,
        low=1.6,
        high=800.0,
        zero=True,
        words=("auto",),
    ),
]
SramEnergy = Annotated[
    float | Literal["auto"],  # 1 KiB at 7 nm 0.03 pJ/B to 32 MiB at 65 nm 130 pJ/B
    Quantity(
        parse=quantity.energy_per_byte,
        show=units.format_energy_per_byte,
        low=0.005,
        high=500.0,
        zero=True,
        words=("auto",),
    ),
]
RegisterEnergy = Annotated[
    float | Literal["auto"],  # a latch at 7 nm to a large register file at 65 nm
    Quantity(
        parse=quantity.energy_per_byte,
        show=units.format_energy_per_byte,
        low=0.0005,
        high=40.0,
        zero=True,
        words=("auto",),
    ),
]
OperationEnergy = Annotated[
    float | Literal["auto"],  # an int4 product at 7 nm to a wide float at 65 nm
    Quantity(
        parse=quantity.energy,
        show=units.format_energy_pj,
        low=0.002,
        high=100.0,
        zero=True,
        words=("auto",),
    ),
]
Latency = Annotated[
    int,  # up to 100 us: a flash page
    Quantity(parse=quantity.time, show=units.format_time_ps, low=1, high=100e6, zero=True),
]
AccessTime = Annotated[
    int | Literal["auto"],  # up to a microsecond: far beyond the largest macro
    Quantity(
        parse=quantity.time,
        show=units.format_time_ps,
        low=1,
        high=1e6,
        zero=True,
        words=("auto",),
    ),
]
Area = Annotated[
    float | Literal["auto"],  # up to one reticle field, 26 mm x 33 mm
    Quantity(
        parse=quantity.area,
        show=units.format_area_mm2,
        low=1e-9,
        high=858.0,
        zero=True,
        words=("auto",),
    ),
]
OffChipArea = Annotated[
    float,
    Quantity(parse=quantity.area, show=units.format_area_mm2, low=1e-3, high=1e4, zero=True),
]
Leakage = Annotated[
    float | Literal["auto"],
    Quantity(
        parse=quantity.power,
        show=units.format_power_w,
        low=1e-12,
        high=100.0,
        zero=True,
        words=("auto",),
    ),
]
OffChipPower = Annotated[
    float,
    Quantity(parse=quantity.power, show=units.format_power_w, low=1e-6, high=100.0, zero=True),
]
MIN_CLOCK_HZ, MAX_CLOCK_HZ = 5 * 10**6, 10**10  # slower and faster than any accelerator
Clock = Annotated[
    int,
    Quantity(
        parse=quantity.frequency,
        show=units.format_frequency,
        low=MIN_CLOCK_HZ,
        high=MAX_CLOCK_HZ,
    ),
]
Node = Annotated[
    int,
    Quantity(
        parse=quantity.length,
        show=units.format_length_nm,
        low=technology.MIN_NODE_NM,
        high=technology.MAX_NODE_NM,
    ),
]
Extent = Annotated[int, Field(ge=1, le=4096)]
Stages = Annotated[int, Field(ge=0, le=64)]
Roles = Annotated[list[Role], AfterValidator(_some)]
Dtypes = Annotated[list[Dtype], AfterValidator(_some)]


class DramConfig(StrictModel):
    """Off-chip memory; reads and writes share ``bandwidth``. It keeps every operand."""

    kind: Literal["dram"]
    size: DramSize
    bandwidth: DramBandwidth
    energy: DramEnergy
    type: DramType | None = None
    latency: Latency
    keeps: Roles = Field(default=["input", "weight", "output"])
    area: OffChipArea = 0.0
    leakage: OffChipPower = 0.0


class SramConfig(StrictModel):
    """A buffer of the whole chip. ``word`` is the width of one access of its macro."""

    kind: Literal["sram"]
    size: SramSize
    keeps: Roles
    read_bandwidth: SramBandwidth
    write_bandwidth: SramBandwidth
    shared_port: bool = False
    word: WordSize = 8
    read_energy: SramEnergy = "auto"
    write_energy: SramEnergy = "auto"
    latency: AccessTime = "auto"
    double_buffered: bool = True
    area: Area = "auto"
    leakage: Leakage = "auto"


class RegistersConfig(StrictModel):
    """Registers; sizes, bandwidths, area and leakage are of one instance.

    Double-buffered by default: an array loads its next weights behind those in use.
    """

    kind: Literal["registers"]
    per: Literal["chip", "column", "row", "pe"]
    size: RegisterSize
    keeps: Roles
    read_bandwidth: SramBandwidth = "unlimited"
    write_bandwidth: SramBandwidth = "unlimited"
    read_energy: RegisterEnergy = "auto"
    write_energy: RegisterEnergy = "auto"
    latency: Latency = 0
    double_buffered: bool = True
    area: Area = "auto"
    leakage: Leakage = "auto"


class PeArrayConfig(StrictModel):
    """The array. Energy, area and leakage are of one multiply-accumulate unit.

    ``systolic``: operands move one element per cycle, so a tile ends ``rows + cols - 2`` cycles
    after its last issue; ``broadcast``: they reach every element at once. A type narrower than
    the multiplier may be listed if operands are sign-extended.
    """

    kind: Literal["pe_array"]
    rows: Extent
    cols: Extent
    dataflow: Literal["weight_stationary", "output_stationary", "input_stationary", "free"]
    interconnect: Literal["systolic", "broadcast"]
    mac_pipeline: Stages
    dtypes: Dtypes
    mac_energy: OperationEnergy = "auto"
    area: Area = "auto"
    leakage: Leakage = "auto"


class VectorUnitConfig(StrictModel):
    """Lanes for what is not a contraction. Energy, area and leakage are of one lane."""

    kind: Literal["vector_unit"]
    lanes: Extent
    pipeline: Stages
    operations: Annotated[list[VectorOperation], AfterValidator(_some)]
    dtypes: Dtypes
    op_energy: OperationEnergy = "auto"
    area: Area = "auto"
    leakage: Leakage = "auto"


ComponentConfig = Annotated[
    DramConfig | SramConfig | RegistersConfig | PeArrayConfig | VectorUnitConfig,
    Field(discriminator="kind"),
]


class SpatialConfig(StrictModel):
    """An architecture of family ``spatial``; components from the outermost memory inwards.

    ``corner`` says which end of the range of sources ``auto`` values are taken from;
    ``streamed`` lists operands that no memory on the chip keeps.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    family: Literal["spatial"]
    description: Annotated[str, Field(min_length=1)]
    sources: list[str] = Field(default=[])
    clock: Clock
    technology: Node
    corner: Corner = "nominal"
    streamed: Annotated[list[Role], AfterValidator(_distinct)] = Field(default=[])
    components: dict[str, ComponentConfig]

    def array(self) -> tuple[str, PeArrayConfig]:
        """The name and configuration of the array."""
        return next((n, c) for n, c in self.components.items() if isinstance(c, PeArrayConfig))

    @classmethod
    def context(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            clock_hz = units.parse_frequency(data.get("clock"))
        except InputError:
            return {}
        return {"clock_hz": clock_hz} if MIN_CLOCK_HZ <= clock_hz <= MAX_CLOCK_HZ else {}

    @classmethod
    def structure(cls, data: Mapping[str, Any]) -> Iterator[Finding]:
        components = data.get("components")
        if not isinstance(components, Mapping):
            return
        kinds = {
            name: component.get("kind") if isinstance(component, Mapping) else None
            for name, component in components.items()
        }
        yield from _names(kinds)
        yield from _counts(kinds)
        yield from _order(kinds)
        yield from _off_chip(components, kinds)
        yield from _kept(data, components, kinds)


_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _names(kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    for name in kinds:
        if not _NAME.fullmatch(str(name)):
            message = "a component's name is lower case letters, digits and '_'"
            yield Finding(("components", name), message)
        elif name in SpatialConfig.model_fields:
            message = f"'{name}' is a key of the architecture; name the component otherwise"
            yield Finding(("components", name), message)


def _counts(kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """How many components of each kind there must be."""
    found = list(kinds.values())
    for kind, low, high in (
        ("dram", 1, 1),
        ("sram", 1, 16),
        ("pe_array", 1, 1),
        ("vector_unit", 0, 1),
    ):
        count = found.count(kind)
        if count < low:
            near = [suggest(kind, [str(k)]) for k in found if k not in _KINDS]
            hint = "; is a 'kind' misspelt?" if any(near) else ""
            yield Finding(("components",), f"there is no component of kind '{kind}'{hint}")
        if count > high:
            names = ", ".join(str(n) for n, k in kinds.items() if k == kind)
            message = f"{count} components of kind '{kind}' ({names}); allowed at most {high}"
            yield Finding(("components",), message)


_DEPTH = {"dram": 0, "sram": 1, "registers": 2}
_KINDS = (*_DEPTH, "pe_array", "vector_unit")


def _order(kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """Memories stand from the outermost inwards."""
    deepest = ("", 0)
    for name, kind in kinds.items():
        depth = _DEPTH.get(kind, len(_DEPTH)) if isinstance(kind, str) else len(_DEPTH)
        if depth == len(_DEPTH):
            continue
        if depth < deepest[1]:
            message = f"must stand before '{deepest[0]}': memories go from the outermost inwards"
            yield Finding(("components", name), message)
        else:
            deepest = (str(name), depth)


def _off_chip(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    for name, kind in kinds.items():
        if kind != "dram":
            continue
        dram = components[name]
        missing = [role for role in ROLES if role not in _roles(dram, ROLES)]
        if missing:
            message = f"must keep every operand; missing {', '.join(missing)}"
            yield Finding(("components", name, "keeps"), message)
        if dram.get("energy") == "auto" and dram.get("type") is None:
            message = "'auto' needs 'type'; allowed " + ", ".join(technology.DRAM_TYPES)
            yield Finding(("components", name, "energy"), message)


def _roles(component: Mapping[str, Any], default: tuple[str, ...] = ()) -> tuple[Any, ...]:
    keeps = component.get("keeps", default)
    return tuple(keeps) if isinstance(keeps, list | tuple) else ROLES


def _kept(
    data: Mapping[str, Any], components: Mapping[Any, Any], kinds: Mapping[Any, Any]
) -> Iterator[Finding]:
    """A role that no memory on the chip keeps is read from DRAM for each use: only on purpose."""
    on_chip = [n for n, kind in kinds.items() if kind in ("sram", "registers")]
    kept = [role for name in on_chip for role in _roles(components[name])]
    streamed = data.get("streamed", [])
    if not on_chip or not isinstance(streamed, list):
        return
    for role in ROLES:
        if role not in kept and role not in streamed:
            message = (
                f"no memory on the chip keeps '{role}'; add it to a 'keeps', or to the list "
                "'streamed' if it shall come from DRAM for each use"
            )
            yield Finding(("components",), message)
        if role in kept and role in streamed:
            yield Finding(("streamed",), f"'{role}' is kept on the chip, so it is not streamed")
