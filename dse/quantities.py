"""What a search may minimise or limit: the named results of a trial, with their units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from arch import units
from arch.errors import InputError, Problem

#: Joule seconds.
_ENERGY_DELAY = {
    f"{energy}*{time}": joules * seconds
    for energy, joules in (
        ("J", Fraction(1)),
        ("mJ", Fraction(1, 1000)),
        ("uJ", Fraction(1, 10**6)),
    )
    for time, seconds in (("s", Fraction(1)), ("ms", Fraction(1, 1000)), ("us", Fraction(1, 10**6)))
}


def parse_energy_delay(text: object) -> float:
    """Joule seconds, from ``2 mJ*ms``."""
    return float(units.parse(text, _ENERGY_DELAY, "an energy-delay product", "2 mJ*ms"))


def _no_limit(text: object) -> float:
    raise InputError(Problem("'size' is an objective only: leave small networks out instead"))


def _format_macs(per_gmac: float) -> str:
    return f"{1e3 / per_gmac:,.3g} MMAC"


def format_energy_delay(edp_js: float) -> str:
    return f"{edp_js:.4g} J*s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """``name`` as people write it, ``key`` as records hold it (with the unit).

    ``parse`` reads a limit in the unit of ``key``; ``show`` writes a value for people.
    ``inverse``: people read the reciprocal, of which more is better.
    """

    name: str
    key: str
    meaning: str
    parse: Callable[[object], float]
    show: Callable[[float], str]
    inverse: bool = False


QUANTITIES = {
    q.name: q
    for q in (
        Quantity(
            name="latency",
            key="latency_ps",
            meaning="time of one run of the workload",
            parse=units.parse_time,
            show=units.format_time_ps,
        ),
        Quantity(
            name="energy",
            key="energy_pj",
            meaning="dynamic plus leakage energy of a run",
            parse=units.parse_energy,
            show=units.format_energy_pj,
        ),
        Quantity(
            name="area",
            key="area_mm2",
            meaning="silicon area, off-chip memory excluded",
            parse=units.parse_area,
            show=units.format_area_mm2,
        ),
        Quantity(
            name="ram",
            key="ram_bytes",
            meaning="most bytes of a microcontroller's SRAM in use",
            parse=units.parse_size,
            show=units.format_size,
        ),
        Quantity(
            name="size",
            key="per_gmac",
            meaning="how large the network is: its multiply-accumulates, the more the better",
            parse=_no_limit,
            show=_format_macs,
            inverse=True,
        ),
        Quantity(
            name="power",
            key="power_w",
            meaning="energy over latency",
            parse=units.parse_power,
            show=units.format_power_w,
        ),
        Quantity(
            name="edp",
            key="edp_js",
            meaning="energy times latency, in joule seconds",
            parse=parse_energy_delay,
            show=format_energy_delay,
        ),
    )
}
