"""The configuration of family ``spatial``: fields, limits, and rules between components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from arch import units
from arch.errors import InputError
from arch.families.spatial_rules import rule_findings
from arch.fields import (
    MAX_CLOCK_HZ,
    MIN_CLOCK_HZ,
    AccessTime,
    Area,
    BankCount,
    Clock,
    Corner,
    DramBandwidth,
    DramEnergy,
    DramSize,
    DramType,
    Dtypes,
    Extent,
    Interleave,
    Latency,
    Leakage,
    Node,
    NodeArea,
    OffChipArea,
    OffChipPower,
    OperationEnergy,
    QueueDepth,
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

Requester = Literal["compute", "load", "store"]


class Arbitrated(StrictModel):
    """What requests for a port that is busy have to expect, at event fidelity."""

    arbitration: Literal["fifo", "priority", "round_robin"] = "fifo"
    """Who is served next: who asked first, by ``priority``, or each in turn."""
    priority: Annotated[list[Requester], AfterValidator(at_least_one)] = Field(
        default=["compute", "load", "store"]
    )
    """The first goes first, those left out last; of one kind the lower operand goes first."""
    queue: QueueDepth = "unlimited"
    """Requests that may wait at each port. Who finds it full is held back, and keeps what it has
    got until it is let in."""


class DramConfig(Arbitrated):
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


class SramConfig(Arbitrated):
    """A buffer of the whole chip."""

    kind: Literal["sram"]
    size: SramSize
    keeps: Roles
    """The operands that pass through it; others go by."""
    read_bandwidth: SramBandwidth
    write_bandwidth: SramBandwidth
    shared_port: bool = False
    """Reads and writes take turns (in each bank)."""
    banks: BankCount = 1
    """They share the bandwidths; at event fidelity accesses to one bank wait for each other."""
    interleave: Interleave = 64
    """With several banks: how many consecutive bytes are in one of them."""
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


class RegistersConfig(Arbitrated):
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


class NocConfig(Arbitrated):
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
    area: NodeArea = "unknown"
    """Of one node: its router and its links. While unknown, results say that the chip's area is
    without the network."""


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
        yield from rule_findings(data, set(cls.model_fields))
