"""The configuration of family ``spatial``: fields, limits, and rules between components."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from arch import technology, units
from arch.errors import InputError, suggest
from arch.fields import (
    MAX_CLOCK_HZ,
    MIN_CLOCK_HZ,
    AccessTime,
    Area,
    Clock,
    Corner,
    DramBandwidth,
    DramEnergy,
    DramSize,
    DramType,
    Dtypes,
    Extent,
    Latency,
    Leakage,
    Node,
    OffChipArea,
    OffChipPower,
    OperationEnergy,
    RegisterEnergy,
    RegisterSize,
    Role,
    Roles,
    Skips,
    SramBandwidth,
    SramEnergy,
    SramSize,
    Stages,
    VectorOperation,
    WordSize,
    at_least_one,
    distinct,
)
from arch.schema import Finding, StrictModel
from arch.spec import ROLES


class DramConfig(StrictModel):
    """Off-chip memory; reads and writes share ``bandwidth``. It keeps every operand."""

    kind: Literal["dram"]
    size: DramSize
    bandwidth: DramBandwidth
    """``auto``: the peak of ``timing``; ``unlimited`` is never the bottleneck."""
    timing: str | None = None
    """An architecture of family ``dram_system``: banks, rows, refresh and bus turnaround are then
    simulated at event fidelity, instead of a bandwidth and a latency."""
    energy: DramEnergy
    """Per bit or byte moved; ``auto`` takes that of ``type``."""
    type: DramType | None = None
    latency: Latency
    """From a request to its first byte; with ``timing``, what comes on top of its own."""
    keeps: Roles = Field(default=["input", "weight", "output"])
    area: OffChipArea = 0.0
    leakage: OffChipPower = 0.0


class SramConfig(StrictModel):
    """A buffer of the whole chip."""

    kind: Literal["sram"]
    size: SramSize
    keeps: Roles
    """The operands that pass through it; others go by."""
    read_bandwidth: SramBandwidth
    write_bandwidth: SramBandwidth
    shared_port: bool = False
    """Reads and writes take turns."""
    word: WordSize = 8
    """Width of one access of its macro: a wider one costs less energy per byte."""
    read_energy: SramEnergy = "auto"
    write_energy: SramEnergy = "auto"
    latency: AccessTime = "auto"
    double_buffered: bool = True
    """A tile that is replaced needs room for its successor too."""
    final_outputs: Literal["narrow", "wide"] = "narrow"
    """Outputs that are final are kept in their own width, or as wide as partial sums."""
    may_bypass: Annotated[list[Role], AfterValidator(distinct)] = Field(default=[])
    """Operands that a mapping may also lead past it."""
    area: Area = "auto"
    leakage: Leakage = "auto"


class RegistersConfig(StrictModel):
    """Registers; sizes, bandwidths, area and leakage are of one instance."""

    kind: Literal["registers"]
    per: Literal["chip", "column", "row", "pe"]
    """What each has an instance of its own."""
    size: RegisterSize
    keeps: Roles
    read_bandwidth: SramBandwidth = "unlimited"
    write_bandwidth: SramBandwidth = "unlimited"
    may_bypass: Annotated[list[Role], AfterValidator(distinct)] = Field(default=[])
    """Operands that a mapping may also lead past it."""
    read_energy: RegisterEnergy = "auto"
    """Of each operand that is read."""
    write_energy: RegisterEnergy = "auto"
    latency: Latency = 0
    double_buffered: bool = True
    """The next tile is loaded behind the one in use, as arrays load their next weights."""
    area: Area = "auto"
    leakage: Leakage = "auto"


class NocConfig(StrictModel):
    """A network between the innermost ``sram`` and the array (and the vector unit)."""

    kind: Literal["noc"]
    source: str
    """The ``sram`` that it comes from."""
    topology: Literal["crossbar", "mesh", "ring"]
    rows: Extent
    """Rows of nodes; the rows of the array are divided over them."""
    cols: Extent
    link_bandwidth: SramBandwidth
    """Of one link in one direction."""
    hop_latency: Latency
    switching: Literal["wormhole", "store_and_forward"] = "wormhole"
    """Whether a packet goes on as it arrives, or only when it is complete."""
    packet: WordSize = 64
    """Size of a packet, for ``store_and_forward``."""
    multicast: bool = True
    """What several nodes want crosses a link once."""
    energy: SramEnergy
    """Per byte and link."""


class PeArrayConfig(StrictModel):
    """The array. Energy, area and leakage are of one multiply-accumulate unit."""

    kind: Literal["pe_array"]
    rows: Extent
    cols: Extent
    dataflow: Literal[
        "weight_stationary", "output_stationary", "input_stationary", "row_stationary", "free"
    ]
    """Which loops the rows and columns may unroll."""
    interconnect: Literal["systolic", "broadcast"]
    """Operands move one element per cycle (a tile ends ``rows + cols - 2`` cycles after its last
    issue), or reach every element at once."""
    latches: Annotated[list[Role], AfterValidator(distinct)] = Field(default=[])
    """Operands that a latch holds while they stay the same from step to step: memories are then
    accessed when they change, not for every operation. Latches cost nothing."""
    mac_pipeline: Stages
    """Cycles from a product's operands to its sum."""
    folds: Literal["hidden", "exposed"] = "hidden"
    """How a new tile of the operand that stays in the array comes in: behind the products of the
    last one, or ``exposed``: shifted in row by row (results are not), then operands enter and
    results leave skewed, and only then the next tile."""
    turnaround: Stages = 0
    """Cycles at the end of an exposed fold, after its last result."""
    dtypes: Dtypes
    """Types of the operands; one narrower than the multiplier is sign-extended."""
    skips: Skips = Field(default=[])
    """Zeros that take neither time nor energy: of ``block`` or (say) ``2:4`` sparse operands, or
    ``unstructured``."""
    mac_energy: OperationEnergy = "auto"
    area: Area = "auto"
    leakage: Leakage = "auto"


class VectorUnitConfig(StrictModel):
    """Lanes for what is not a contraction. Energy, area and leakage are of one lane."""

    kind: Literal["vector_unit"]
    lanes: Extent
    pipeline: Stages
    """Cycles from operands to result."""
    operations: Annotated[list[VectorOperation], AfterValidator(at_least_one)]
    dtypes: Dtypes
    op_energy: OperationEnergy = "auto"
    area: Area = "auto"
    leakage: Leakage = "auto"


ComponentConfig = Annotated[
    DramConfig | SramConfig | RegistersConfig | NocConfig | PeArrayConfig | VectorUnitConfig,
    Field(discriminator="kind"),
]


class SpatialConfig(StrictModel):
    """An architecture of family ``spatial``."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    """The name of the file."""
    family: Literal["spatial"]
    description: Annotated[str, Field(min_length=1)]
    sources: list[str] = Field(default=[])
    """Where the parameters come from."""
    clock: Clock
    technology: Node
    """The node from which ``auto`` energies, areas, leakages and access times are taken."""
    corner: Corner = "nominal"
    """Which end of the range of sources ``auto`` values are taken from."""
    streamed: Annotated[list[Role], AfterValidator(distinct)] = Field(default=[])
    """Operands that no memory on the chip keeps, on purpose."""
    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    """Copies of everything but the dram, which they share; sizes and rates are of one core."""
    components: dict[str, ComponentConfig]
    """From the outermost memory inwards, then the units that compute."""

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
        yield from _folds(components, kinds)
        yield from _network(components, kinds)
        if all(kind in _KINDS for kind in kinds.values()):
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
        ("noc", 0, 1),
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
_KINDS = (*_DEPTH, "noc", "pe_array", "vector_unit")


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
        yield from _timing(("components", name), dram)


#: What stays in the array by dataflow, and whether it is shifted in (results arise in place).
STATIONARY: Mapping[str, tuple[Role, bool]] = {
    "weight_stationary": ("weight", True),
    "input_stationary": ("input", True),
    "output_stationary": ("output", False),
}


def _folds(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """Exposed folds need something that stays, and a place where it stays."""
    for name, array in components.items():
        if kinds[name] != "pe_array":
            continue
        if array.get("folds") != "exposed":
            if array.get("turnaround", 0) != 0:
                message = "a turnaround is part of a fold: needs 'folds: exposed'"
                yield Finding(("components", name, "turnaround"), message)
            continue
        role, _ = STATIONARY.get(str(array.get("dataflow")), (None, False))
        kept = [
            n
            for n, kind in kinds.items()
            if kind == "registers"
            and components[n].get("per") == "pe"
            and role in _roles(components[n])
        ]
        if role is None:
            message = (
                f"exposed folds need a dataflow in which a tile stays: {', '.join(STATIONARY)}"
            )
            yield Finding(("components", name, "folds"), message)
        elif not kept:
            message = f"exposed folds need 'registers' with 'per: pe' that keep '{role}'"
            yield Finding(("components", name, "folds"), message)


def _network(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """It joins the innermost buffer with what computes."""
    srams = [name for name, kind in kinds.items() if kind == "sram"]
    for name, kind in kinds.items():
        if kind != "noc":
            continue
        network = components[name]
        if srams and network.get("source") != srams[-1]:
            message = f"must be '{srams[-1]}', the innermost sram"
            yield Finding(("components", name, "source"), message)
        for key in ("link_bandwidth", "energy"):
            if network.get(key) in ("unlimited", "auto"):
                yield Finding(("components", name, key), "must be a number")


def _timing(path: tuple[str, str], dram: Mapping[str, Any]) -> Iterator[Finding]:
    """Its bandwidth is the timing's own."""
    timed, auto = dram.get("timing") is not None, dram.get("bandwidth") == "auto"
    if auto and not timed:
        yield Finding((*path, "bandwidth"), "'auto' needs 'timing'")
    if timed and "bandwidth" in dram and not auto:
        yield Finding((*path, "bandwidth"), "must be 'auto', since 'timing' says what it is")


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
    misread = not isinstance(streamed, list) or any(role not in ROLES for role in kept)
    undecided = any("keeps" not in components[name] for name in on_chip)
    if misread or undecided or not on_chip:
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
