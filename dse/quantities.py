"""What a search may minimise or limit: the named results of a trial, with their units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """``name`` as people write it, ``key`` as records hold it (with the unit)."""

    name: str
    key: str
    meaning: str


QUANTITIES = {
    q.name: q
    for q in (
        Quantity(name="latency", key="latency_ps", meaning="time of one run of the workload"),
        Quantity(name="energy", key="energy_pj", meaning="dynamic plus leakage energy of a run"),
        Quantity(name="area", key="area_mm2", meaning="silicon area, off-chip memory excluded"),
        Quantity(name="power", key="power_w", meaning="energy over latency"),
        Quantity(name="edp", key="edp_js", meaning="energy times latency, in joule seconds"),
    )
}
