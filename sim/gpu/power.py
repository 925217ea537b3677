"""Which clock the power limit allows, and what a call costs in energy.

Dynamic energy of the SMs goes with the square of the voltage, which falls with the clock. A GPU
lowers its clock until it draws no more than its limit, so that a long product runs at a lower clock
than a short one would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sim.gpu.chip import Chip
from sim.gpu.demand import Array, Constants, Demand

BISECTIONS = 12


#: What a class of kernels scales: the energy of multiply-adds (of each data type), of other
#: operations, of bytes of the L2 and of the HBM, the power of SMs that work and of a kernel that
#: runs. Kernels differ in it by how they move operands between registers, shared memory and units.
SCALES = {
    "mac": "mac_scale",
    "scalar": "scalar_scale",
    "l2": "l2_scale",
    "hbm": "hbm_scale",
    "active": "active_scale",
    "running": "running_scale",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Energies of each kernel's operations and bytes and powers of its SMs, at the full clock."""

    mac_pj: Array
    scalar_pj: Array
    l2_pj_per_byte: Array
    hbm_pj_per_byte: Array
    active_w: Array
    running_w: Array

    def scaled(self, factor: Array) -> Prices:
        return Prices(**{name: getattr(self, name) * factor for name in PRICE_NAMES})

    def reordered(self, index: NDArray[np.intp]) -> Prices:
        return Prices(**{name: getattr(self, name)[index] for name in PRICE_NAMES})


PRICE_NAMES = tuple(field.name for field in fields(Prices))


def prices_of(dtype: str, count: int, own: Constants, power: Constants) -> Prices:
    """Those of ``count`` kernels of one class and data type."""
    each = {
        "mac_pj": power[f"mac_pj_{dtype}"] * own[SCALES["mac"]],
        "scalar_pj": power["scalar_pj"] * own[SCALES["scalar"]],
        "l2_pj_per_byte": power["l2_pj_per_byte"] * own[SCALES["l2"]],
        "hbm_pj_per_byte": power["hbm_pj_per_byte"] * own[SCALES["hbm"]],
        "active_w": power["active_w"] * own[SCALES["active"]],
        "running_w": power["running_w"] * own[SCALES["running"]],
    }
    return Prices(**{name: np.full(count, value) for name, value in each.items()})


def joined_prices(prices: Sequence[Prices]) -> Prices:
    """All kernels one after the other."""
    if len(prices) == 1:
        return prices[0]
    return Prices(**{n: np.concatenate([getattr(p, n) for p in prices]) for n in PRICE_NAMES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Kernels of several calls: ``owner`` is the call that each belongs to.

    ``devices`` run each call, at the same time.
    """

    demand: Demand
    owner: Array
    prices: Prices
    devices: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Calls that are each repeated without a pause; a ``slowdown`` of 1 is the highest clock."""

    time_us: Array
    power_w: Array
    slowdown: Array

    @property
    def energy_mj(self) -> Array:
        return self.power_w * self.time_us / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A chip and the constants of its power."""

    chip: Chip
    constants: Constants

    @property
    def limit_w(self) -> float:
        """The mean power that the board settles at: a fitted factor times the nominal limit."""
        return self.chip.power_limit_w * self.constants["limit"]

    def voltage_squared(self, slowdown: Array) -> Array:
        """Relative to the highest clock; a share of the voltage is proportional to the clock."""
        share = self.constants["voltage_share"]
        return np.asarray((1 - share + share / slowdown) ** 2)

    def exceeds(self, demand: Demand, prices: Prices) -> NDArray[np.bool_]:
        """Whether a kernel alone would draw more than the limit at the highest clock."""
        time_us = demand.time_us()
        energy = self._energy_uj(demand, prices, np.ones(len(time_us)), time_us)
        return np.asarray(self.chip.idle_w + energy / time_us > self.limit_w)

    def energy_uj(self, load: Load, slowdown: Array, time_us: Array) -> Array:
        """Energy of each kernel above the idle power, while it takes ``time_us``."""
        return self._energy_uj(load.demand, load.prices, slowdown, time_us)

    def _energy_uj(self, demand: Demand, prices: Prices, slowdown: Array, time_us: Array) -> Array:
        squared = self.voltage_squared(slowdown)
        switched = (
            demand.macs * prices.mac_pj
            + demand.scalar * prices.scalar_pj
            + demand.l2_bytes * prices.l2_pj_per_byte
        ) * 1e-6
        core_us = np.minimum(demand.core_us * slowdown, time_us)
        active = prices.active_w * core_us / slowdown
        running = prices.running_w * time_us / slowdown
        hbm = demand.hbm_bytes * prices.hbm_pj_per_byte * 1e-6
        return np.asarray((switched + active + running) * squared + hbm)


def steady(load: Load, machine: Machine) -> Steady:
    """Each call at the highest clock at which its power stays within the limit, else the lowest."""
    owner = load.owner
    calls = int(owner.max()) + 1
    limit_w = machine.limit_w

    def run(slowdown: Array) -> tuple[Array, Array]:
        each = slowdown[owner]
        kernel_us = load.demand.time_us(each)
        energy = machine.energy_uj(load, each, kernel_us)
        time_us = np.bincount(owner, kernel_us, calls).astype(np.float64)
        return time_us, machine.chip.idle_w + np.bincount(owner, energy, calls) / time_us

    low = np.ones(calls)
    time_us, power_w = run(low)
    hot = power_w > limit_w
    if not hot.any():
        return Steady(time_us=time_us, power_w=power_w * load.devices, slowdown=low)
    high = np.full(calls, machine.chip.clock_mhz / machine.chip.least_clock_mhz)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_much = run(middle)[1] > limit_w
        low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
    slowdown = np.where(hot, high, 1.0)
    time_us, power_w = run(slowdown)
    return Steady(time_us=time_us, power_w=power_w * load.devices, slowdown=slowdown)
