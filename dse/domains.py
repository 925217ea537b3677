"""The values of a parameter, from the short forms in which a configuration declares them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from arch import units
from arch.errors import InputError, Problem

#: More values than this in one parameter is surely a slip (a step in the wrong unit).
MAX_VALUES = 1000

_NUMBER = re.compile(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")

_TABLES = (
    units.SIZE,
    units.RATE,
    units.PER_CYCLE,
    units.FREQUENCY,
    units.TIME,
    units.CYCLES,
    units.ENERGY,
    units.ENERGY_PER_BYTE,
    units.POWER,
    units.AREA,
    units.LENGTH,
)


def choices(values: Sequence[Any]) -> tuple[tuple[Any, ...], bool]:
    """The values, and whether they have an order: numbers and quantities are sorted."""
    if len(values) < 1:
        raise _wrong("must list at least one value")
    repeated = [v for i, v in enumerate(values) if _in(v, values[:i])]
    if repeated:
        raise _wrong(f"lists {repeated[0]!r} more than once")
    sizes = magnitudes(values)
    if sizes is None:
        return tuple(values), False
    if len(set(sizes)) < len(sizes):
        raise _wrong(f"lists the same quantity twice: {', '.join(map(str, values))}")
    return tuple(v for _, v in sorted(zip(sizes, values, strict=True), key=lambda x: x[0])), True


def pow2(bounds: Sequence[Any]) -> tuple[Any, ...]:
    """From the first bound doubling up to the last: ``[32 KiB, 2 MiB]``."""
    low, high = _bounds(bounds)
    if low <= 0:
        raise _wrong(f"must start above zero to be doubled, not at {bounds[0]!r}")
    ratio = high / low
    if ratio.denominator != 1 or ratio.numerator & (ratio.numerator - 1):
        raise _wrong(
            f"{bounds[1]!r} is not {bounds[0]!r} doubled some number of times; their ratio is "
            f"{float(ratio):g}, not a power of two"
        )
    doublings = ratio.numerator.bit_length()
    if doublings > MAX_VALUES:
        raise _too_many(doublings)
    return tuple(_scaled(bounds[0], Fraction(2**i)) for i in range(doublings))


def stepped(bounds: Sequence[Any], step: Any) -> tuple[Any, ...]:
    """From the first bound to the last in equal steps; the last must be reached."""
    low, high = _bounds(bounds)
    found = magnitudes([bounds[0], step])
    if found is None or isinstance(step, bool):
        raise _wrong(f"the step {step!r} is not a quantity like {bounds[0]!r}")
    if found[1] <= 0:
        raise _wrong(f"the step {step!r} must be above zero")
    steps = (high - low) / found[1]
    if steps.denominator != 1:
        raise _wrong(f"steps of {step!r} from {bounds[0]!r} do not reach {bounds[1]!r} exactly")
    if steps >= MAX_VALUES:
        raise _too_many(int(steps) + 1)
    template, value = (bounds[0], low) if low else (bounds[1], high)
    return tuple(_scaled(template, (low + i * found[1]) / value) for i in range(int(steps) + 1))


def magnitudes(values: Sequence[Any]) -> list[Fraction] | None:
    """Comparable numbers of values that are all numbers or all quantities of one kind."""
    if any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in values):
        return None
    if all(isinstance(v, int | float) for v in values):
        return [Fraction(str(v)) for v in values]
    for table in _TABLES:
        found = _in_units(values, table)
        if found is not None:
            return found
    return None


def _in_units(values: Sequence[Any], table: units.Units) -> list[Fraction] | None:
    try:
        return [units.parse(v, table, "a quantity", "1") for v in values]
    except InputError:
        return None


def _bounds(bounds: Sequence[Any]) -> tuple[Fraction, Fraction]:
    found = magnitudes(bounds)
    if found is None or len(bounds) != 2:
        raise _wrong(f"must be two quantities of one kind, [lowest, highest], not {list(bounds)}")
    if found[0] >= found[1]:
        raise _wrong(f"is empty: {bounds[0]!r} is not below {bounds[1]!r}")
    return found[0], found[1]


def _scaled(template: Any, factor: Fraction) -> Any:
    """``template`` times ``factor``, written likewise (sizes in the largest unit that is exact)."""
    number = _NUMBER.match(str(template))
    if number is None:
        raise ValueError(f"{template!r} was read as a quantity but has no number")
    product = Fraction(number[0]) * factor
    plain = int(product) if product.denominator == 1 else float(product)
    if not isinstance(template, str):
        return plain
    text = f"{plain} {template[number.end() :].strip()}"
    size = _in_units([text], units.SIZE)
    short = "" if size is None else units.format_size(float(size[0]))
    return short if short and _in_units([short], units.SIZE) == size else text


def _in(value: Any, values: Sequence[Any]) -> bool:
    return any(type(value) is type(v) and value == v for v in values)


def _wrong(message: str) -> InputError:
    return InputError(Problem(message))


def _too_many(count: int) -> InputError:
    return _wrong(f"has {count} values; allowed at most {MAX_VALUES}; is the unit right?")


def expand(form: Mapping[str, Any]) -> tuple[tuple[Any, ...], bool]:
    """Values and whether they are ordered; ``form`` holds exactly one of the short forms."""
    if "choices" in form:
        return choices(form["choices"])
    if "pow2" in form:
        return pow2(form["pow2"]), True
    return stepped(form["range"], form.get("step", 1)), True
