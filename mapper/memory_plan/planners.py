"""The planners by name: from a workload to a plan of its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem, unknown
from mapper.memory_plan import PLANNER_NAMES, hmcos, tinyengine, vmcu
from mapper.memory_plan.arena import TFLM_ALIGNMENT, extent_bytes, first_fit, tflm_order
from mapper.memory_plan.buffers import overlay_task, tflm_buffers
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.layout import lay_out
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.optimal import Route, Routes, routes
from mapper.memory_plan.overlay import live_overlaid_bytes, overlay
from mapper.memory_plan.plan import MemoryPlan, Placement, Step, live_bytes
from mapper.memory_plan.schedule import best_order
from mapper.memory_plan.stages import Choice, CycleModel, shared_bytes
from mapper.workload.graph import Workload
from mapper.workload.runtime import RuntimeGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to plan. Limits are for ``optimal``: the smallest plan within ``most_cycles``, else the
    fastest one within ``ram_bytes``; without limits, or if none keeps them, the nearest to it."""

    workload: Workload
    cycles: CycleModel
    ram_bytes: int | None = None
    most_cycles: float | None = None


def plan(planner: str, request: Request) -> MemoryPlan:
    """The plan of that planner; ``InputError`` if there is none of that name."""
    if planner not in PLANNERS:
        raise InputError(Problem(unknown("planner", planner, list(PLANNERS)), "planner"))
    found = PLANNERS[planner](request)
    runtime = request.workload.runtime
    if runtime is None or not runtime.persistent_bytes:
        return found
    kept = {**found.extra_bytes, "variables": runtime.persistent_bytes}
    return replace(found, extra_bytes=kept)


def _tflm(request: Request) -> MemoryPlan:
    """TensorFlow Lite Micro's greedy arena: in the order of the file, by its own calls.

    What the file gives a place lies there, as in the runtime; results may then lie over inputs.
    """
    layers = layers_of(request.workload)
    buffers = tflm_buffers(request.workload, layers)
    runtime = request.workload.runtime
    places = {} if runtime is None else runtime.source.places()
    fixed = [Placement(buffer=b, offset_bytes=places[b.name]) for b in buffers if b.name in places]
    online = tflm_order([b for b in buffers if b.name not in places])
    placements = first_fit(online, fixed, alignment=TFLM_ALIGNMENT)
    pool = extent_bytes(placements, TFLM_ALIGNMENT)
    least = live_overlaid_bytes(overlay_task(request.workload, layers)) if fixed else None
    return MemoryPlan(
        planner="tflm",
        pool_bytes=pool,
        is_ring=False,
        placements=tuple(placements),
        steps=_one_by_one(layers) if runtime is None else _calls(runtime, layers),
        lower_bound_bytes=live_bytes(buffers) if least is None else min(least, pool),
    )


def _tflm_offline(request: Request) -> MemoryPlan:
    """An arena with results over dying inputs, for a file that says where its tensors lie."""
    layers = layers_of(request.workload)
    task = overlay_task(request.workload, layers)
    found = overlay(task)
    runtime = request.workload.runtime
    return MemoryPlan(
        planner="tflm_offline",
        pool_bytes=found.head_bytes,
        is_ring=False,
        placements=(*found.tensors, *found.online),
        steps=_one_by_one(layers) if runtime is None else _calls(runtime, layers),
        lower_bound_bytes=live_overlaid_bytes(task),
    )


def _calls(runtime: RuntimeGraph, layers: Sequence[Layer]) -> tuple[Step, ...]:
    """One step per call of the runtime; some cover no layer, a few more than one."""
    macs = {layer.name: layer.macs for layer in layers}
    return tuple(
        Step(
            name=call.name,
            layers=call.operators,
            layer_macs=tuple(macs[name] for name in call.operators),
            is_call=True,
        )
        for call in runtime.calls
    )


def _tinyengine(request: Request) -> MemoryPlan:
    return tinyengine.plan(layers_of(request.workload))


def _hmcos(request: Request) -> MemoryPlan:
    """The order of the hierarchy's parts with the fewest live bytes, then a greedy arena."""
    layers = layers_of(request.workload)
    found = hmcos.schedule(layers)
    ordered = [layers[number] for number in found.order]
    buffers = list(lifetimes(ordered).values())
    placements = first_fit(sorted(buffers, key=lambda b: -b.size_bytes))
    return MemoryPlan(
        planner="hmcos",
        pool_bytes=extent_bytes(placements),
        is_ring=False,
        placements=tuple(placements),
        steps=_one_by_one(ordered),
        lower_bound_bytes=best_order(layers, found.order).bound_bytes,
    )


def _vmcu(request: Request) -> MemoryPlan:
    chosen = vmcu.choices(layers_of(request.workload), request.cycles)
    return _of_choices("vmcu", chosen, max(choice.size_bytes for choice in chosen))


def _optimal(request: Request) -> MemoryPlan:
    found = tradeoffs(request)
    chosen = _within(found.found, request)
    made = _of_choices("optimal", chosen.choices, chosen.size_bytes)
    return replace(made, lower_bound_bytes=found.lower_bound_bytes)


def tradeoffs(request: Request) -> Routes:
    """All plans that ``optimal`` chooses from, by memory."""
    return routes(_ordered(request.workload), request.cycles)


def _within(found: Sequence[Route], request: Request) -> Route:
    """Routes are sorted by memory, and the more of it the faster."""
    if request.most_cycles is not None:
        fast = [route for route in found if route.cycles <= request.most_cycles]
        return fast[0] if fast else found[-1]
    if request.ram_bytes is not None:
        fitting = [route for route in found if route.size_bytes <= request.ram_bytes]
        return fitting[-1] if fitting else found[0]
    return found[0]


def _of_choices(planner: str, chosen: Sequence[Choice], size_bytes: int) -> MemoryPlan:
    layout = lay_out(chosen)
    return MemoryPlan(
        planner=planner,
        pool_bytes=size_bytes,
        is_ring=True,
        placements=layout.placements,
        steps=layout.steps,
        lower_bound_bytes=max(choice.lower_bound_bytes for choice in chosen),
    )


def _ordered(workload: Workload) -> tuple[Layer, ...]:
    layers = layers_of(workload)
    start = hmcos.schedule(layers).order
    return tuple(layers[number] for number in best_order(layers, start, shared_bytes).order)


def _one_by_one(layers: Sequence[Layer]) -> tuple[Step, ...]:
    return tuple(Step(name=x.name, layers=(x.name,), layer_macs=(x.macs,)) for x in layers)


PLANNERS: dict[str, Callable[[Request], MemoryPlan]] = dict(
    zip(
        PLANNER_NAMES,
        (_tflm, _tflm_offline, _tinyengine, _hmcos, _vmcu, _optimal),
        strict=True,
    )
)
