"""Which clock the power limit allows, and what a call costs in energy.

Dynamic energy of the SMs goes with the square of the voltage, which falls with the clock. A GPU
lowers its clock until it draws no more than its limit, so that a long product runs at a lower clock
than a short one would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.gpu.chip import Chip
from sim.gpu.demand import Array, Constants, Demand

BISECTIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Kernels of several calls: ``owner`` is the call that each belongs to.

    ``mac_pj`` is what a multiply-add costs in the kernel's data type, ``activity`` how much more
    its SMs switch than those of the average kernel. ``devices`` run each call, at the same time.
    """

    demand: Demand
    owner: Array
    mac_pj: Array
    activity: Array
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

    def energy_uj(self, load: Load, slowdown: Array, time_us: Array) -> Array:
        """Energy of each kernel above the idle power, while it takes ``time_us``."""
        constants, demand = self.constants, load.demand
        squared = self.voltage_squared(slowdown)
        switched = (
            demand.macs * load.mac_pj
            + demand.scalar * constants["scalar_pj"]
            + demand.l2_bytes * constants["l2_pj_per_byte"]
        ) * 1e-6
        core_us = np.minimum(demand.core_us * slowdown, time_us)
        active = constants["active_w"] * core_us / slowdown
        running = constants["running_w"] * time_us / slowdown
        hbm = demand.hbm_bytes * constants["hbm_pj_per_byte"] * 1e-6
        return np.asarray((switched + active + running) * squared * load.activity + hbm)


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
