"""Field types of architecture files: number formats, operands, and quantities with limits.

The limits are those of the widest parts known (see each line); zero is allowed where an ideal
part makes sense.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from arch import quantity, technology, units
from arch.quantity import Quantity

Role = Literal["input", "weight", "output"]
Dtype = Literal["int4", "int8", "int16", "int32", "fp8", "bf16", "fp16", "fp32"]
VectorOperation = Literal["add", "mul", "max", "mean", "copy", "activation", "softmax", "norm"]
DramType = Literal["lpddr4", "ddr3", "ddr4", "gddr5", "gddr6", "hbm2", "hbm3"]
Corner = Literal["low", "nominal", "high"]

MIB, GIB = 1 << 20, 1 << 30


def distinct(values: list[str]) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"lists {', '.join(repeated)} more than once")
    return values


def at_least_one(values: list[str]) -> list[str]:
    if not values:
        raise ValueError("must list at least one")
    return distinct(values)


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
Interleave = Annotated[  # a byte to a whole bank
    int, Quantity(parse=quantity.size, show=units.format_size, low=1, high=16 * MIB)
]
DramBandwidth = Annotated[
    int | Literal["auto", "unlimited"],  # a serial flash interface to eight stacks of HBM3E
    Quantity(
        parse=quantity.bandwidth,
        show=units.format_bandwidth,
        low=100e6,
        high=10e12,
        words=("auto", "unlimited"),
    ),
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
NodeArea = Annotated[
    float | Literal["unknown"],  # up to a tile of a many-core chip
    Quantity(
        parse=quantity.area,
        show=units.format_area_mm2,
        low=1e-6,
        high=10.0,
        zero=True,
        words=("unknown",),
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


@dataclass(frozen=True, slots=True)
class Between:
    """Marks a whole number with its limits, and a word that it may be instead."""

    low: int
    high: int
    word: str | None = None

    def check(self, value: int) -> int:
        if self.low <= value <= self.high:
            return value
        raise ValueError(f"{value} is out of range; {self._allowed}")

    def check_any(self, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return self.check(value)
        if value == self.word:
            return value
        raise ValueError(f"{value!r} is not allowed; {self._allowed}")

    @property
    def _allowed(self) -> str:
        other = f" or '{self.word}'" if self.word else ""
        return f"allowed {self.low} to {self.high}{other}"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        if self.word:
            return core_schema.no_info_plain_validator_function(self.check_any)
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        number = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return {"anyOf": [number, {"const": self.word}]} if self.word else number


Extent = Annotated[int, Between(1, 4096)]
QueueDepth = Annotated[int | Literal["unlimited"], Between(1, 4096, "unlimited")]
Stages = Annotated[int, Between(0, 64)]
BankCount = Annotated[int, Between(1, 256)]
Roles = Annotated[list[Role], AfterValidator(at_least_one)]
Dtypes = Annotated[list[Dtype], AfterValidator(at_least_one)]


def _skips(values: list[str]) -> list[str]:
    for value in values:
        if value not in ("unstructured", "block") and not re.fullmatch(r"[1-9]\d*:[1-9]\d*", value):
            raise ValueError(f"unknown sparsity {value!r}; allowed unstructured, block, or n:m")
    return distinct(values)


Skips = Annotated[list[str], AfterValidator(_skips)]
