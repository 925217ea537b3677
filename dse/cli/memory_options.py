"""What ``dse simulate`` does for hardware whose SRAM is planned (microcontrollers)."""

from __future__ import annotations

from pathlib import Path

from arch.errors import InputError, Problem, unknown
from arch.spec import Architecture
from dse.cli import inputs
from dse.cli.console import messages, results
from dse.cli.memory_view import print_plan
from dse.memory_picture import check_format, draw
from mapper.memory_plan.mcu import is_planned, plan_on
from mapper.memory_plan.planners import PLANNERS
from mapper.workload.graph import Workload


def asked(planner: str | None, memory_map: Path | None, architecture: Architecture) -> Architecture:
    """Checks both options before anything is computed; the architecture with its planner."""
    if memory_map is not None:
        _check_planned("--memory-map", architecture)
        check_format(memory_map)
        inputs.output_file("--memory-map", memory_map)
    return planned_by(planner, architecture)


def planned_by(planner: str | None, architecture: Architecture) -> Architecture:
    """The architecture with another planner: that of its component of kind ``kernels``."""
    if planner is None:
        return architecture
    if planner not in PLANNERS:
        raise InputError(Problem(unknown("planner", planner, list(PLANNERS)), "--planner"))
    _check_planned("--planner", architecture)
    components = architecture.document["components"]
    name = next(name for name, c in components.items() if c["kind"] == "kernels")
    return architecture.with_overrides({f"{name}.planner": planner})


def draw_map(workload: Workload, architecture: Architecture, path: Path) -> None:
    draw(plan_on(workload, architecture), f"{workload.name} on {architecture.name}", path)
    messages().print(f"memory map: {path}")


def show(workload: Workload, architecture: Architecture) -> None:
    """The plan as text, where there is one."""
    if is_planned(architecture):
        print_plan(results(), plan_on(workload, architecture))


def _check_planned(option: str, architecture: Architecture) -> None:
    if not is_planned(architecture):
        message = (
            f"{architecture.name} is of family '{architecture.family}', whose memory nobody plans; "
            "this is for microcontrollers (such as stm32f767)"
        )
        raise InputError(Problem(message, where=option))
