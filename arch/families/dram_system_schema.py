"""The configuration of family ``dram_system``: a memory with its timing and its controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from arch import quantity, units
from arch.dram_device import ADDRESS_FIELDS
from arch.fields import Between, DramEnergy, DramType
from arch.quantity import Quantity
from arch.schema import Finding, StrictModel
from arch.timing import PARAMETERS


def _address_map(text: str) -> str:
    fields = text.split() if " " in text else [text[i : i + 2] for i in range(0, len(text), 2)]
    if sorted(fields) != sorted(ADDRESS_FIELDS):
        each = ", ".join(f"{short} ({meaning})" for short, meaning in ADDRESS_FIELDS.items())
        raise ValueError(
            f"'{text}' is not an address map; write each of {each} once, the most significant "
            "first, as in 'ro ra bg ba ch co'"
        )
    return " ".join(fields)


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError(f"{value} is not a power of two, as addresses need")
    return value


Channels = Annotated[int, Between(1, 64), AfterValidator(_power_of_two)]
Ranks = Annotated[int, Between(1, 8), AfterValidator(_power_of_two)]
Banks = Annotated[int, Between(1, 32), AfterValidator(_power_of_two)]
Rows = Annotated[int, Between(1, 1 << 20), AfterValidator(_power_of_two)]
Cycles = Annotated[int, Between(0, 100_000)]
Period = Annotated[
    int,  # 10 GHz to 50 MHz
    Quantity(parse=quantity.time, show=units.format_time_ps, low=100, high=20_000),
]
Bytes = Annotated[
    int,
    Quantity(parse=quantity.size, show=units.format_size, low=1, high=1 << 20),
    AfterValidator(_power_of_two),
]
Milliamperes = Annotated[float, Field(ge=0, le=5000)]
Volts = Annotated[float, Field(gt=0, le=5)]


class CurrentsConfig(StrictModel):
    """Supply currents in mA of one device; names as in data sheets."""

    VDD: Volts
    IDD0: Milliamperes
    IDD2N: Milliamperes
    IDD3N: Milliamperes
    IDD4R: Milliamperes
    IDD4W: Milliamperes
    IDD5B: Milliamperes
    """While refreshing all banks."""
    IBETA: Milliamperes | None = None
    """While precharging; as IDD0 if absent."""
    RHO: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The part of IDD3N - IDD2N that does not depend on how many banks are active."""


class DramChannelsConfig(StrictModel):
    """Equal channels. Times are in cycles of the command clock, ``tCK``."""

    kind: Literal["dram_channels"]
    tCK: Period  # noqa: N815 (the name that every data sheet uses)
    channels: Channels
    ranks: Ranks = 1
    bank_groups: Banks
    banks_per_group: Banks
    rows: Rows
    row_size: Bytes
    """What one ACT opens, all devices of the rank together."""
    burst_size: Bytes
    """What one RD moves."""
    row_and_column_bus: bool = False
    """A row and a column command may be given in the same cycle, as HBM has it."""
    pseudo_channels: bool = False
    """The ranks share the command buses only: each has a data bus of its own."""
    devices_per_rank: Annotated[int, Between(1, 64)]
    type: DramType | None = None
    energy: DramEnergy = "auto"
    """Per bit moved, where no currents are known: the price in a network's simulation."""

    BURST: Cycles
    CL: Cycles
    CWL: Cycles
    RCDRD: Cycles
    RCDWR: Cycles
    RP: Cycles
    RAS: Cycles
    RC: Cycles
    CCD_S: Cycles
    CCD_L: Cycles
    CCD_L_WR: Cycles
    RRD_S: Cycles
    RRD_L: Cycles
    FAW: Cycles
    AW32: Cycles = 0
    WTR_S: Cycles
    WTR_L: Cycles
    RTP: Cycles
    WR: Cycles
    RTW: Cycles
    RTRS: Cycles
    WTW_RANK: Cycles = 0
    PPD: Cycles = 0
    RDA_EXTRA: Cycles = 0
    RFC: Cycles
    REFI: Cycles
    RFCPB: Cycles = 0
    RREFD: Cycles = 0
    REFIPB: Cycles = 0
    ACT_BUS: Annotated[int, Between(1, 8)] = 1

    address_map: Annotated[str, AfterValidator(_address_map)]
    page: Literal["open", "closed"] = "open"
    scheduler: Literal["fr_fcfs", "fcfs"] = "fr_fcfs"
    queue: Literal["per_bank", "shared"] = "per_bank"
    queue_depth: Annotated[int, Between(1, 64)] = 8
    """Commands that can wait in one queue."""
    transaction_depth: Annotated[int, Between(1, 1024)] = 32
    """Reads, and likewise writes, that can wait in a channel for room in the queues."""
    row_hit_limit: Annotated[int, Between(1, 1024)] = 4
    """After so many accesses a row may be closed although more of them are waiting."""
    refresh: Literal["all_bank", "per_bank", "none"] = "all_bank"
    inject_per_cycle: Annotated[int, Between(1, 64)] = 64
    """Requests that whoever uses the memory can give it in a cycle."""
    currents: CurrentsConfig | None = None


class DramFamilyConfig(StrictModel):
    name: str
    family: Literal["dram_system"]
    description: str
    sources: list[str]
    components: dict[str, DramChannelsConfig]

    @classmethod
    def structure(cls, data: Mapping[str, Any]) -> Iterator[Finding]:
        components = data.get("components")
        if not isinstance(components, Mapping):
            return
        if len(components) != 1:
            message = f"{len(components)} components; allowed one, of kind 'dram_channels'"
            yield Finding(("components",), message)
        for name, component in components.items():
            if isinstance(component, Mapping):
                yield from _together(("components", name), component)


def _together(path: tuple[str, str], component: Mapping[str, Any]) -> Iterator[Finding]:
    """What no single field can say."""
    if component.get("refresh") == "per_bank" and not component.get("REFIPB"):
        message = "'per_bank' needs REFIPB, RFCPB and RREFD, which this device has not"
        yield Finding((*path, "refresh"), message)
    if component.get("ACT_BUS", 1) != 1 and component.get("queue") != "shared":
        message = "more than one cycle for an ACT is modelled with 'queue: shared' only"
        yield Finding((*path, "ACT_BUS"), message)
    yield from _refresh_fits(path, component)


def _refresh_fits(path: tuple[str, str], component: Mapping[str, Any]) -> Iterator[Finding]:
    """Rows are closed and refreshed before the next refresh falls due."""
    refresh = component.get("refresh", "all_bank")
    fields = DramChannelsConfig.model_fields
    names = ("ranks", "bank_groups", "banks_per_group", *PARAMETERS)
    p = {name: component.get(name, fields[name].default) for name in names}
    if any(type(value) is not int for value in p.values()):
        return
    row = max(
        p["RC"],
        p["RAS"] + p["RP"],
        p["RCDRD"] + p["RTP"] + p["RP"],
        p["RCDWR"] + p["CWL"] + p["BURST"] + p["WR"] + p["RP"],
    )
    banks = p["bank_groups"] * p["banks_per_group"]
    if refresh == "all_bank":
        least = p["RFC"] + p["ranks"] * (row + banks * max(1, p["PPD"]))
        yield from _at_least(path, "REFI", p, least)
    elif refresh == "per_bank" and p["REFIPB"]:
        between_banks = p["ranks"] * (row + 1) + p["RREFD"]
        yield from _at_least(path, "REFIPB", p, max(between_banks, -(-(p["RFCPB"] + row) // banks)))


def _at_least(
    path: tuple[str, str], period: str, p: Mapping[str, int], least: int
) -> Iterator[Finding]:
    if p[period] < least:
        message = (
            f"{p[period]} is not allowed; allowed {least} cycles or more, in which rows can be "
            "closed and refreshed; for a memory without refresh write refresh: none"
        )
        yield Finding((*path, period), message)
