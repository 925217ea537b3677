"""From a forward workload to one step of training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from arch.datatypes import accumulator_of
from mapper.workload.graph import Workload
from mapper.workload.nests import at
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor
from mapper.workload.training.backward import Backward
from mapper.workload.training.plan import TrainingPlan

#: What numbers repeated layers: ``layers.3.attention.q`` is of ``layers.3``.
_LAYER = re.compile(r"(\w+\.\d+)\.")


def training_step(workload: Workload, plan: TrainingPlan, title: str) -> Workload:
    """Forward, backward (with recomputation), update; the loss's gradient comes from outside."""
    backward = Backward(workload)
    tensors = {tensor.name: tensor for tensor in workload.tensors} | backward.tensors
    after = backward.operators
    if plan.recompute:
        after = _recomputed(workload, after, tensors)
    before = list(workload.operators)
    kept = _kept(workload, after)
    if plan.offload:
        before, after = _offloaded(before, after, kept, tensors)
    for tensor in workload.tensors:
        gradient = backward.gradient(tensor.name)
        if tensor.kind == "weight" and gradient is not None:
            after += _update(tensor, gradient, plan, tensors)
    note = f"{_megabytes(kept)} in {len(kept)} tensors: kept for the backward pass"
    return Workload(
        name=title,
        tensors=tuple(tensors.values()),
        operators=(*before, *after),
        folded=(*workload.folded, note) if kept else workload.folded,
    )


def _megabytes(tensors: Iterable[Tensor]) -> str:
    bits = sum((tensor.elements * tensor.bits for tensor in tensors), Fraction(0))
    return f"{float(bits) / 8e6:,.1f} MB"


def _kept(workload: Workload, after: Iterable[Operator]) -> list[Tensor]:
    """Activations of the forward pass that the backward pass reads."""
    read = {access.tensor for operator in after for access in operator.inputs}
    kinds = ("activation", "output")
    return [t for t in workload.tensors if t.name in read and t.kind in kinds]


def layer_of(name: str) -> str:
    """The repeated layer that an operator belongs to, or nothing."""
    match = _LAYER.match(name)
    return match[1] if match else ""


def _recomputed(
    workload: Workload, after: Sequence[Operator], tensors: dict[str, Tensor]
) -> list[Operator]:
    """Before a layer's first backward operator, its forward ones again, as far as needed."""
    layers: dict[str, list[Operator]] = {}
    for operator in workload.operators:
        if layer_of(operator.name):
            layers.setdefault(layer_of(operator.name), []).append(operator)
    inside = {o.output.tensor: layer for layer, ops in layers.items() for o in ops}
    outward = _read_outside(workload, inside)
    renamed: dict[str, str] = {}
    found: list[Operator] = []
    done: set[str] = set()
    for operator in after:
        for tensor in {access.tensor for access in operator.inputs}:
            layer = inside.get(tensor, "")
            if layer and tensor not in outward and layer not in done:
                done.add(layer)
                again = _needed_again(layers[layer], after, outward)
                renamed |= {o.output.tensor: f"{o.output.tensor}.again" for o in again}
                found += [_renamed(o, renamed, tensors) for o in again]
        inputs = tuple(
            Access(renamed.get(access.tensor, access.tensor), access.index)
            for access in operator.inputs
        )
        found.append(replace(operator, inputs=inputs))
    return found


def _read_outside(workload: Workload, inside: dict[str, str]) -> set[str]:
    """Results of layers that other layers (or nothing) read: they are kept."""
    found = {t.name for t in workload.tensors if t.kind == "output"}
    for operator in workload.operators:
        for access in operator.inputs:
            if inside.get(access.tensor, "") != layer_of(operator.name):
                found.add(access.tensor)
    return found


def _needed_again(
    layer: Sequence[Operator], after: Sequence[Operator], outward: set[str]
) -> list[Operator]:
    """Those of the layer whose results the backward pass, or another of them, reads."""
    needed = {access.tensor for operator in after for access in operator.inputs} - outward
    found = []
    for operator in reversed(layer):
        if operator.output.tensor in needed:
            found.append(operator)
            needed |= {access.tensor for access in operator.inputs} - outward
    return found[::-1]


def _renamed(operator: Operator, renamed: dict[str, str], tensors: dict[str, Tensor]) -> Operator:
    output = renamed[operator.output.tensor]
    original = tensors[operator.output.tensor]
    tensors[output] = replace(original, name=output, kind="activation")
    return replace(
        operator,
        name=f"{operator.name}.again",
        inputs=tuple(Access(renamed.get(a.tensor, a.tensor), a.index) for a in operator.inputs),
        output=Access(output, operator.output.index),
    )


def _offloaded(
    before: list[Operator],
    after: list[Operator],
    kept: Sequence[Tensor],
    tensors: dict[str, Tensor],
) -> tuple[list[Operator], list[Operator]]:
    """Copies to the host after the forward pass wrote a tensor, and back before it is read."""
    moved = {}
    for tensor in kept:
        if tensor.kind == "output":
            continue
        away, back = f"{tensor.name}.offloaded", f"{tensor.name}.fetched"
        tensors[away] = replace(tensor, name=away, kind="host")
        tensors[back] = replace(tensor, name=back, kind="activation")
        last = max(i for i, o in enumerate(before) if o.output.tensor == tensor.name)
        before.insert(last + 1, _copy(tensor, tensor.name, away))
        moved[tensor.name] = back
    found: list[Operator] = []
    fetched: set[str] = set()
    for operator in after:
        for access in operator.inputs:
            if access.tensor in moved and access.tensor not in fetched:
                fetched.add(access.tensor)
                tensor = tensors[access.tensor]
                found.append(_copy(tensor, f"{tensor.name}.offloaded", moved[tensor.name]))
        inputs = tuple(Access(moved.get(a.tensor, a.tensor), a.index) for a in operator.inputs)
        found.append(replace(operator, inputs=inputs))
    return before, found


def _copy(tensor: Tensor, source: str, target: str) -> Operator:
    dims = [f"a{axis}" for axis in range(len(tensor.shape))]
    return Operator(
        name=f"{target}.copy",
        kind="copy",
        operation="copy",
        extents=dict(zip(dims, tensor.shape, strict=True)),
        inputs=(Access(source, at(*dims)),),
        output=Access(target, at(*dims)),
        accumulator_dtype=tensor.dtype,
    )


def _update(
    weight: Tensor, gradient: str, plan: TrainingPlan, tensors: dict[str, Tensor]
) -> list[Operator]:
    """All states of a parameter in one pass, then the parameter in the format it computes in.

    States lie side by side in a tensor; it and the parameter are overwritten.
    """
    name, count = weight.name, plan.state_numbers
    dims = [f"a{axis}" for axis in range(len(weight.shape))]
    sizes = dict(zip(dims, weight.shape, strict=True))
    kept = Tensor(
        name=f"{name}.states", shape=(*weight.shape, count), dtype=plan.states, kind="input"
    )
    tensors[kept.name] = kept
    states = Access(kept.name, at(*dims, "s"))
    update = Operator(
        name=f"{name}.update",
        kind=plan.optimizer,
        operation="mul",
        extents=sizes | {"s": count},
        inputs=(states, Access(gradient, at(*dims))),
        output=states,
        accumulator_dtype=plan.states,
        ops_per_point=Fraction(plan.update_ops, count),
        whole_dims=frozenset({"s"}),
    )
    rounded = Operator(
        name=f"{name}.round",
        kind="round",
        operation="copy",
        extents=sizes,
        inputs=(Access(kept.name, (*at(*dims), AffineIndex((), 0))),),
        output=Access(name, at(*dims)),
        accumulator_dtype=accumulator_of(weight.dtype),
    )
    return [update, rounded]
