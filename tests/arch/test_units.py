"""Units: is what was written what is read, and is what is printed what was meant?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch import units
from arch.errors import InputError

BINARY = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@given(st.integers(0, 10**6), st.sampled_from(sorted(BINARY | DECIMAL)))
def test_a_whole_number_of_any_size_unit_is_exact(count: int, unit: str) -> None:
    assert units.parse_size(f"{count} {unit}") == count * (BINARY | DECIMAL)[unit]


@given(st.integers(0, 2**60))
def test_bytes_survive_a_round_trip_to_four_digits(size_bytes: int) -> None:
    text = units.format_size(size_bytes)
    number, unit = text.split(" ")
    assert math.isclose(float(number) * BINARY[unit], size_bytes, rel_tol=5e-4)


@given(st.integers(1, 1023), st.sampled_from(["KiB", "MiB", "GiB"]))
def test_a_whole_number_of_units_prints_as_it_was_written(count: int, unit: str) -> None:
    assert units.format_size(units.parse_size(f"{count} {unit}")) == f"{count} {unit}"


@pytest.mark.parametrize(
    ("parse", "show"),
    [
        (units.parse_energy, units.format_energy_pj),
        (units.parse_energy_per_byte, units.format_energy_per_byte),
        (units.parse_energy_per_byte, units.format_energy_per_bit),
        (units.parse_power, units.format_power_w),
        (units.parse_area, units.format_area_mm2),
    ],
)
@given(st.floats(1e-6, 1e6))
def test_what_is_printed_reads_back_to_four_digits(parse, show, value: float) -> None:
    assert math.isclose(parse(show(value)), value, rel_tol=6e-4)


@given(st.integers(1, 10**15))
def test_times_read_back_to_four_digits(time_ps: int) -> None:
    assert math.isclose(units.parse_time(units.format_time_ps(time_ps)), time_ps, rel_tol=6e-4)


@given(st.integers(1, 10**13))
def test_bandwidths_read_back_to_four_digits(bytes_per_s: int) -> None:
    text = units.format_bandwidth(bytes_per_s)
    assert math.isclose(units.parse_bandwidth(text, 10**9), bytes_per_s, rel_tol=6e-4)


@given(st.integers(1, 4096), st.integers(10**6, 5 * 10**9))
def test_bytes_per_cycle_are_exact_at_any_clock(width: int, clock_hz: int) -> None:
    assert units.parse_bandwidth(f"{width} B/cycle", clock_hz) == width * clock_hz


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: units.parse_size("256 KiB"), 262_144),
        (lambda: units.parse_size("256KiB"), 262_144),
        (lambda: units.parse_size("1.5 KiB"), 1536),
        (lambda: units.parse_size("64 bit"), 8),
        (lambda: units.parse_size("0"), 0),
        (lambda: units.parse_bandwidth("16 GB/s", 1), 16 * 10**9),
        (lambda: units.parse_bandwidth("128 bit/cycle", 10**9), 16 * 10**9),
        (lambda: units.parse_bandwidth("8 Gbit/s", 1), 10**9),
        (lambda: units.parse_frequency("1.2 GHz"), 1_200_000_000),
        (lambda: units.parse_time("100 ns"), 100_000),
        (lambda: units.parse_time("3 cycles", 700_000_000), 4286),
        (lambda: units.parse_energy("0.2 pJ"), 0.2),
        (lambda: units.parse_energy_per_byte("8 pJ/bit"), 64.0),
        (lambda: units.parse_energy_per_byte("64 pJ/B"), 64.0),
        (lambda: units.parse_power("35.4 µW"), 35.4e-6),
        (lambda: units.parse_area("250 um²"), 250e-6),
        (lambda: units.parse_length("22 nm"), 22),
        (lambda: units.format_size(262_144), "256 KiB"),
        (lambda: units.format_size(1000), "1000 B"),
        (lambda: units.format_time_ps(1_234_567), "1.235 us"),
        (lambda: units.format_energy_pj(0), "0 pJ"),
        (lambda: units.format_area_mm2(0.3123), "0.3123 mm2"),
        (lambda: units.format_area_mm2(0.00025), "250 um2"),
        (lambda: units.format_bandwidth(16e9), "16 GB/s"),
        (lambda: units.format_frequency(700e6), "700 MHz"),
        (lambda: units.format_length_nm(22), "22 nm"),
    ],
)
def test_known_values(call, value: object) -> None:
    assert call() == value


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (units.parse_size, "256 KB", "write KiB (1024 bytes) or kB (1000 bytes)"),
        (units.parse_size, "256 Kib", "did you mean 'KiB'?"),
        (units.parse_size, "1.3 B", "not a whole number"),
        (units.parse_size, "256", "has no unit"),
        (units.parse_size, 256, "256 has no unit"),
        (units.parse_size, True, "expected a size"),
        (units.parse_size, None, "expected a size"),
        (units.parse_size, "big", "expected a size"),
        (units.parse_size, "nan B", "expected a size"),
        (units.parse_energy, "1e999 J", "unknown unit 'e999 J'"),
        (units.parse_energy, "9" * 400 + " J", "expected an energy"),
        (units.parse_size, "1_000 B", "unknown unit"),
        (units.parse_time, "3 cycles", "unknown unit 'cycles'"),
        (units.parse_energy, "8 pJ/bit", "unknown unit 'pJ/bit'"),
        (units.parse_energy_per_byte, "8 pJ", "unknown unit 'pJ'"),
        (units.parse_frequency, "1 gHz", "did you mean 'GHz'?"),
    ],
)
def test_what_is_not_a_quantity_is_refused(parse, text: object, expected: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text)
    assert expected in str(error.value)


@given(st.text(max_size=20))
def test_no_text_is_anything_but_a_quantity_or_an_input_error(text: str) -> None:
    for parse in (units.parse_size, units.parse_energy, units.parse_time, units.parse_area):
        try:
            assert math.isfinite(parse(text))
        except InputError:
            continue
