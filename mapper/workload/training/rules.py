"""Gradient operators of each kind of operator.

Products give a product per operand. What only moves data gives the transposed movement. The
rest is done element by element: per operand one operator that reads the result's gradient and
what the derivative needs, and sums over what the operand was repeated along.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from arch.datatypes import accumulator_of
from mapper.workload.graph import Workload
from mapper.workload.operators import Access, AffineIndex, Operator
from mapper.workload.training.contribution import PENDING, Contribution
from mapper.workload.training.windows import combinations, replaced

#: Kinds of attention in one operator.
STREAMING = ("attention", "causal_attention")

#: Kinds whose derivative needs the result instead of the operands.
_BY_RESULT = ("softmax", "masked_softmax", "sigmoid", "tanh", "exp", "relu")

#: Kinds whose derivative needs nothing: sums and movements.
_LINEAR = ("add", "copy", "mean", "cache_update", "lookup", "pad", "pooled_lookup", "sum")


def contributions(
    workload: Workload, operator: Operator, gradient: str, wanted: set[str]
) -> Iterator[tuple[str, Contribution]]:
    """For each operand in ``wanted``: its tensor, and what is added to its gradient.

    ``gradient`` is the tensor of the result's gradient.
    """
    result = Access(gradient, operator.output.index)
    for number, access in enumerate(operator.inputs):
        if access.tensor not in wanted:
            continue
        if operator.kind in STREAMING:
            yield access.tensor, _streaming(operator, number, result)
        elif operator.operation == "mac":
            yield access.tensor, _product(workload, operator, number, result)
        else:
            yield access.tensor, _pointwise(workload, operator, number, result)


def _product(workload: Workload, operator: Operator, number: int, result: Access) -> Contribution:
    access, other = operator.inputs[number], operator.inputs[1 - number]
    dtypes = [workload.tensor(name).dtype for name in (operator.output.tensor, other.tensor)]
    plain = replace(
        operator,
        name=f"{operator.name}.grad_{_part(number)}",
        kind=f"{operator.kind}_backward",
        inputs=(result, other),
        output=Access(PENDING, access.index),
        accumulator_dtype=accumulator_of(*dtypes),
    )
    return Contribution(operators=tuple(_unwindowed(workload, plain, access, operator)))


def _unwindowed(
    workload: Workload, plain: Operator, access: Access, forward: Operator
) -> Iterator[Operator]:
    """``plain`` itself, or an operator per phase where ``access`` is a window."""
    shape = workload.tensor(access.tensor).shape
    choices = list(combinations(forward, access.index, shape))
    for count, choice in enumerate(choices):
        inputs, extents = list(plain.inputs), dict(plain.extents)
        index = list(access.index)
        for axis, phase in choice.items():
            index[axis] = phase.position
            extents |= phase.extents
            inputs = [Access(each.tensor, replaced(each.index, phase)) for each in inputs]
        name = plain.name if len(choices) == 1 else f"{plain.name}.phase{count}"
        output = Access(PENDING, tuple(index))
        yield replace(plain, name=name, inputs=tuple(inputs), extents=extents, output=output)


def _part(number: int) -> str:
    return ("input", "weight")[number] if number < 2 else f"operand{number}"


def _pointwise(workload: Workload, operator: Operator, number: int, result: Access) -> Contribution:
    access = operator.inputs[number]
    needed = _needed(operator, number)
    if not needed and _is_same(workload, operator, access):
        return Contribution(same_as=result.tensor)
    repeated = bool(set(operator.extents) - access.dims)
    operation = operator.operation
    if not operator.whole_dims and (repeated or not needed):
        operation = "add" if repeated or operator.operation == "mean" else "copy"
    step = replace(
        operator,
        name=f"{operator.name}.grad_{_part(number)}",
        kind=f"{operator.kind}_backward",
        operation=operation,
        inputs=(result, *needed),
        output=Access(PENDING, access.index),
        ops_per_point=operator.ops_per_point + bool(needed),
        accumulator_dtype=_accumulator(workload, operator, operation),
    )
    return Contribution(operators=tuple(_within(workload, step, access, operator)))


def _within(
    workload: Workload, step: Operator, access: Access, forward: Operator
) -> Iterator[Operator]:
    """As ``_unwindowed``; lookups end at the table's last row."""
    if forward.kind == "lookup" and access is forward.inputs[-1]:
        yield _scattered(workload, step, access)
    else:
        yield from _unwindowed(workload, step, access, forward)


def _scattered(workload: Workload, step: Operator, access: Access) -> Operator:
    """Rows added into the table; with more lookups than rows, several into each."""
    (row, *columns) = access.index
    rows = workload.tensor(access.tensor).shape[0]
    loops = [dim for dim, _ in row.terms]
    count = 1 + row.offset + sum(c * (step.extents[dim] - 1) for dim, c in row.terms)
    if count <= rows:
        return replace(step, inputs=step.inputs[:1])
    (source,) = [loop for loop in loops if step.extents[loop] == count] or loops[:1]
    extents = {**step.extents, source: rows, f"{source}_again": -(-count // rows)}
    again = AffineIndex(((f"{source}_again", rows), (source, 1)))
    result = step.inputs[0]
    index = tuple(again if source in at.dims else at for at in result.index)
    return replace(
        step,
        operation="add",
        extents=extents,
        inputs=(Access(result.tensor, index),),
        output=Access(PENDING, (AffineIndex(((source, 1),)), *columns)),
    )


def _needed(operator: Operator, number: int) -> tuple[Access, ...]:
    """What the derivative reads besides the result's gradient."""
    if operator.kind in _LINEAR or operator.operation == "mean":
        return ()
    if operator.kind in _BY_RESULT:
        return (operator.output,)
    if operator.kind in ("mul", "combine") and len(operator.inputs) == 2:
        return (operator.inputs[1 - number],)
    if operator.kind == "rotary":
        return operator.inputs[1:]
    if operator.operation == "max":
        return operator.accesses
    return operator.inputs


def _is_same(workload: Workload, operator: Operator, access: Access) -> bool:
    """Whether the operand's gradient is the result's, element by element, in the same place."""
    mine, its = workload.tensor(access.tensor), workload.tensor(operator.output.tensor)
    return (
        operator.operation == "add"
        and access.index == operator.output.index
        and mine.shape == its.shape
        and set(operator.extents) == access.dims
        and operator.points == mine.elements
    )


def _accumulator(workload: Workload, operator: Operator, operation: str) -> str:
    dtype = workload.tensor(operator.output.tensor).dtype
    return accumulator_of(dtype) if operation in ("add", "mean") else dtype


def _streaming(operator: Operator, number: int, result: Access) -> Contribution:
    """FlashAttention's backward pass in two operators (Dao, FlashAttention-2, 2023).

    Both compute scores and their gradients again; that of queries adds one product, that of
    keys and values two.
    """
    query, cache = operator.inputs
    if number == 0:
        extents = {**operator.extents, "P": 3}
        step = replace(
            operator,
            name=f"{operator.name}.grad_query",
            kind="attention_backward",
            extents=extents,
            inputs=(query, cache, result),
            output=Access(PENDING, query.index),
        )
    else:
        step = replace(
            operator,
            name=f"{operator.name}.grad_cache",
            kind="attention_backward",
            extents={**operator.extents, "again": 2},
            inputs=(query, cache, result),
            output=Access(PENDING, cache.index),
            whole_dims=operator.whole_dims | {"again"},
            dim_classes=(*_KEYS_FIRST, ("again", "p")),
        )
    return Contribution(operators=(step,))


#: Gradients of keys and values sum over queries, and have a row per key.
_KEYS_FIRST = (("B", "b"), ("H", "b"), ("G", "k"), ("M", "k"), ("L", "m"), ("D", "n"), ("P", "p"))
