"""Family ``mcu``: a microcontroller that runs a library of int8 kernels out of SRAM and flash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from arch import catalog, quantity, units
from arch.errors import InputError, Problem, unknown
from arch.family import Family
from arch.fields import Clock
from arch.quantity import Quantity
from arch.registry import register_family
from arch.schema import Finding, StrictModel
from arch.spec import (
    PS_PER_S,
    ROLES,
    VECTOR_OPERATIONS,
    Architecture,
    Axis,
    Compute,
    Intrinsic,
    Memory,
)
from arch.strict_yaml import read

Planner = Literal["tflm", "tflm_offline", "tinyengine", "hmcos", "vmcu", "optimal"]

#: Most int8 multiply-accumulates per cycle: SMLAD of the DSP extension adds up two products (Arm
#: Cortex-M4 technical reference manual), Helium on Cortex-M55 eight (Arm's product page); one
#: without either.
MACS_PER_CYCLE = {"none": 1, "dsp": 2, "helium": 8}

Size = Annotated[
    int, Quantity(parse=quantity.size, show=units.format_size, low=1024, high=64 << 20)
]
Reserved = Annotated[
    int, Quantity(parse=quantity.size, show=units.format_size, low=1, high=16 << 20, zero=True)
]
Power = Annotated[
    float, Quantity(parse=quantity.power, show=units.format_power_w, low=1e-4, high=10.0)
]
Process = Annotated[
    int, Quantity(parse=quantity.length, show=units.format_length_nm, low=10, high=250)
]
FlashBandwidth = Annotated[
    int, Quantity(parse=quantity.bandwidth, show=units.format_bandwidth, low=1e6, high=1e11)
]
Latency = Annotated[
    int, Quantity(parse=quantity.time, show=units.format_time_ps, low=1e6, high=3.6e15)
]
Cycles = Annotated[float, Field(ge=0, le=1e6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Cycles of a kernel: linear in its multiply-accumulates and in the values that it makes."""

    per_mac: float
    per_output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The software: cycles by kind of layer, its planner, and what it keeps beside the network.

    ``per_segment`` is the modulo of a ring's address, ``per_layer`` the call of a kernel. Limits
    (``None``: none) are for the planner ``optimal``.
    """

    library: str
    planner: str
    goal: str
    rates: Mapping[str, Rate] = field(hash=False)
    per_segment: float
    per_layer: float
    reserved_bytes: int
    code_bytes: int
    bytes_per_channel: int
    weights_in: str
    ram_limit_bytes: int | None
    latency_limit_ps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class McuCore(Compute):
    """The processor core, with the kernels that run on it."""

    kernels: Kernels
    macs_per_cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class McuSram(Memory):
    """The SRAM: activations, stack and the library's own data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McuFlash(Memory):
    """The flash: weights and code, read over its accelerator or cache."""


class CoreConfig(StrictModel):
    kind: Literal["mcu_core"]
    core: Literal["cortex-m0+", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
    simd: Literal["none", "dsp", "helium"]
    """Integer dot-product instructions."""
    active_power: Power
    """Mean power of the supply while it computes (it hardly depends on the network)."""


class SramConfig(StrictModel):
    kind: Literal["mcu_sram"]
    size: Size


class FlashConfig(StrictModel):
    kind: Literal["mcu_flash"]
    size: Size
    bandwidth: FlashBandwidth
    """Of sequential reads, wait states included."""


class KernelsConfig(StrictModel):
    """Cycles are those of the library on this core, fitted to measurements."""

    kind: Literal["kernels"]
    library: str
    planner: Planner
    """Who places activations in SRAM."""
    goal: Literal["least_memory", "fastest_that_fits"] = "least_memory"
    """What the planner ``optimal`` looks for."""
    ram_limit: Size | None = None
    """Of a plan; ``optimal`` then takes the fastest within it."""
    latency_limit: Latency | None = None
    """Of a run; ``optimal`` then takes the smallest plan within it."""
    weights: Literal["flash", "sram"] = "flash"
    """Where kernels read weights. In SRAM they need room beside the plan (flash keeps them too)."""
    conv_per_mac: Cycles
    conv_per_output: Cycles
    depthwise_per_mac: Cycles
    depthwise_per_output: Cycles
    dense_per_mac: Cycles
    dense_per_output: Cycles
    other_per_operation: Cycles
    per_segment: Cycles
    """Modulo of a ring's address, for each segment that is loaded or stored."""
    per_layer: Cycles
    """Call of a kernel."""
    reserved: Reserved
    """Stack, buffers of the runtime and structures of the library, in SRAM."""
    code: Reserved
    """Of the library and the runtime, in flash."""
    bytes_per_channel: Annotated[int, Field(ge=0, le=64)]
    """Bias, multiplier and shift of an output channel, beside the weights."""


ComponentConfig = Annotated[
    CoreConfig | SramConfig | FlashConfig | KernelsConfig, Field(discriminator="kind")
]
KINDS = ("mcu_flash", "mcu_sram", "mcu_core", "kernels")


class McuConfig(StrictModel):
    name: str
    family: Literal["mcu"]
    board: str | None = None
    """The shipped board that it is made from; as an override, takes all of that board's values."""
    description: str
    sources: list[str]
    clock: Clock
    technology: Process
    components: dict[str, ComponentConfig]

    @classmethod
    def context(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"clock_hz": units.parse_frequency(data.get("clock"))}
        except ValueError:
            return {}

    @classmethod
    def structure(cls, data: Mapping[str, Any]) -> Iterator[Finding]:
        components = data.get("components")
        if not isinstance(components, Mapping):
            return
        kinds = [c.get("kind") for c in components.values() if isinstance(c, Mapping)]
        for kind in KINDS:
            if kinds.count(kind) != 1:
                message = f"{kinds.count(kind)} components of kind '{kind}'; exactly 1 is needed"
                yield Finding(("components",), message)


@register_family("mcu")
class Mcu(Family):
    schema = McuConfig
    brings_kernels = True

    def rebuild(self, data: Mapping[str, Any], overrides: Mapping[str, Any]) -> Architecture:
        """Another board's values first, then what else is overridden."""
        board = overrides.get("board")
        if not isinstance(board, str) or board == data.get("board"):
            return super().rebuild(data, overrides)
        return super().rebuild(_board(board), overrides)

    def construct(self, checked: Any, data: Mapping[str, Any]) -> Architecture:
        config: McuConfig = checked
        by_kind: dict[str, tuple[str, Any]] = {
            c.kind: (name, c) for name, c in config.components.items()
        }
        return Architecture(
            name=config.name,
            family="mcu",
            description=config.description,
            clock_hz=config.clock,
            technology_nm=config.technology,
            components=(
                _flash(*by_kind["mcu_flash"]),
                _sram(*by_kind["mcu_sram"], config.clock),
                _core(*by_kind["mcu_core"], by_kind["kernels"][1], config.clock),
            ),
            document={**data, "board": config.board or config.name},
        )


def _board(name: str) -> Mapping[str, Any]:
    """The document of a shipped board; ``InputError`` for other hardware."""
    boards = [n for n in catalog.names("arch") if _document(n).get("family") == "mcu"]
    if name not in boards:
        raise InputError(Problem(unknown("board", name, boards), where="board"))
    return _document(name)


@lru_cache(maxsize=64)
def _document(name: str) -> Mapping[str, Any]:
    data: Mapping[str, Any] = read(catalog.find("arch", name)).data
    return data


def _flash(name: str, config: Any) -> McuFlash:
    return McuFlash(
        name=name,
        size_bytes=config.size,
        roles=("weight",),
        read_bytes_per_s=config.bandwidth,
        write_bytes_per_s=config.bandwidth,
        shared_port=True,
        read_pj_per_byte=0.0,
        write_pj_per_byte=0.0,
    )


def _sram(name: str, config: Any, clock_hz: int) -> McuSram:
    """One 32-bit word per cycle; its energy is part of the active power."""
    return McuSram(
        name=name,
        size_bytes=config.size,
        roles=ROLES,
        read_bytes_per_s=4 * clock_hz,
        write_bytes_per_s=4 * clock_hz,
        shared_port=True,
        read_pj_per_byte=0.0,
        write_pj_per_byte=0.0,
    )


def _core(name: str, config: CoreConfig, kernels: Any, clock_hz: int) -> McuCore:
    macs = MACS_PER_CYCLE[config.simd]
    intrinsic = Intrinsic(
        name=f"{config.core}_{config.simd}",
        operations=("mac", *VECTOR_OPERATIONS),
        axes=(Axis(name="products", size=macs, dim_classes=("k",)),),
        dtypes=("int8",),
        interval_ps=round(PS_PER_S / clock_hz),
        latency_ps=0,
        energy_pj=0.0,
    )
    return McuCore(
        name=name,
        leakage_w=config.active_power,
        intrinsics=(intrinsic,),
        macs_per_cycle=macs,
        kernels=_kernels(kernels),
    )


def _kernels(config: KernelsConfig) -> Kernels:
    other = Rate(per_mac=config.other_per_operation, per_output=0.0)
    return Kernels(
        library=config.library,
        planner=config.planner,
        goal=config.goal,
        rates={
            "conv2d": Rate(per_mac=config.conv_per_mac, per_output=config.conv_per_output),
            "depthwise": Rate(
                per_mac=config.depthwise_per_mac, per_output=config.depthwise_per_output
            ),
            "dense": Rate(per_mac=config.dense_per_mac, per_output=config.dense_per_output),
            "pool": other,
            "elementwise": other,
            "other": other,
        },
        per_segment=config.per_segment,
        per_layer=config.per_layer,
        reserved_bytes=config.reserved,
        code_bytes=config.code,
        bytes_per_channel=config.bytes_per_channel,
        weights_in=config.weights,
        ram_limit_bytes=config.ram_limit,
        latency_limit_ps=config.latency_limit,
    )
