"""What ``dse simulate`` does for hardware whose SRAM is planned (microcontrollers)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arch import catalog
from arch.errors import InputError, Problem, unknown
from arch.load import load_architecture
from arch.spec import Architecture
from arch.units import format_time_ps
from dse.cli import inputs
from dse.cli.console import messages, results, table
from dse.cli.memory_view import print_plan
from dse.memory_picture import check_format, draw
from mapper.cost import InfeasibleError
from mapper.memory_plan.formats import latency_note, refusal
from mapper.memory_plan.mcu import core_of, is_planned, plan_on, tradeoffs_on
from mapper.memory_plan.planners import PLANNERS
from mapper.workload.graph import Workload
from sim.kernel_models import evaluate


def checked(architecture: Architecture, asked: Mapping[str, Any]) -> Architecture:
    """Checks all options before anything is computed; the architecture with planner and limits."""
    memory_map: Path | None = asked["memory_map"]
    if memory_map is not None:
        _check_planned("--memory-map", architecture)
        check_format(memory_map)
        inputs.output_file("--memory-map", memory_map)
    if asked["tradeoffs"]:
        _check_planned("--tradeoffs", architecture)
    return _limited(asked, planned_by(asked["planner"], architecture))


def planned_by(planner: str | None, architecture: Architecture) -> Architecture:
    """The architecture with another planner."""
    if planner is None:
        return architecture
    if planner not in PLANNERS:
        raise InputError(Problem(unknown("planner", planner, list(PLANNERS)), "--planner"))
    _check_planned("--planner", architecture)
    return architecture.with_overrides({f"{_software(architecture)}.planner": planner})


def _limited(asked: Mapping[str, Any], architecture: Architecture) -> Architecture:
    limits = {name: asked[name] for name in ("ram_limit", "latency_limit")}
    given = {name: value for name, value in limits.items() if value is not None}
    if not given:
        return architecture
    option = _option(next(iter(given)))
    _check_planned(option, architecture)
    planner = core_of(architecture).kernels.planner
    if planner != "optimal":
        message = f"planner {planner} has no choice; limits are for --planner optimal"
        raise InputError(Problem(message, where=option))
    for name, value in given.items():
        architecture = _with_limit(architecture, name, value)
    return architecture


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _with_limit(architecture: Architecture, name: str, value: object) -> Architecture:
    """What is wrong with the value is said of the option, which is what the user wrote."""
    try:
        return architecture.with_overrides({f"{_software(architecture)}.{name}": value})
    except InputError as error:
        problems = [Problem(problem.message, where=_option(name)) for problem in error.problems]
        raise InputError(problems) from error


def _software(architecture: Architecture) -> str:
    """The component of kind ``kernels``."""
    components = architecture.document["components"]
    return next(str(name) for name, c in components.items() if c["kind"] == "kernels")


def draw_map(workload: Workload, architecture: Architecture, path: Path) -> None:
    draw(plan_on(workload, architecture), f"{workload.name} on {architecture.name}", path)
    messages().print(f"memory map: {path}")


def show(workload: Workload, architecture: Architecture, *, tradeoffs: bool) -> None:
    """The plan as text, where there is one."""
    if is_planned(architecture):
        note = latency_note(workload, architecture)
        if note is not None:
            results().print(f"latency: {note}", soft_wrap=True)
        print_plan(results(), plan_on(workload, architecture))
        if tradeoffs:
            show_tradeoffs(workload, architecture)


def show_tradeoffs(workload: Workload, architecture: Architecture) -> None:
    """Memory and time of all plans of the planner ``optimal`` that no other beats in both."""
    rows = [
        (f"{size:,} B", format_time_ps(latency_ps))
        for size, latency_ps in tradeoffs_on(workload, architecture)
    ]
    results().print(table("", (">plan", ">latency"), rows))


def note_document(workload: Workload, architecture: Architecture) -> dict[str, str]:
    """``latency_note``, where there is something to say."""
    note = latency_note(workload, architecture)
    return {} if note is None else {"latency_note": note}


def tradeoffs_document(workload: Workload, architecture: Architecture) -> list[dict[str, int]]:
    return [
        {"plan_bytes": size, "latency_ps": latency_ps}
        for size, latency_ps in tradeoffs_on(workload, architecture)
    ]


def advise(workload: Workload, architecture: Architecture) -> None:
    """After a network did not fit: planners that would do here, and boards that have the room."""
    if not is_planned(architecture) or refusal(workload, architecture) is not None:
        return
    here = [
        name
        for name in PLANNERS
        if fits(workload, architecture.with_overrides({f"{_software(architecture)}.planner": name}))
    ]
    planner = core_of(architecture).kernels.planner
    boards = [
        name
        for name in mcu_boards()
        if fits(workload, planned_by(planner, load_architecture(name)))
    ]
    messages().print(f"planners with which it fits here: {', '.join(here) or 'none'}")
    found = ", ".join(boards) or "none"
    messages().print(f"shipped boards on which it fits with planner {planner}: {found}")


def fits(workload: Workload, architecture: Architecture) -> bool:
    """Whether the analytical model runs it."""
    try:
        evaluate(workload, architecture, {}, "analytical")
    except InfeasibleError:
        return False
    return True


def mcu_boards() -> list[str]:
    """Shipped microcontrollers, those with the least SRAM first."""
    named = {name: load_architecture(name) for name in catalog.names("arch")}
    found = {name: a for name, a in named.items() if is_planned(a)}
    return sorted(found, key=lambda name: found[name].memories[1].size_bytes)


def _check_planned(option: str, architecture: Architecture) -> None:
    if not is_planned(architecture):
        message = (
            f"{architecture.name} is of family '{architecture.family}', whose memory nobody plans; "
            "this is for microcontrollers (such as stm32f767)"
        )
        raise InputError(Problem(message, where=option))
