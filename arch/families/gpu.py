"""Family ``gpu``: streaming multiprocessors (SMs) with tensor cores, an L2 and HBM.

Shared memories and units of all SMs are seen as one memory and one unit each, which is as much as
loop mappings need. How a library cuts a kernel into thread blocks, and what that costs, is
``sim/gpu``'s business; it reads the same components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from arch import quantity, units
from arch.errors import InputError
from arch.family import Family
from arch.fields import Between, Clock, DramBandwidth, DramSize, Dtype
from arch.quantity import Quantity
from arch.registry import register_family
from arch.schema import Finding, StrictModel
from arch.spec import (
    PS_PER_S,
    ROLES,
    VECTOR_OPERATIONS,
    Architecture,
    Axis,
    Component,
    Compute,
    Intrinsic,
    Memory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hbm(Memory):
    """Stacked memory beside the GPU; reads and writes share its bus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuL2(Memory):
    """The last-level cache, in slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory(Memory):
    """The shared memories of all SMs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCores(Compute):
    """The tensor cores of all SMs. ``macs_per_cycle`` is of one SM, by data type, dense;
    ``sparse_macs_per_cycle`` counts the zeros that 2:4 sparse operands leave out as well."""

    sms: int
    path: str
    macs_per_cycle: Mapping[str, int]
    sparse_macs_per_cycle: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaCores(Compute):
    """Scalar lanes and special-function units of all SMs; both numbers are of one SM."""

    lanes: int
    special_functions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Board(Component):
    """Power limit, power at rest, lowest clock under the limit, and bandwidth to one other GPU.

    ``epilogues`` is what its software does with operators that can be part of the kernel before
    them: ``fused``, or ``eager`` (a kernel each).
    """

    power_limit_w: float
    idle_w: float
    least_clock_hz: int
    link_bytes_per_s: int
    epilogues: str = "fused"


Energy = Annotated[
    float,
    Quantity(parse=quantity.energy_per_byte, show=units.format_energy_per_byte, low=0.01, high=800),
]
MacEnergy = Annotated[
    float, Quantity(parse=quantity.energy, show=units.format_energy_pj, low=0.01, high=100)
]
Power = Annotated[
    float, Quantity(parse=quantity.power, show=units.format_power_w, low=1.0, high=5e3)
]
Process = Annotated[
    int, Quantity(parse=quantity.length, show=units.format_length_nm, low=2, high=65)
]
L2Size = Annotated[
    int, Quantity(parse=quantity.size, show=units.format_size, low=1 << 19, high=1 << 30)
]
SmSize = Annotated[
    int, Quantity(parse=quantity.size, show=units.format_size, low=1 << 14, high=1 << 24)
]
Bandwidth = Annotated[
    int,
    Quantity(parse=quantity.bandwidth, show=units.format_bandwidth, low=1e9, high=1e15),
]


class HbmConfig(StrictModel):
    kind: Literal["hbm"]
    size: DramSize
    bandwidth: DramBandwidth
    energy: Energy


class L2Config(StrictModel):
    kind: Literal["l2"]
    size: L2Size
    bandwidth: Bandwidth
    """To all SMs together, copies to several SMs of a cluster counted once each."""
    energy: Energy


class SharedConfig(StrictModel):
    kind: Literal["shared_memory"]
    size: SmSize
    """Of one SM."""
    bandwidth: Bandwidth
    """Of one SM."""
    energy: Energy


class TensorConfig(StrictModel):
    kind: Literal["tensor_cores"]
    sms: Annotated[int, Between(1, 1024)]
    path: Literal["wgmma", "mma"]
    """Instructions that libraries use: of a warp group (Hopper), or of a warp."""
    macs_per_cycle: dict[Dtype, Annotated[int, Field(ge=64, le=1 << 17)]]
    """Dense multiply-adds of one SM."""
    sparse_macs_per_cycle: dict[Dtype, Annotated[int, Field(ge=64, le=1 << 17)]] = Field(default={})
    """Those with 2:4 sparse weights, zeros counted, where there are such instructions."""
    mac_energy: MacEnergy


class CudaConfig(StrictModel):
    kind: Literal["cuda_cores"]
    lanes: Annotated[int, Between(8, 1024)]
    special_functions: Annotated[int, Between(1, 256)]
    operation_energy: MacEnergy


ComponentConfig = Annotated[
    HbmConfig | L2Config | SharedConfig | TensorConfig | CudaConfig, Field(discriminator="kind")
]
ORDER = ("hbm", "l2", "shared_memory", "tensor_cores", "cuda_cores")


class GpuConfig(StrictModel):
    """A GPU."""

    name: str
    family: Literal["gpu"]
    description: str
    sources: list[str] = Field(default=[])
    clock: Clock
    """The highest."""
    least_clock: Clock
    """The lowest under a full load at the power limit."""
    technology: Process
    power_limit: Power
    idle_power: Power
    area: Annotated[
        float, Quantity(parse=quantity.area, show=units.format_area_mm2, low=10, high=1700)
    ]
    """Of the die."""
    link: Bandwidth
    """To another GPU, in one direction."""
    epilogues: Literal["fused", "eager"] = "fused"
    """Batch normalization, bias, clamp and residual sum after a convolution: in its kernel, as
    compilers for inference arrange it, or kernels of their own, as torch runs them by itself."""
    components: dict[str, ComponentConfig]

    @classmethod
    def context(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"clock_hz": units.parse_frequency(data.get("clock"))}
        except InputError:
            return {}

    @classmethod
    def structure(cls, data: Mapping[str, Any]) -> Iterator[Finding]:
        components = data.get("components")
        if not isinstance(components, Mapping):
            return
        kinds = tuple(c.get("kind") for c in components.values() if isinstance(c, Mapping))
        if kinds != ORDER:
            yield Finding(("components",), f"must be, in this order, {', '.join(ORDER)}")


@register_family("gpu")
class Gpu(Family):
    schema = GpuConfig
    brings_kernels = True

    def construct(self, checked: Any, data: Mapping[str, Any]) -> Architecture:
        config: GpuConfig = checked
        (hbm_name, l2_name, shared_name, tensor_name, cuda_name) = config.components
        hbm, l2, shared, tensor, cuda = config.components.values()
        assert isinstance(hbm, HbmConfig)
        assert isinstance(l2, L2Config)
        assert isinstance(shared, SharedConfig)
        assert isinstance(tensor, TensorConfig)
        assert isinstance(cuda, CudaConfig)
        period_ps = round(PS_PER_S / config.clock)
        return Architecture(
            name=config.name,
            family="gpu",
            description=config.description,
            clock_hz=config.clock,
            technology_nm=config.technology,
            components=(
                Hbm(**_memory(hbm_name, hbm, 1)),
                GpuL2(**_memory(l2_name, l2, 1)),
                SharedMemory(**_memory(shared_name, shared, tensor.sms)),
                _tensor_cores(tensor_name, tensor, period_ps),
                _cuda_cores(cuda_name, cuda, tensor.sms, period_ps),
                Board(
                    name="board",
                    area_mm2=config.area,
                    leakage_w=config.idle_power,
                    power_limit_w=config.power_limit,
                    idle_w=config.idle_power,
                    least_clock_hz=config.least_clock,
                    link_bytes_per_s=config.link,
                    epilogues=config.epilogues,
                ),
            ),
            document=data,
        )


def _memory(
    name: str, config: HbmConfig | L2Config | SharedConfig, instances: int
) -> dict[str, Any]:
    bandwidth = int(config.bandwidth) * instances
    return {
        "name": name,
        "size_bytes": config.size * instances,
        "roles": ROLES,
        "read_bytes_per_s": bandwidth,
        "write_bytes_per_s": bandwidth,
        "shared_port": True,
        "read_pj_per_byte": config.energy,
        "write_pj_per_byte": config.energy,
    }


#: The tile of one SM's tensor cores in a cycle: 16 rows, 8 columns, and as deep as the type allows.
TILE_ROWS, TILE_COLS = 16, 8
#: Cycles from the issue of a matrix instruction to its result: 33 on Hopper, 26 on Ampere
#: (arXiv:2501.12084, arXiv:2206.02874).
LATENCY_CYCLES = 32


def _tensor_cores(name: str, config: TensorConfig, period_ps: int) -> TensorCores:
    intrinsics = tuple(
        Intrinsic(
            name=f"{config.path}_{dtype}",
            operations=("mac",),
            axes=(
                Axis(name="sms", size=config.sms, dim_classes=("m", "n", "b")),
                Axis(name="rows", size=TILE_ROWS, dim_classes=("m",)),
                Axis(name="cols", size=TILE_COLS, dim_classes=("n",)),
                Axis(name="depth", size=rate // (TILE_ROWS * TILE_COLS), dim_classes=("k",)),
            ),
            dtypes=(dtype,),
            interval_ps=period_ps,
            latency_ps=LATENCY_CYCLES * period_ps,
            energy_pj=config.mac_energy,
        )
        for dtype, rate in config.macs_per_cycle.items()
    )
    return TensorCores(
        name=name,
        intrinsics=intrinsics,
        sms=config.sms,
        path=config.path,
        macs_per_cycle={str(dtype): rate for dtype, rate in config.macs_per_cycle.items()},
        sparse_macs_per_cycle={str(d): rate for d, rate in config.sparse_macs_per_cycle.items()},
    )


def _cuda_cores(name: str, config: CudaConfig, sms: int, period_ps: int) -> CudaCores:
    def intrinsic(label: str, operations: tuple[str, ...], dtypes: tuple[str, ...]) -> Intrinsic:
        return Intrinsic(
            name=label,
            operations=operations,
            axes=(Axis(name="lanes", size=sms * config.lanes),),
            dtypes=dtypes,
            interval_ps=period_ps,
            latency_ps=4 * period_ps,  # arXiv:2501.12084: 4.07 cycles in fp32
            energy_pj=config.operation_energy,
        )

    every = ("bf16", "fp16", "fp32", "fp8", "int8", "int32")
    return CudaCores(
        name=name,
        intrinsics=(intrinsic("fma", ("mac",), every), intrinsic("simt", VECTOR_OPERATIONS, every)),
        lanes=config.lanes,
        special_functions=config.special_functions,
    )
