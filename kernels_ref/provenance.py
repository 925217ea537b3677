"""What is written beside measured numbers: where, when, with what and how repeatable."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernels_ref.points import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One point's times of a call, energy of a call and state of the card.

    ``spread`` is the distance of the quartiles of the steady-state samples over their median,
    ``pauses`` how much their mean is above it.
    """

    point: Point
    t_graph_us: float
    t_cold_us: float
    energy_mj: float
    power_w: float
    spread: float
    pauses: float
    sm_clock_mhz: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The same point measured twice, the second time after all others."""

    first: Measured
    second: Measured

    def change(self, quantity: str) -> float:
        first, second = (getattr(m, quantity) for m in (self.first, self.second))
        return float(abs(second / first - 1))


def document(
    title: str, setup: Mapping[str, str], rows: Sequence[Measured], repeats: Sequence[Repeat]
) -> str:
    """Markdown: the set-up, the clocks seen and the repeatability."""
    lines = [f"# {title}", "", "| what | value |", "|---|---|"]
    lines += [f"| {what} | {value} |" for what, value in setup.items()]
    lines += [f"| {what} | {value} |" for what, value in _observed(rows, repeats)]
    return "\n".join(lines) + "\n"


def _observed(rows: Sequence[Measured], repeats: Sequence[Repeat]) -> Iterator[tuple[str, str]]:
    yield "points", str(len(rows))
    clocks = [row.sm_clock_mhz for row in rows]
    yield (
        "SM clock under load (min, median, max over points)",
        f"{min(clocks)}, {statistics.median(clocks):.0f}, {max(clocks)} MHz",
    )
    yield (
        "spread of steady-state samples, quartiles over median",
        _summary([row.spread for row in rows]),
    )
    yield (
        "mean of steady-state samples above their median",
        _summary([row.pauses for row in rows]),
    )
    for quantity in ("t_graph_us", "t_cold_us", "energy_mj"):
        yield (
            f"change of {quantity} when {len(repeats)} points were measured again at the end",
            _summary([repeat.change(quantity) for repeat in repeats]),
        )


def _summary(shares: Sequence[float]) -> str:
    return f"median {statistics.median(shares):.2%}, worst {max(shares):.2%}"
