"""Numbers as people read them: values with units, ratios, plot axes.

Units and formats come from ``arch.units`` and ``dse.quantities``; here they are chosen and typeset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from arch import units
from dse.config import Constraint
from dse.quantities import QUANTITIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How one quantity is written: its title, its units, words for a change.

    ``scales`` maps a unit to its value in the unit of the records (empty: there is only one).
    """

    title: str
    scales: units.Units
    less: str
    more: str


#: What a change too small to mention is called.
EQUAL = "equal"

#: Below this share of the start a change is said in per cent, from here on as a ratio.
SMALL_CHANGE = 0.1


READINGS = {
    "latency_ps": Reading(
        title="Latency",
        scales=units.TIME,
        less="faster",
        more="slower",
    ),
    "energy_pj": Reading(
        title="Energy",
        scales=units.ENERGY,
        less="less energy",
        more="more energy",
    ),
    "area_mm2": Reading(
        title="Area",
        scales=units.AREA,
        less="smaller",
        more="larger",
    ),
    "ram_bytes": Reading(
        title="SRAM",
        scales=units.SIZE,
        less="less SRAM",
        more="more SRAM",
    ),
    "per_gmac": Reading(
        title="Size",
        scales={},
        less="larger",
        more="smaller",
    ),
    "power_w": Reading(
        title="Power",
        scales=units.POWER,
        less="less power",
        more="more power",
    ),
    "edp_js": Reading(
        title="Energy-delay product",
        scales={},
        less="lower EDP",
        more="higher EDP",
    ),
}


_SHOW = {quantity.key: quantity.show for quantity in QUANTITIES.values()}


def typeset(text: str) -> str:
    """Typographic units: ``12 us`` becomes ``12 µs``, ``mm2`` ``mm²``, ``<=`` ``≤``."""
    for pattern, form in _TYPESET:
        text = pattern.sub(form, text)
    return text


_TYPESET = (
    (re.compile(r"\bu(?=[sJWm])"), "µ"),
    (re.compile(r"(?<=m)2\b"), "²"),
    (re.compile(r"(?<=J)\*"), "·"),
    (re.compile(r"<="), "≤"),
)


def value(key: str, number: float) -> str:
    """``value("latency_ps", 2.5e9)`` is ``2.5 ms``."""
    return typeset(_SHOW[key](number))


def limit(constraint: Constraint) -> str:
    """``Area ≤ 1.5 mm²``."""
    return f"{title(constraint.quantity.key)} {typeset(constraint.text)}"


def title(key: str) -> str:
    return READINGS[key].title


def noun(key: str) -> str:
    """The title within a sentence."""
    return READINGS[key].title.lower()


def span(key: str, low: float, high: float) -> str:
    """``1.2 mJ to 1.5 mJ``, or one value if there is only one."""
    texts = value(key, low), value(key, high)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisScale:
    """A plot axis: its label with the unit, and what to divide the records' numbers by."""

    label: str
    divisor: float

    def apply(self, numbers: Iterable[float]) -> list[float]:
        return [number / self.divisor for number in numbers]


#: Axes of quantities that have one unit.
_UNSCALED = {
    "edp_js": "Energy-delay product (J·s)",
    "per_gmac": "Inverse size (1 / GMAC): left is larger",
}


def axis_scale(key: str, numbers: Iterable[float]) -> AxisScale:
    """The unit in which the largest of the numbers is at least one."""
    reading = READINGS[key]
    unit = _SHOW[key](max(numbers)).rpartition(" ")[2] if reading.scales else ""
    if not unit:
        return AxisScale(label=_UNSCALED[key], divisor=1.0)
    return AxisScale(
        label=f"{reading.title} ({typeset(unit)})", divisor=float(reading.scales[unit])
    )


def times(ratio: float) -> str:
    """``2.10×``: three significant digits, no exponent up to 1000."""
    return f"{ratio:,.0f}×" if ratio >= 1000 else f"{ratio:#.3g}×".replace(".×", "×")


def direction(start: float, new: float) -> int:
    """-1 for less, 1 for more, 0 for a change of less than 0.5 %."""
    if new == start or abs(new - start) < 0.005 * abs(start):
        return 0
    return 1 if new > start else -1


def change(key: str, start: float, new: float) -> str:
    """``2.10× faster``, ``1.30× larger``, ``3 % less energy`` (up to 10 %) or ``equal``."""
    reading = READINGS[key]
    way = direction(start, new)
    if way == 0:
        return EQUAL
    if start <= 0 or new <= 0:
        return f"{value(key, abs(new - start))} {reading.more if way > 0 else reading.less}"
    share = abs(new - start) / start
    by = percent(share) if share < SMALL_CHANGE else times(max(start / new, new / start))
    return f"{by} {reading.more if way > 0 else reading.less}"


def percent(share: float) -> str:
    """``12 %``; small shares keep two digits, and rounding never makes a part nothing or all."""
    number = 100 * share
    if number in (0, 100):
        return f"{number:.0f} %"
    if abs(number) < 0.01:
        return "< 0.01 %" if number > 0 else "> −0.01 %"
    if 99.5 <= number < 100:
        return f"{number:.1f} %" if number < 99.95 else "> 99.9 %"
    return f"{number:.0f} %" if abs(number) >= 10 else f"{number:.2g} %"


def short(number: float) -> str:
    """Three significant digits without an exponent, for labels within a plot."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def count(number: int) -> str:
    """Exact up to a million, then to four digits."""
    if number < 10**6:
        return f"{number:,}"
    if number < 10**9:
        return f"{number / 1e6:.4g} million"
    return f"{number / 1e9:,.4g} billion" if number < 10**13 else f"{number / 1e12:,.0f} trillion"


def sentence(text: str) -> str:
    """The text with a full stop unless it ends one already."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def parameter(setting: Any) -> str:
    """A parameter's value as it stands in the YAML; a dash where there is none."""
    if isinstance(setting, str):
        return typeset(setting)
    return "–" if setting is None else json.dumps(setting)


def plural(count: int, noun: str) -> str:
    """``1 layer``, ``3 layers``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
