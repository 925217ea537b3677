"""Whole schedules: which operators are fused and what stays on the chip."""

from __future__ import annotations

from arch.errors import InputError, Problem
from arch.spec import Architecture
from mapper.search.schedule import Options, Schedule, best_schedule
from mapper.search.units import Setting
from mapper.workload.graph import Workload
from sim.kernel_models import runs_kernels
from sim.plan import unit_cost
from sim.prices import price


def schedule(
    workload: Workload,
    architecture: Architecture,
    objective: str,
    options: Options | None = None,
    *,
    where: str = "--fuse",
) -> Schedule:
    """The best schedule for ``objective``. ``InputError`` for hardware that runs kernels of a
    library, which decides itself what is fused; ``InfeasibleError`` as for mappings."""
    if runs_kernels(architecture):
        message = f"{architecture.name} (family {architecture.family}) runs a library's kernels"
        raise InputError(Problem(f"{message}: there is no schedule to search", where=where))
    setting = Setting(
        workload=workload,
        architecture=architecture,
        price=price,
        cost=unit_cost,
        objective=objective,
    )
    return best_schedule(setting, options)
