"""Addresses of a sequence of stages in one ring: each starts where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mapper.memory_plan.fused import FusedStage
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.offsets import Overlap
from mapper.memory_plan.patches import PatchedStage
from mapper.memory_plan.plan import Buffer, Placement, Step
from mapper.memory_plan.ring import Ring
from mapper.memory_plan.stages import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Steps (kernels) and where their tensors lie."""

    steps: tuple[Step, ...]
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A stage's output and workspace, from the address of its input."""

    target: int
    inner: tuple[Placement, ...]


def lay_out(choices: Sequence[Choice]) -> Layout:
    """The choices one after the other; every address follows from that of the stage's input."""
    steps = [step for choice in choices for step in _steps(choice)]
    layers = [layer for choice in choices for layer in choice.layers]
    step_of = {name: number for number, step in enumerate(steps) for name in step.layers}
    lives = _lives(layers, step_of)
    source = choices[0].layers[0].inputs[0]
    placements = [Placement(buffer=lives[source.name], offset_bytes=0)]
    start = 0
    for choice in choices:
        placed = _placed(choice, start, step_of)
        target = choice.layers[-1].output.name
        placements += [replace(p, buffer=lives.get(p.buffer.name, p.buffer)) for p in placed.inner]
        placements.append(Placement(buffer=lives[target], offset_bytes=placed.target))
        start = placed.target
    return Layout(steps=tuple(steps), placements=tuple(placements))


def _steps(choice: Choice) -> Iterator[Step]:
    """Unfused layers are a kernel each."""
    names = tuple(layer.name for layer in choice.layers)
    if isinstance(choice.how, FusedStage | PatchedStage):
        side = choice.how.per_side if isinstance(choice.how, PatchedStage) else 1
        yield Step(
            name=f"{names[0]} ... {names[-1]}",
            layers=names,
            layer_macs=choice.layer_macs,
            patches=side * side,
            segment_bytes=choice.segment_bytes[0],
        )
        return
    for name, macs, unit in zip(names, choice.layer_macs, choice.segment_bytes, strict=True):
        yield Step(name=name, layers=(name,), layer_macs=(macs,), segment_bytes=unit)


def _lives(layers: Sequence[Layer], step_of: Mapping[str, int]) -> dict[str, Buffer]:
    """Lifetimes in steps instead of layers."""
    numbers = [step_of[layer.name] for layer in layers]
    return {
        name: replace(life, first=numbers[life.first], last=numbers[life.last])
        for name, life in lifetimes(layers).items()
    }


def _placed(choice: Choice, start: int, step_of: Mapping[str, int]) -> _Placed:
    match choice.how:
        case Overlap() as pair:
            return _Placed(start - pair.offset * pair.segment_bytes, ())
        case Ring() as ring:
            return _in_ring(choice, ring, start)
        case FusedStage() as stage:
            target = start - stage.offset_bytes
            end = max(start + stage.source.size_bytes, target + stage.target.size_bytes)
            sizes = {b.feature_map.name: b.size_bytes for b in stage.buffers}
            return _Placed(target, _beside(sizes, end, step_of[choice.layers[0].name]))
        case PatchedStage() as patched:
            target = start - patched.target.size_bytes
            sizes = {f"patches of {choice.layers[0].name}": patched.workspace_bytes}
            end = start + patched.source.size_bytes
            return _Placed(target, _beside(sizes, end, step_of[choice.layers[0].name]))


def _in_ring(choice: Choice, ring: Ring, start: int) -> _Placed:
    found = {p.buffer.name: p for p in ring.placements}
    moved = start - found[choice.layers[0].inputs[0].name].offset_bytes
    target = choice.layers[-1].output.name
    outside = {choice.layers[0].inputs[0].name, target}
    inner = (
        replace(p, offset_bytes=p.offset_bytes + moved)
        for name, p in found.items()
        if name not in outside
    )
    return _Placed(found[target].offset_bytes + moved, tuple(inner))


def _beside(sizes: Mapping[str, int], end: int, step: int) -> tuple[Placement, ...]:
    """Workspace behind what the ring holds."""
    placements = []
    for name, size in sizes.items():
        buffer = Buffer(name=f"{name} (part)", size_bytes=size, first=step, last=step)
        placements.append(Placement(buffer=buffer, offset_bytes=end))
        end += size
    return tuple(placements)
