"""Energy of a DRAM: DRAMPower's own test vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arch.dram_device import Currents, DramChannels
from arch.load import load_architecture
from sim.devices.dram_energy import Activity, energy_pj

# DRAMPower 6 (commit d8b980ab), tests of the DDR4 core: currents, times, and what comes out for
# three command sequences (in pJ, as printed).
CURRENTS = Currents(
    vdd=1.2,
    idd0=56.25,
    idd2n=33.75,
    idd3n=39.5,
    idd4r=157.5,
    idd4w=135,
    idd5b=118,
    i_beta=56.25,
    rho=0.5,
)
TIMES = {"RAS": 10, "RP": 10, "RFC": 25, "BURST": 4}
GIGAHERTZ = 1.3
VECTORS = [
    # ACT at 0, PRE at 15, end at 15
    (
        Activity(activates=1, precharges=1, bank_open_cycles=15, open_cycles=15, rank_cycles=15),
        {"activate": 179, "precharge": 208, "background_open": 510},
        897,
    ),
    # ACT at 0, RD at 15, PRE at 35, end at 50
    (
        Activity(
            activates=1,
            precharges=1,
            reads=1,
            bank_open_cycles=35,
            open_cycles=35,
            rank_cycles=50,
        ),
        {
            "activate": 179,
            "precharge": 208,
            "read": 436,
            "background_open": 1189,
            "background_closed": 467,
        },
        2479,
    ),
    # ACT bank 0 at 0, ACT bank 3 at 20, three RD, all closed at 50, REF at 65, end at 100
    (
        Activity(
            activates=2,
            precharges=2,
            reads=3,
            refreshes=1,
            bank_open_cycles=50 + 30,
            open_cycles=50,
            rank_cycles=100,
        ),
        {
            "activate": 359,
            "precharge": 415,
            "read": 1307,
            "refresh": 1812,
            "background_open": 2615,
            "background_closed": 779,
        },
        7287,
    ),
]


@pytest.mark.parametrize(("done", "parts", "total"), VECTORS)
def test_the_vectors_of_drampower(done: Activity, parts: dict[str, int], total: int) -> None:
    (memory,) = load_architecture("ddr4_2400_1rank").memories
    assert isinstance(memory, DramChannels)
    device = replace(
        memory.device,
        cycle_ps=1000 / GIGAHERTZ,
        devices_per_rank=1,
        parameters={**memory.device.parameters, **TIMES},
    )
    found = energy_pj(device, CURRENTS, done)
    assert {cause: round(found[cause]) for cause in parts} == parts
    assert round(sum(found.values())) == total
