"""Energy of a DRAM from its supply currents and what it did.

The formulas are those of DRAMPower 6 (commit d8b980ab), core part: a command costs what flows
beyond the background while it runs; the background depends on how many banks are open, of which
the share ``rho`` is common to all. Voltage times current times nanoseconds are picojoules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arch.dram_device import Currents, DramDevice

PS_PER_NS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What all ranks did together, in cycles and commands. ``bank_open_cycles`` adds up all
    banks, ``open_cycles`` counts cycles of ranks with any bank open, of ``rank_cycles`` in all.
    A precharge that came with an access counts as one."""

    activates: int = 0
    precharges: int = 0
    reads: int = 0
    writes: int = 0
    refreshes: int = 0
    bank_refreshes: int = 0
    bank_open_cycles: int = 0
    open_cycles: int = 0
    rank_cycles: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """Currents in mA that the formulas derive: of the shared background, of one open bank
    alone, and while a bank is opened."""

    shared: float
    one_bank: float
    opening: float


def _levels(device: DramDevice, currents: Currents) -> _Levels:
    ras, rp = device.parameters["RAS"], device.parameters["RP"]
    shared = currents.rho * (currents.idd3n - currents.idd2n) + currents.idd2n
    return _Levels(
        shared=shared,
        one_bank=(currents.idd3n + (device.banks - 1) * shared) / device.banks,
        opening=(currents.idd0 * (rp + ras) - currents.i_beta * rp) / ras,
    )


def energy_pj(device: DramDevice, currents: Currents, done: Activity) -> Mapping[str, float]:
    """Energy of all devices by cause. A refresh keeps all banks open for its time."""
    p, level = device.parameters, _levels(device, currents)
    refresh_cycles = done.refreshes * p["RFC"]
    bank_open = done.bank_open_cycles + device.banks * refresh_cycles
    bank_open += done.bank_refreshes * p["RFCPB"]
    rank_open = min(done.open_cycles + refresh_cycles, done.rank_cycles)
    idd5b = currents.idd5b - currents.idd3n
    milliampere_cycles = {
        "activate": done.activates * (level.opening - level.one_bank) * p["RAS"],
        "precharge": done.precharges * (currents.i_beta - currents.idd2n) * p["RP"],
        "read": done.reads * (currents.idd4r - currents.idd3n) * p["BURST"],
        "write": done.writes * (currents.idd4w - currents.idd3n) * p["BURST"],
        "refresh": refresh_cycles * idd5b + done.bank_refreshes * p["RFC"] * idd5b / device.banks,
        "background_open": bank_open * (level.one_bank - level.shared) + rank_open * level.shared,
        "background_closed": (done.rank_cycles - rank_open) * currents.idd2n,
    }
    scale = currents.vdd * device.cycle_ps / PS_PER_NS * device.devices_per_rank
    return {cause: amount * scale for cause, amount in milliampere_cycles.items()}
