"""Quantities with units: text to numbers in the units of the records, and back for people.

Parsing is exact (rational arithmetic), so that sizes and rates are the integers that were
written. A unit is always required, because a bare number hides slips of 10^3 and more; only
zero needs none. Prefixes: ``KiB`` is 1024 bytes, ``kB`` 1000; ``KB`` is refused as ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from arch.errors import InputError, Problem, suggest

#: A number (short enough for a float) and the rest.
_MAX_LENGTH = 60
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*((?:[^\s\d].*?)?)\s*")

_SI = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_SMALL = {"f": -15, "p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}

Units = Mapping[str, Fraction]


def _ten(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


def _sizes() -> dict[str, Fraction]:
    units: dict[str, Fraction] = {}
    for name, size in (("B", Fraction(1)), ("bit", Fraction(1, 8))):
        units |= {prefix + name: size * _ten(power) for prefix, power in _SI.items()}
        units |= {prefix + name: size * 1024**power for prefix, power in _BINARY.items()}
    return units


#: Each table maps a unit to its value in the unit of the records.
SIZE: Units = _sizes()  # bytes
FREQUENCY: Units = {prefix + "Hz": _ten(power) for prefix, power in _SI.items()}  # hertz
TIME: Units = {p + "s": _ten(e + 12) for p, e in _SMALL.items() if p != "k"}  # picoseconds
ENERGY: Units = {prefix + "J": _ten(power + 12) for prefix, power in _SMALL.items()}  # pJ
POWER: Units = {prefix + "W": _ten(power) for prefix, power in _SMALL.items()}  # watts
AREA: Units = {"nm2": _ten(-12), "um2": _ten(-6), "mm2": Fraction(1), "cm2": _ten(2)}  # mm2
LENGTH: Units = {"nm": Fraction(1), "um": _ten(3), "mm": _ten(6)}  # nanometres
RATE: Units = {f"{unit}/s": value for unit, value in SIZE.items()}  # bytes per second
PER_CYCLE: Units = {f"{unit}/cycle": value for unit, value in SIZE.items()}  # bytes per cycle
CYCLES: Units = {"cycle": Fraction(1), "cycles": Fraction(1)}
ENERGY_PER_BYTE: Units = {
    f"{unit}/{per}": value * times
    for unit, value in ENERGY.items()
    for per, times in (("B", 1), ("bit", 8))
}

_AMBIGUOUS = {"KB": "write KiB (1024 bytes) or kB (1000 bytes)"}


def _fail(message: str) -> InputError:
    return InputError(Problem(message))


def _split(text: object, what: str, example: str) -> tuple[Fraction, str]:
    """The number and the unit of a quantity's text."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise _fail(f"expected {what} such as '{example}', got {text!r}")
    match = _NUMBER.fullmatch(str(text)[: _MAX_LENGTH + 1])
    if match is None or len(str(text)) > _MAX_LENGTH:
        raise _fail(f"expected {what} such as '{example}', got {text!r:.80}")
    unit = match[2].replace("\u00b5", "u").replace("\u03bc", "u").replace("\u00b2", "2")
    return Fraction(match[1]), unit


def parse(text: object, units: Units, what: str, example: str) -> Fraction:
    """The value of a quantity in the unit of the records; ``InputError`` if it is not one."""
    number, unit = _split(text, what, example)
    if not unit and number == 0:
        return Fraction(0)
    if not unit:
        raise _fail(f"{text!r} has no unit; write {what} such as '{example}'")
    if unit in units:
        return number * units[unit]
    bare = unit.partition("/")[0]
    hint = _AMBIGUOUS[bare] if bare in _AMBIGUOUS else suggest(unit, units)
    message = f"unknown unit '{unit}' in {text!r}; write {what} such as '{example}'"
    raise _fail(f"{message}; {hint}" if hint else message)


def _whole(value: Fraction, text: object, unit: str) -> int:
    if value.denominator != 1:
        raise _fail(f"{text!r} is {float(value):g} {unit}, not a whole number of them")
    return int(value)


def parse_size(text: object) -> int:
    """Bytes."""
    return _whole(parse(text, SIZE, "a size", "256 KiB"), text, "bytes")


def parse_bandwidth(text: object, clock_hz: int) -> int:
    """Bytes per second, from ``16 GB/s`` or ``16 B/cycle``; rounded to a whole byte."""
    value = parse(text, {**RATE, **PER_CYCLE}, "a bandwidth", "16 B/cycle' or '16 GB/s")
    return round(value * clock_hz) if _per_cycle(text) else round(value)


def parse_time(text: object, clock_hz: int | None = None) -> int:
    """Picoseconds, rounded; where the clock is known also from ``3 cycles``."""
    units = TIME if clock_hz is None else {**TIME, **CYCLES}
    value = parse(text, units, "a time", "100 ns")
    cycles = clock_hz is not None and _per_cycle(text)
    return round(value * 10**12 / clock_hz) if cycles and clock_hz else round(value)


def _per_cycle(text: object) -> bool:
    return "cycle" in str(text)


def parse_frequency(text: object) -> int:
    """Hertz."""
    return _whole(parse(text, FREQUENCY, "a frequency", "1 GHz"), text, "hertz")


def parse_energy(text: object) -> float:
    """Picojoules."""
    return float(parse(text, ENERGY, "an energy", "0.2 pJ"))


def parse_energy_per_byte(text: object) -> float:
    """Picojoules per byte, from ``64 pJ/B`` or ``8 pJ/bit``."""
    return float(parse(text, ENERGY_PER_BYTE, "an energy per byte or bit", "8 pJ/bit"))


def parse_power(text: object) -> float:
    """Watts."""
    return float(parse(text, POWER, "a power", "2 mW"))


def parse_area(text: object) -> float:
    """Square millimetres."""
    return float(parse(text, AREA, "an area", "0.2 mm2"))


def parse_length(text: object) -> int:
    """Nanometres."""
    return _whole(parse(text, LENGTH, "a length", "22 nm"), text, "nm")


def _engineering(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Four significant digits in the largest unit that gives at least 1 (else the smallest)."""
    if value == 0:
        return f"0 {next(unit for scale, unit in steps if scale == 1)}"
    for scale, unit in steps:
        if abs(value) >= scale * 0.99995:
            return f"{_digits(value / scale)} {unit}"
    scale, unit = steps[-1]
    return f"{_digits(value / scale)} {unit}"


def _digits(number: float) -> str:
    """Up to four significant digits; whole numbers are never cut nor written as 1e+04."""
    if number == int(number):
        return str(int(number))
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.4g}"


_SIZE_STEPS = tuple(
    (1024.0**n, unit) for n, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB"), (0, "B"))
)
_RATE_STEPS = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_FREQUENCY_STEPS = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz"))
_TIME_STEPS = ((1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps"))
_ENERGY_STEPS = ((1e12, "J"), (1e9, "mJ"), (1e6, "uJ"), (1e3, "nJ"), (1.0, "pJ"), (1e-3, "fJ"))
_POWER_STEPS = ((1.0, "W"), (1e-3, "mW"), (1e-6, "uW"), (1e-9, "nW"))
_AREA_STEPS = ((1.0, "mm2"), (1e-6, "um2"))
#: Areas stay in mm2 down to here, since chips are compared in it.
_SMALLEST_MM2 = 0.01


def format_size(size_bytes: float) -> str:
    return _engineering(size_bytes, _SIZE_STEPS)


def format_bandwidth(bytes_per_s: float) -> str:
    return _engineering(bytes_per_s, _RATE_STEPS)


def format_frequency(hz: float) -> str:
    return _engineering(hz, _FREQUENCY_STEPS)


def format_time_ps(time_ps: float) -> str:
    return _engineering(time_ps, _TIME_STEPS)


def format_energy_pj(energy_pj: float) -> str:
    return _engineering(energy_pj, _ENERGY_STEPS)


def format_energy_per_byte(pj_per_byte: float) -> str:
    return f"{format_energy_pj(pj_per_byte)}/B"


def format_energy_per_bit(pj_per_byte: float) -> str:
    return f"{format_energy_pj(pj_per_byte / 8)}/bit"


def format_power_w(power_w: float) -> str:
    return _engineering(power_w, _POWER_STEPS)


def format_area_mm2(area_mm2: float) -> str:
    in_mm2 = abs(area_mm2) >= _SMALLEST_MM2
    return _engineering(area_mm2, _AREA_STEPS[:1] if in_mm2 else _AREA_STEPS)


def format_length_nm(length_nm: float) -> str:
    return f"{length_nm:g} nm"
