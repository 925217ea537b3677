"""A workload while it is being built from a traced graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from arch.datatypes import accumulator_of
from mapper.workload.graph import Workload, index_range
from mapper.workload.nests import Index, Nest, at
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor
from mapper.workload.torch_import.storage import (
    Axis,
    Storage,
    View,
    fresh,
    join_leading,
    reshape,
)

#: Operations that add up many values, and so need a wider accumulator than their result.
_SUMMING = ("mac", "mean", "add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What an operator does, apart from where its operands lie."""

    kind: str
    operation: str
    nest: Nest
    ops_per_point: int = 1
    whole: str = ""
    """A loop along which results depend on all before them."""
    causal: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class DraftOperator:
    """An operator whose tensors may still change their stored shape."""

    name: str
    kernel: Kernel
    inputs: tuple[View, ...]
    output: View


@dataclass(eq=False, slots=True)
class Names:
    """Hands out each name once."""

    taken: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        """``name``, or ``name_2`` and so on if it is taken."""
        numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
        free = next(candidate for candidate in numbered if candidate not in self.taken)
        self.taken.add(free)
        return free


@dataclass(eq=False, slots=True)
class Draft:
    """Storages, operators and notes, in the order of the traced graph."""

    storages: list[Storage] = field(default_factory=list)
    operators: list[DraftOperator] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)
    _operator_names: Names = field(default_factory=Names)
    _tensor_names: Names = field(default_factory=Names)

    def store(self, name: str, shape: Sequence[int], dtype: str, kind: str) -> Storage:
        name = self._tensor_names.unique(name)
        storage = Storage(name=name, dtype=dtype, kind=kind, axes=[Axis(size=s) for s in shape])
        self.storages.append(storage)
        return storage

    def unique(self, name: str) -> str:
        """``name`` for an operator, numbered if another operator has it."""
        return self._operator_names.unique(name)

    def emit(
        self, name: str, kernel: Kernel, inputs: Sequence[View], shape: Sequence[int], dtype: str
    ) -> View:
        """An operator with a new tensor of ``shape`` for its result."""
        name = self.unique(name)
        output = self.store(f"{name}.out", shape, dtype, "activation")
        return self.emit_into(name, kernel, inputs, fresh(output))

    def emit_into(self, name: str, kernel: Kernel, inputs: Sequence[View], output: View) -> View:
        """An operator that writes its result where ``output`` lies."""
        readable = tuple(
            self._readable(view, index, kernel.nest.extents)
            for view, index in zip(inputs, kernel.nest.inputs, strict=True)
        )
        self.operators.append(
            DraftOperator(name=name, kernel=kernel, inputs=readable, output=output)
        )
        return output

    def copy(self, view: View, reason: str) -> View:
        """A tensor of its own with the view's shape and values."""
        name = self.unique(f"{view.storage.name.removesuffix('.out')}.copy")
        self.folded.append(f"{name}: copied, {reason}")
        output = self.store(f"{name}.out", view.shape, view.storage.dtype, "activation")
        return self.emit_into(name, pointwise("copy", "copy", view.shape, 1), [view], fresh(output))

    def reshape(self, view: View, shape: Sequence[int]) -> View:
        """A view of that shape; copies where torch would have to copy too."""
        reshaped = reshape(view, shape)
        if reshaped is None:
            dense = self.copy(view, f"{view.shape} cannot be read in place as {tuple(shape)}")
            reshaped = reshape(dense, shape)
        if reshaped is None:
            # Row-major order cuts across the axes (4 x 6 read as 6 x 4): one long axis has no cuts.
            flat = self.copy(join_leading(dense, 0), "its axes are cut elsewhere")
            reshaped = reshape(flat, shape)
        assert reshaped is not None
        return reshaped

    def _readable(self, view: View, index: Index, extents: Mapping[str, int]) -> View:
        """The view, or a copy if padding would read a neighbour instead of zeros."""
        for view_axis, expression in zip(view.axes, index, strict=True):
            low, high = index_range(expression, extents)
            if low >= 0 and high < view_axis.size:
                continue
            if not view.covers(view_axis):
                return self._readable(
                    self.copy(view, "padded at the edge of a view"), index, extents
                )
            axis, _ = view_axis.stored()
            assert axis is not None
            axis.padded = True
        return view

    def finish(self, name: str) -> Workload:
        """The checked workload: weights all, other tensors where an operator uses them."""
        operators = tuple(_operator(draft) for draft in self.operators)
        used = {access.tensor for operator in operators for access in operator.accesses}
        tensors = tuple(
            Tensor(name=s.name, shape=s.shape, dtype=s.dtype, kind=s.kind)
            for s in self.storages
            if (s.kind == "weight" and all(s.shape)) or s.name in used
        )
        return Workload(name=name, tensors=tensors, operators=operators, folded=tuple(self.folded))


def pointwise(kind: str, operation: str, shape: Sequence[int], ops: int, inputs: int = 1) -> Kernel:
    """An element-by-element operator over ``shape``; all inputs are indexed alike."""
    dims = point_dims(len(shape))
    index = at(*dims)
    nest = Nest(extents=dict(zip(dims, shape, strict=True)), inputs=(index,) * inputs, output=index)
    return Kernel(kind=kind, operation=operation, nest=nest, ops_per_point=ops)


def point_dims(rank: int) -> tuple[str, ...]:
    """Loop names for an element-by-element operator: N,C,H,W for images, else numbered."""
    return ("N", "C", "H", "W") if rank == 4 else tuple(f"D{axis}" for axis in range(rank))


def _operator(draft: DraftOperator) -> Operator:
    kernel = draft.kernel
    views = (*draft.inputs, draft.output)
    patterns = (*kernel.nest.inputs, kernel.nest.output)
    addresses = [view.address(index) for view, index in zip(views, patterns, strict=True)]
    extents = dict(kernel.nest.extents)
    if kernel.operation != "mac":
        extents, addresses = _without_unit_loops(extents, addresses)
    extents, addresses = _joined_loops(extents, addresses, kernel.whole)
    names = _numbers(extents)
    extents, addresses = _renumbered(extents, addresses, names)
    accesses = tuple(
        Access(view.storage.name, index) for view, index in zip(views, addresses, strict=True)
    )
    dtype = draft.output.storage.dtype
    return Operator(
        name=draft.name,
        kind=kernel.kind,
        operation=kernel.operation,
        extents=extents,
        inputs=accesses[:-1],
        output=accesses[-1],
        accumulator_dtype=accumulator_of(dtype) if kernel.operation in _SUMMING else dtype,
        ops_per_point=kernel.ops_per_point,
        whole_dims=frozenset({names[kernel.whole]} if kernel.whole in names else ()),
        causal=kernel.causal,
    )


Extents = dict[str, int]


def _without_unit_loops(extents: Extents, addresses: list[Index]) -> tuple[Extents, list[Index]]:
    """Loops of one iteration dropped; one is kept if there is no other."""
    kept = {dim: extent for dim, extent in extents.items() if extent > 1}
    kept = kept or dict(list(extents.items())[:1]) or {"D0": 1}
    return kept, [tuple(_only(index, kept) for index in address) for address in addresses]


def _only(index: AffineIndex, dims: Mapping[str, int]) -> AffineIndex:
    return AffineIndex(tuple(term for term in index.terms if term[0] in dims), index.offset)


def _joined_loops(
    extents: Extents, addresses: list[Index], alone: str
) -> tuple[Extents, list[Index]]:
    """Neighbouring loops that every operand walks as one (batch and token) become one, but for
    the one that is to stay ``alone``."""
    inner, *others = reversed(extents)
    for outer in others:
        if alone in (outer, inner) or not _walked_as_one(outer, inner, extents[inner], addresses):
            inner = outer
            continue
        # The outer loop continues where the inner one ends: the inner one just gets longer.
        longer = extents[inner] * extents[outer]
        extents = {dim: longer if dim == inner else e for dim, e in extents.items() if dim != outer}
        addresses = [tuple(_only(index, extents) for index in a) for a in addresses]
    return extents, addresses


def _walked_as_one(outer: str, inner: str, size: int, addresses: list[Index]) -> bool:
    steps = [dict(index.terms) for address in addresses for index in address]
    return all(step.get(outer, 0) == step.get(inner, 0) * size for step in steps)


def _numbers(extents: Extents) -> dict[str, str]:
    """Numbered loops numbered from zero again after some have gone, so that equal work is equal."""
    numbered = [dim for dim in extents if dim[0] == "D" and dim[1:].isdigit()]
    return {dim: dim for dim in extents} | {dim: f"D{at}" for at, dim in enumerate(numbered)}


def _renumbered(
    extents: Extents, addresses: list[Index], names: Mapping[str, str]
) -> tuple[Extents, list[Index]]:
    renamed = {names[dim]: extent for dim, extent in extents.items()}
    return renamed, [tuple(_renamed(index, names) for index in a) for a in addresses]


def _renamed(index: AffineIndex, names: Mapping[str, str]) -> AffineIndex:
    return AffineIndex(tuple((names[dim], step) for dim, step in index.terms), index.offset)
