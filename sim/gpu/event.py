"""Thread blocks over time: every SM takes its rounds of blocks, and all share the HBM.

Blocks are dispatched one after the other, so that SMs start one by one. A round of blocks on one SM
needs the SM for some time and its part of the bytes from the HBM, whose bandwidth is divided among
the SMs that are at work; the two overlap as in the analytical model. The more SMs are at work, the
slower each gets on, but all get on alike: an event is an SM that starts or has no blocks left, and
between two events nothing changes.

Never less than the analytical time. While ``n`` SMs are at work, each gets on at a rate ``r`` such
that the SM time and HBM time that are used up, ``(c r, m n r)``, have norm 1; and the norm of an
integral is at most the integral of the norm.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from sim.gpu.chip import Chip
from sim.gpu.demand import Demand

#: Between the starts of two blocks: the last of 132 starts 96 ns after the first on an H200
#: (kernels_ref/data/h200_micro.csv, of a clock that ticks every 32 ns).
DISPATCH_US = 0.096 / 131


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Thread blocks of one kernel: SMs that run ``rounds`` of them and those that run one less.

    ``round_us`` is a round's time on its SM, ``memory_us`` that of its bytes with the HBM for
    itself.
    """

    longest: int
    others: int
    rounds: int
    round_us: float
    memory_us: float
    overlap: float

    @property
    def sms(self) -> int:
        return self.longest + (self.others if self.rounds > 1 else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTimes:
    """Of one kernel: until the last block ends, and what it would be with all blocks at once."""

    time_us: float
    together_us: float


def grid_of(demand: Demand, number: int, slowdown: float, sms: int) -> Grid:
    """The blocks of one kernel; a share of an SM counts as one."""
    rounds = max(1, int(demand.rounds[number]))
    longest = min(sms, max(1, round(float(demand.last_share[number]) * sms)))
    others = sms - longest
    in_all = longest * rounds + others * (rounds - 1)
    return Grid(
        longest=longest,
        others=others,
        rounds=rounds,
        round_us=float(demand.core_us[number]) * slowdown / rounds,
        memory_us=float(demand.memory_us[number]) / in_all,
        overlap=float(demand.overlap[number]),
    )


def _pace(grid: Grid, at_work: int) -> float:
    """Time of one round while so many SMs are at work."""
    memory_us = grid.memory_us * at_work
    longest = max(grid.round_us, memory_us)
    if longest == 0:
        return 0.0
    power = grid.overlap
    shares = (grid.round_us / longest) ** power + (memory_us / longest) ** power
    return float(longest * shares ** (1 / power))


def run_blocks(grid: Grid, dispatch_us: float) -> float:
    """When the last block ends. SMs with more rounds start first."""
    counts = [grid.rounds] * grid.longest + [grid.rounds - 1] * (grid.sms - grid.longest)
    now_us = done = 0.0
    ends: list[float] = []  # in rounds that an SM that never stops would have done
    for number, count in enumerate(counts):
        start_us = number * dispatch_us
        now_us, done = _advance(grid, ends, now_us, done, start_us)
        heapq.heappush(ends, done + count)
    while ends:
        now_us += (ends[0] - done) * _pace(grid, len(ends))
        done = heapq.heappop(ends)
    return now_us


def _advance(
    grid: Grid, ends: list[float], now_us: float, done: float, until_us: float
) -> tuple[float, float]:
    """Let the SMs at work get on until the next one starts."""
    while ends:
        pace = _pace(grid, len(ends))
        end_us = now_us + (ends[0] - done) * pace
        if end_us > until_us:
            return until_us, done + (until_us - now_us) / pace
        now_us, done = end_us, heapq.heappop(ends)
    return max(now_us, until_us), done


def block_times(demand: Demand, number: int, slowdown: float, chip: Chip) -> BlockTimes:
    """Event simulation of one kernel, launch and latencies included."""
    grid = grid_of(demand, number, slowdown, chip.sms)
    fixed_us = float(demand.fixed_us[number])
    return BlockTimes(
        time_us=fixed_us + run_blocks(grid, DISPATCH_US),
        together_us=fixed_us + run_blocks(grid, 0.0),
    )
