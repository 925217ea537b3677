"""Is every constant of a component turned into the right price, and is nothing priced silently?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pytest

from arch.families.spatial import Dram, Registers
from arch.load import load_architecture
from arch.spec import Component, Memory
from mapper.program import Work
from sim import prices as registry
from sim.ports import occupancy_ps
from sim.prices import price, price_all, prices


@pytest.mark.parametrize("bytes_per_s", [1, 3, 4 * 10**9, 999_999_937])
def test_time_per_bit_is_exact(bytes_per_s: int) -> None:
    """Moving 8 * bandwidth bits takes one second, to the picosecond, for any bandwidth."""
    dram = _memory(bytes_per_s)
    assert price(dram).read_ps_per_bit == Fraction(10**12, 8 * bytes_per_s)
    work = {"m": Work(read_bits=8 * bytes_per_s)}
    assert occupancy_ps(work, {"m": price(dram)}) == {"m": 10**12}


def test_a_partial_picosecond_counts_once_per_request() -> None:
    entry = price(_memory(10**12))  # 1/8 ps per bit
    busy = [occupancy_ps({"m": Work(read_bits=bits)}, {"m": entry})["m"] for bits in (1, 8, 9)]
    assert busy == [1, 1, 2]


def test_unlimited_bandwidth_takes_no_time() -> None:
    registers = next(c for c in load_architecture("tiny").components if isinstance(c, Registers))
    assert registers.read_bytes_per_s is None
    assert occupancy_ps({"r": Work(read_bits=10**9)}, {"r": price(registers)}) == {}


def test_energy_is_per_byte_moved_and_per_operation() -> None:
    architecture = load_architecture("tiny")
    entries = price_all(architecture, price)
    assert entries["dram"].energy_pj(Work(read_bits=8)) == pytest.approx(80)  # 10 pJ/bit
    assert entries["buffer"].energy_pj(Work(write_bits=16)) == pytest.approx(0.4)  # 0.2 pJ/B
    assert entries["array"].energy_pj(Work(steps=1, operations=16)) == pytest.approx(3.2)


def test_separate_ports_are_told_apart_and_a_shared_one_adds_up() -> None:
    entries = price_all(load_architecture("tiny"), price)
    both = {name: Work(read_bits=320, write_bits=160) for name in ("dram", "buffer")}
    assert occupancy_ps(both, entries) == {  # 4 and 8 bytes per nanosecond
        "dram": 15_000,
        "buffer.read": 5_000,
        "buffer.write": 2_500,
    }


def test_an_unknown_type_has_no_price_even_if_its_base_has() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class FancyDram(Dram):
        pass

    fancy = FancyDram(**{f: getattr(_memory(1), f) for f in Dram.__dataclass_fields__})
    with pytest.raises(LookupError, match=r"no price for FancyDram \(m\).*Dram"):
        price(fancy)


def test_two_prices_of_one_type_are_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"Dram is priced by both sim\.devices\.spatial and"):
        prices(Dram)(lambda component: price(component))


def test_a_device_module_that_fails_to_import_stops_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(registry.importlib, "import_module", broken)
    registry.import_devices.cache_clear()
    with pytest.raises(ImportError):
        price(Component(name="anything"))
    monkeypatch.undo()
    registry.import_devices()


def _memory(bytes_per_s: int) -> Memory:
    return Dram(
        name="m",
        size_bytes=1,
        roles=("input",),
        read_bytes_per_s=bytes_per_s,
        write_bytes_per_s=bytes_per_s,
        shared_port=True,
        read_pj_per_byte=0.0,
        write_pj_per_byte=0.0,
    )
