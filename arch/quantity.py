"""Fields of a configuration that are quantities with a unit and a range that makes sense.

The limits are physical, wide enough for any chip that could be built and narrow enough that a
slip of a prefix (10^3) in either direction usually falls outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import core_schema

from arch import units
from arch.errors import InputError, Problem

Clock = int | None
Parse = Callable[[object, Clock], float]
Show = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Marks a field as a quantity: how it is read, its range, and words it may be instead.

    ``zero`` allows exactly zero as well (ideal hardware). A quantity per cycle needs the
    clock, which the document's model puts into the validation context.
    """

    parse: Parse
    show: Show
    low: float
    high: float
    zero: bool = False
    words: tuple[str, ...] = ()

    def check(self, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and value in self.words:
            return value
        context: Mapping[str, Any] = info.context or {}
        number = self._parsed(value, context.get("clock_hz"))
        if (self.zero and number == 0) or self.low <= number <= self.high:
            return number
        raise InputError(Problem(self._out_of_range(value, number)))

    def _parsed(self, value: object, clock_hz: Clock) -> float:
        try:
            return self.parse(value, clock_hz)
        except InputError as error:
            if not self.words:
                raise
            words = " or ".join(f"'{word}'" for word in self.words)
            raise InputError(Problem(f"{error} (or {words})")) from error

    def _out_of_range(self, value: object, number: float) -> str:
        zero = "0 or " if self.zero else ""
        allowed = f"allowed {zero}{self.show(self.low)} to {self.show(self.high)}"
        if number <= 0:
            return f"{value!r} is {'negative' if number else 'zero'}; {allowed}"
        return f"{value!r} is out of range; {allowed}; is the unit right?"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.with_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        number = {"type": "string", "pattern": r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*\S+$"}
        choices: list[dict[str, Any]] = [number]
        if self.zero:
            choices.append({"const": 0})
        if self.words:
            choices.append({"enum": list(self.words)})
        text = f"{self.show(self.low)} to {self.show(self.high)}"
        return {"anyOf": choices, "description": f"A quantity with its unit, {text}."}


def _no_clock(parse: Callable[[object], float]) -> Parse:
    return lambda value, clock_hz: parse(value)


def bandwidth(value: object, clock_hz: Clock) -> float:
    """Bytes per second. An invalid clock is reported where it stands, so 1 GHz does here."""
    return units.parse_bandwidth(value, clock_hz or 10**9)


def time(value: object, clock_hz: Clock) -> float:
    """Picoseconds."""
    return units.parse_time(value, clock_hz or 10**9)


size = _no_clock(units.parse_size)
frequency = _no_clock(units.parse_frequency)
energy = _no_clock(units.parse_energy)
energy_per_byte = _no_clock(units.parse_energy_per_byte)
power = _no_clock(units.parse_power)
area = _no_clock(units.parse_area)
length = _no_clock(units.parse_length)
