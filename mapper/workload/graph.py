"""A workload: tensors and the operators that connect them, as an acyclic graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from arch.datatypes import ALLOWED, is_dtype
from arch.errors import InputError, Problem
from mapper.workload.operators import (
    TENSOR_KINDS,
    VECTOR_OPERATIONS,
    Access,
    AffineIndex,
    Operator,
    Tensor,
)
from mapper.workload.runtime import RuntimeGraph

#: Kinds of operators that overwrite parameters and optimizer states at the end of a step.
UPDATES = ("round", "sgd", "momentum", "adam")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Operators in execution order (each tensor is produced before it is read).

    ``folded`` lists what the importer merged into a neighbour and why (batch normalization
    into a convolution, a view that moves no data), so that nothing disappears silently.
    ``runtime`` is how the runtime of the file that it came from runs it.
    """

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    folded: tuple[str, ...] = ()
    runtime: RuntimeGraph | None = None
    _by_name: Mapping[str, Tensor] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {t.name: t for t in self.tensors})
        check_order(self)

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name; ``KeyError`` if there is none."""
        return self._by_name[name]

    def operator(self, name: str) -> Operator:
        """The operator of that name; ``KeyError`` if there is none."""
        found = [operator for operator in self.operators if operator.name == name]
        if not found:
            raise KeyError(name)
        return found[0]

    @property
    def macs(self) -> int:
        return sum(op.macs for op in self.operators)

    @property
    def parameters(self) -> int:
        """Elements of all weight tensors."""
        return sum(t.elements for t in self.tensors if t.kind == "weight")


def check_order(workload: Workload) -> None:
    """Raise ``InputError`` with everything that makes the workload ill-formed.

    Names are unique; every access has one affine expression per tensor axis over loops that
    exist; results lie inside their tensor; a tensor is read only after all of it that will
    ever be written has been. Two operators may write one tensor where their regions are
    disjoint (a concatenation), a ``copy`` may update an input in place (a cache), and so may an
    optimizer its states and the parameters.
    """
    problems = [*_tensor_problems(workload), *_name_problems(workload)]
    if not workload.operators:
        problems.append(Problem("there is nothing to compute", where=f"workload {workload.name}"))
    for operator in workload.operators:
        problems += _operator_problems(workload, operator)
    if not problems:
        problems += _order_problems(workload)
    if problems:
        raise InputError(problems)


def index_range(index: AffineIndex, extents: Mapping[str, int]) -> tuple[int, int]:
    """Smallest and largest value of an affine expression over a loop nest."""
    low = high = index.offset
    for dim, coefficient in index.terms:
        reach = coefficient * (extents[dim] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def _tensor_problems(workload: Workload) -> Iterator[Problem]:
    for tensor in workload.tensors:
        where = f"workload {workload.name}: tensor {tensor.name}"
        if any(size < 1 for size in tensor.shape):
            yield Problem(f"every size must be at least 1, shape is {tensor.shape}", where=where)
        if not is_dtype(tensor.dtype):
            yield Problem(f"unknown data type {tensor.dtype!r}; allowed: {ALLOWED}", where=where)
        if tensor.kind not in TENSOR_KINDS:
            yield Problem(
                f"unknown kind {tensor.kind!r}; allowed: {_list(TENSOR_KINDS)}", where=where
            )


def _name_problems(workload: Workload) -> Iterator[Problem]:
    for what, names in (
        ("tensor", [t.name for t in workload.tensors]),
        ("operator", [o.name for o in workload.operators]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                yield Problem(f"two {what}s are named {name!r}", where=f"workload {workload.name}")
            seen.add(name)


def _operator_problems(workload: Workload, operator: Operator) -> Iterator[Problem]:
    where = f"workload {workload.name}: operator {operator.name}"
    operations = ("mac", *VECTOR_OPERATIONS)
    if operator.operation not in operations:
        message = f"unknown operation {operator.operation!r}; allowed: {_list(operations)}"
        yield Problem(message, where=where)
    streaming = bool(operator.side)
    if operator.operation == "mac" and len(operator.inputs) != 2 and not streaming:
        yield Problem(f"a mac has 2 inputs, this one {len(operator.inputs)}", where=where)
    if not is_dtype(operator.accumulator_dtype):
        yield Problem(f"unknown data type {operator.accumulator_dtype!r}", where=where)
    if operator.ops_per_point <= 0:
        yield Problem(f"ops_per_point is {operator.ops_per_point}, more than 0", where=where)
    named = {*operator.whole_dims, *dict(operator.dim_classes), *_side_dims(operator)}
    if unknown := sorted(named - set(operator.extents)):
        yield Problem(f"loops {_list(unknown)} are not in {_list(operator.extents)}", where=where)
    for dim, extent in operator.extents.items():
        if extent < 1:
            yield Problem(f"extent of loop {dim} is {extent}, at least 1", where=where)
    for access in operator.accesses:
        yield from _access_problems(workload, operator, access)


def _side_dims(operator: Operator) -> set[str]:
    return {dim for side in operator.side for dim in side.dims}


def _access_problems(workload: Workload, operator: Operator, access: Access) -> Iterator[Problem]:
    where = f"workload {workload.name}: operator {operator.name}: access to {access.tensor}"
    tensor = workload._by_name.get(access.tensor)
    if tensor is None:
        yield Problem("there is no tensor of this name", where=where)
        return
    unknown = sorted(access.dims - set(operator.extents))
    if unknown:
        yield Problem(f"loops {_list(unknown)} are not in {_list(operator.extents)}", where=where)
    if len(access.index) != len(tensor.shape):
        message = f"{len(access.index)} index expressions for a tensor of rank {len(tensor.shape)}"
        yield Problem(message, where=where)
    if unknown or len(access.index) != len(tensor.shape):
        return
    is_output = access is operator.output
    for axis, (index, size) in enumerate(zip(access.index, tensor.shape, strict=True)):
        low, high = index_range(index, operator.extents)
        inside = (low >= 0 and high < size) if is_output else (low < size and high >= 0)
        if not inside:
            message = f"axis {axis} has size {size}, the loops reach {low} to {high}"
            yield Problem(message, where=where)


def _order_problems(workload: Workload) -> Iterator[Problem]:
    writers: dict[str, list[Operator]] = {}
    read_by: dict[str, str] = {}
    for operator in workload.operators:
        where = f"workload {workload.name}: operator {operator.name}"
        for access in operator.inputs:
            kind = workload.tensor(access.tensor).kind
            if kind in ("activation", "output", "host") and access.tensor not in writers:
                yield Problem(f"reads {access.tensor} before it is produced", where=where)
            read_by.setdefault(access.tensor, operator.name)
        written = operator.output.tensor
        if read_by.get(written, operator.name) != operator.name and not _is_update(operator):
            yield Problem(f"writes {written} after {read_by[written]} has read it", where=where)
        yield from _write_problems(workload, operator, writers.get(written, []), where)
        writers.setdefault(written, []).append(operator)
    for tensor in workload.tensors:
        if tensor.kind == "output" and tensor.name not in writers:
            where = f"workload {workload.name}: tensor {tensor.name}"
            yield Problem("is an output that no operator produces", where=where)


def _write_problems(
    workload: Workload, operator: Operator, earlier: list[Operator], where: str
) -> Iterator[Problem]:
    written = operator.output.tensor
    kind = workload.tensor(written).kind
    in_place = operator.operation == "copy" or _is_update(operator)
    if (kind == "weight" and not _is_update(operator)) or (kind == "input" and not in_place):
        yield Problem(f"writes {written}, which is of kind {kind}", where=where)
    for other in earlier:
        if not disjoint(operator, other):
            yield Problem(f"{other.name} has already written part of {written}", where=where)


def _is_update(operator: Operator) -> bool:
    """Whether it replaces a parameter, or what an optimizer keeps, after all have read it."""
    return operator.kind in UPDATES


def is_trained(workload: Workload) -> bool:
    """Whether it is a training step: it ends with new values of its parameters."""
    return any(_is_update(operator) for operator in workload.operators)


def disjoint(one: Operator, other: Operator) -> bool:
    """Whether two writers of a tensor touch different elements: apart on at least one axis."""
    return any(
        _apart((left, one.extents), (right, other.extents))
        for left, right in zip(one.output.index, other.output.index, strict=True)
    )


def _apart(*writers: tuple[AffineIndex, Mapping[str, int]]) -> bool:
    """Whether two expressions, each over its own loops, never meet (``False`` if not known).

    Terms that are multiples of a period (the batch, on an axis of batches and tokens) only
    choose a block. Where what remains of both stays within one block, it alone decides.
    """
    periods = {step for index, _ in writers for _, step in index.terms}
    if _intervals_apart([index_range(*writer) for writer in writers]):
        return True
    for period in periods:
        ranges = [index_range(_remainder(index, period), extents) for index, extents in writers]
        blocks = {bound // period for low_high in ranges for bound in low_high}
        if len(blocks) == 1 and _intervals_apart(ranges):
            return True
    return False


def _remainder(index: AffineIndex, period: int) -> AffineIndex:
    terms = tuple(term for term in index.terms if term[1] % period)
    return AffineIndex(terms, index.offset)


def _intervals_apart(ranges: list[tuple[int, int]]) -> bool:
    (low, high), (other_low, other_high) = ranges
    return high < other_low or other_high < low


def _list(names: object) -> str:
    return ", ".join(map(str, names))  # type: ignore[call-overload]
